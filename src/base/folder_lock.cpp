#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr std::chrono::seconds PATIENCE{60};
constexpr std::chrono::seconds MAKING{10};
constexpr std::chrono::seconds SILENCE{1};  // then it prints what it waits for
constexpr std::chrono::milliseconds PAUSE{20};

// FOLDER/.lock, open. Closed by the destructor unless the descriptor was taken out.
struct LockFile {
  int descriptor = -1;  // -1: there is none
  std::string foreign;  // why it is no lock file of this project; empty: it is one
  int64_t owner = 0;    // the number in it; 0: none, as in the moment before its owner writes it

  // Without O_CLOEXEC: a child that outlives this process may still write into the folder, and holds the lock until it
  // ends.
  LockFile(const std::string& folder, int how) {
    const std::string path = folder + "/.lock";
    descriptor = open(path.c_str(), how | O_NONBLOCK | O_NOFOLLOW, 0666);
    if (descriptor < 0 && errno == ELOOP) foreign = "expected a file, found a link";
    if (descriptor < 0 && errno != ELOOP && (errno != ENOENT || how & O_CREAT))
      throw Error(path + ": cannot be opened: " + std::strerror(errno) + "; nothing was changed");
    if (descriptor >= 0) look();
  }
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;
  ~LockFile() {
    if (descriptor >= 0) close(descriptor);
  }

  void look() {
    struct stat status = {};
    char digits[32];
    const bool regular = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    const ssize_t size = regular ? pread(descriptor, digits, sizeof digits, 0) : 0;
    owner = size > 0 ? parse_integer(trim({digits, static_cast<size_t>(size)})).value_or(0) : 0;
    foreign = !regular                  ? "expected a file, found something else"
              : status.st_nlink > 1     ? "expected a file with one name, found one with several"
              : size != 0 && owner <= 0 ? "expected the number of a process in it, found something else"
                                        : "";
  }
};

// A process that has ended and whose parent has not waited for it yet is still listed, as a zombie; /proc shows that.
bool is_zombie(int64_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string words;
  std::getline(file, words);
  const size_t name = words.rfind(") ");
  return name != std::string::npos && words.compare(name + 2, 1, "Z") == 0;
}

bool is_alive(int64_t process) {
  return (kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM) && !is_zombie(process);
}

bool try_lock(int descriptor, const std::string& folder) {
  while (flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return false;
    std::fprintf(stderr, "note: %s: this file system has no locks (%s): let one process write here\n", folder.c_str(),
                 std::strerror(errno));
    return true;
  }
  return true;
}

[[noreturn]] void refuse_locked(const std::string& folder, int64_t owner, const char* or_whom = "") {
  throw Error(folder + ": process " + std::to_string(owner) + or_whom +
              " is at work in this folder; nothing was changed");
}

// Anybody who may read a folder can lock it.
[[noreturn]] void refuse_unknown(const std::string& folder) {
  throw Error(folder + ": another program has locked this folder for 10 s; end it, or write into another folder");
}
void note_unknown(const std::string& folder) {
  std::fprintf(stderr, "note: %s: waiting for another program that has locked this folder\n", folder.c_str());
}

void wait_for_lock(LockFile& file, const std::string& folder) {
  const auto start = std::chrono::steady_clock::now();
  for (bool printed = false; !try_lock(file.descriptor, folder);) {
    file.look();
    const int64_t owner = file.owner;
    const auto waited = std::chrono::steady_clock::now() - start;
    if (owner == 0 && waited > MAKING) refuse_unknown(folder);
    const bool over = waited > PATIENCE;
    if (over || (owner > 0 && is_alive(owner))) refuse_locked(folder, owner, over ? " or one that it began" : "");
    if (waited > SILENCE && !printed) {
      if (owner == 0)
        note_unknown(folder);
      else
        std::fprintf(stderr, "%s: waits until the processes that %lld left have saved\n", folder.c_str(),
                     static_cast<long long>(owner));
      printed = true;
    }
    std::this_thread::sleep_for(PAUSE);
  }
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : folder_(folder) {
  LockFile file(folder, O_RDWR | O_CREAT);
  if (!file.foreign.empty()) throw Error(folder + "/.lock: " + file.foreign + "; nothing was changed");
  wait_for_lock(file, folder);
  const std::string own = std::to_string(getpid()) + "\n";
  if (ftruncate(file.descriptor, 0) != 0 || pwrite(file.descriptor, own.data(), own.size(), 0) < 0)
    throw Error(folder + "/.lock: cannot write: " + std::strerror(errno));
  descriptor_ = std::exchange(file.descriptor, -1);
}

// By the lock's file: it is open, and so no other file gets its number, as another folder may get that of a removed
// one.
void FolderLock::check() const {
  struct stat here = {}, held = {};
  const bool found = stat((folder_ + "/.lock").c_str(), &here) == 0 && fstat(descriptor_, &held) == 0;
  if (!found || here.st_dev != held.st_dev || here.st_ino != held.st_ino)
    throw Error(folder_ + ": was moved, removed or replaced while this process was at work in it; what it saved went " +
                "with the folder, and it stops");
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), folder_(std::move(other.folder_)) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(folder_, other.folder_);
  return *this;
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

MakingLock::MakingLock(const std::string& path) {
  const std::filesystem::path whole = std::filesystem::absolute(path).lexically_normal();
  const std::string folder =
      (whole.has_filename() ? whole : whole.parent_path()).parent_path().string();  // of "out/" its own
  descriptor_ = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) return;
  const auto start = std::chrono::steady_clock::now();
  for (bool printed = false; flock(descriptor_, LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) return;
    const auto waited = std::chrono::steady_clock::now() - start;
    if (waited > MAKING) {
      close(descriptor_);
      refuse_unknown(folder);
    }
    if (waited > SILENCE && !printed) {
      note_unknown(folder);
      printed = true;
    }
    std::this_thread::sleep_for(PAUSE);
  }
}

MakingLock::~MakingLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

void check_not_locked(const std::string& folder) {
  const LockFile file(folder, O_RDONLY);
  const bool ours = file.descriptor >= 0 && file.foreign.empty();
  if (ours && flock(file.descriptor, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) refuse_locked(folder, file.owner);
}

std::optional<FolderLock> lock_of_run(const std::string& file) {
  const std::string parent = std::filesystem::path(file).parent_path().string(), folder = parent.empty() ? "." : parent;
  const bool ours = [&] {
    const LockFile lock(folder, O_RDONLY);
    return lock.descriptor >= 0 && lock.foreign.empty();
  }();
  return ours ? std::optional<FolderLock>(folder) : std::nullopt;
}

}  // namespace petroglyph
