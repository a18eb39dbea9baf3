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
constexpr std::chrono::seconds SILENCE{1};  // then it says what it waits for
constexpr std::chrono::milliseconds PAUSE{20};

// The number in the lock's file; 0 where it has none, as in the moment before its owner writes it.
int64_t owner_of(int descriptor) {
  char digits[32];
  const ssize_t n = pread(descriptor, digits, sizeof digits, 0);
  return n <= 0 ? 0 : parse_integer(trim({digits, static_cast<size_t>(n)})).value_or(0);
}

// A process that has ended but that nobody asked about yet is still there, as a zombie; Linux says so.
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

void wait_for_lock(int descriptor, const std::string& folder) {
  const auto start = std::chrono::steady_clock::now();
  for (bool told = false; !try_lock(descriptor, folder);) {
    const int64_t owner = owner_of(descriptor);
    const auto waited = std::chrono::steady_clock::now() - start;
    const bool over = waited > PATIENCE;
    if (over || (owner > 0 && is_alive(owner)))
      throw Error(folder + ": process " + std::to_string(owner) + (over ? " or one that it began" : "") +
                  " is at work in this folder; nothing was changed");
    if (waited > SILENCE && !told) {
      std::fprintf(stderr, "%s: waits until the processes that %lld left have saved\n", folder.c_str(),
                   static_cast<long long>(owner));
      told = true;
    }
    std::this_thread::sleep_for(PAUSE);
  }
}

}  // namespace

FolderLock::FolderLock(const std::string& folder) : folder_(folder) {
  const std::string path = folder + "/.lock";
  // Without O_CLOEXEC: a child that outlives us goes on writing into the folder, and holds the lock until it has ended.
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_NONBLOCK, 0666);
  if (descriptor_ < 0) throw Error(path + ": cannot be opened: " + std::strerror(errno) + "; nothing was changed");
  try {
    wait_for_lock(descriptor_, folder);
  } catch (...) {
    close(descriptor_);
    throw;
  }
  const std::string own = std::to_string(getpid()) + "\n";
  if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, own.data(), own.size(), 0) < 0) {
    const int reason = errno;
    close(descriptor_);
    throw Error(path + ": cannot write: " + std::strerror(reason));
  }
  struct stat at = {};
  if (stat(folder.c_str(), &at) == 0) device_ = at.st_dev, number_ = at.st_ino;
}

// A folder's number may be given to another once it is removed; that of the lock's file, which is open, may not.
void FolderLock::check() const {
  struct stat at = {}, here = {}, held = {};
  bool same = stat(folder_.c_str(), &at) == 0 && at.st_dev == device_ && at.st_ino == number_;
  if (same && stat((folder_ + "/.lock").c_str(), &here) == 0)
    same = fstat(descriptor_, &held) == 0 && here.st_dev == held.st_dev && here.st_ino == held.st_ino;
  if (!same)
    throw Error(folder_ + ": was moved, removed or replaced while this process was at work in it; what it saved went " +
                "with the folder, and it stops");
}

FolderLock::FolderLock(FolderLock&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      folder_(std::move(other.folder_)),
      device_(other.device_),
      number_(other.number_) {}

FolderLock& FolderLock::operator=(FolderLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(folder_, other.folder_);
  std::swap(device_, other.device_);
  std::swap(number_, other.number_);
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
  if (descriptor_ < 0 || flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  std::fprintf(stderr, "note: %s: waiting for another program that makes something there\n", folder.c_str());
  while (flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

MakingLock::~MakingLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<FolderLock> lock_of_run(const std::string& file) {
  const std::string parent = std::filesystem::path(file).parent_path().string(), folder = parent.empty() ? "." : parent;
  if (!std::filesystem::exists(folder + "/.lock")) return std::nullopt;
  return FolderLock(folder);
}

}  // namespace petroglyph
