#include "base/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

[[noreturn]] void fail(const std::string& path, int reason) {
  throw Error(path + ": cannot write: " + std::strerror(reason));
}

// Also flushes the disk's own cache, which fsync does not on macOS.
int flush(int descriptor) {
#ifdef F_FULLFSYNC
  if (fcntl(descriptor, F_FULLFSYNC) == 0) return 0;
#endif
  return fsync(descriptor);
}

// A rename is on the disk only when its folder is. File systems that cannot flush a folder give EINVAL; they are
// trusted, and so is a folder that may be written but not read.
void flush_folder(const std::string& path) {
  std::filesystem::path at = path;
  if (!at.has_filename()) at = at.parent_path();  // of "out/"
  const std::string folder = at.has_parent_path() ? at.parent_path().string() : ".";
  const int descriptor = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  const int problem = descriptor < 0 ? errno : flush(descriptor) == 0 ? 0 : errno;
  if (descriptor >= 0) close(descriptor);
  if (problem != 0 && problem != EINVAL && problem != ENOTSUP && problem != EACCES)
    throw Error(path + ": written, but its folder cannot be flushed to the disk: " + std::strerror(problem));
}

}  // namespace

OutputFile::OutputFile(const std::string& path, Mode mode) : path_(path) {
  const int how = mode == Mode::Append ? O_APPEND : O_EXCL;
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | how, 0666);
  if (descriptor_ < 0) fail(path_, errno);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::write(const void* data, size_t size) {
  constexpr size_t PIECE = size_t(1) << 30;  // more in one call is refused on some systems
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, bytes, size < PIECE ? size : PIECE);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(path_, written < 0 ? errno : ENOSPC);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

void OutputFile::flush_to_disk() {
  // A pipe or a character device has nothing to flush and gives EINVAL.
  if (flush(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail(path_, errno);
}

void OutputFile::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(path_, errno);
}

namespace {

constexpr const char *const TEMPORARY_PREFIX = ".petroglyph-", *const TEMPORARY_SUFFIX = ".tmp";

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "" : folder + "/";
}

// An unused name for a temporary file in the folder of `path`. It has this process's number; an earlier process with
// the same number, or one on another machine, may have left files.
std::string temporary_name(const std::string& path) {
  const std::string begin = folder_of(path) + TEMPORARY_PREFIX + std::to_string(getpid()) + "-";
  int i = 1;
  while (is_there(begin + std::to_string(i) + TEMPORARY_SUFFIX)) ++i;
  return begin + std::to_string(i) + TEMPORARY_SUFFIX;
}

// The temporary file that is being written. A signal's handler reaches nothing but static variables.
char unfinished[4096];

extern "C" void petroglyph_end_while_writing(int signal) {
  discard_unfinished_file();
  std::signal(signal, SIG_DFL);
  std::raise(signal);  // arrives as soon as this handler returns
}

// While it lives, a signal that would end the program, neither caught nor ignored, removes `path` first.
class Unfinished {
 public:
  explicit Unfinished(const std::string& path) {
    std::snprintf(unfinished, sizeof unfinished, "%s", path.size() < sizeof unfinished ? path.c_str() : "");
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction before = {};
      if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
        std::signal(signal, petroglyph_end_while_writing), caught_.push_back(signal);
    }
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    for (const int signal : caught_) std::signal(signal, SIG_DFL);
    unfinished[0] = 0;
  }

 private:
  std::vector<int> caught_;
};

// A second name (hard link) for the file `path`, or a copy where the file system has no hard links; empty if there is
// no file.
std::string second_name(const std::string& path) {
  if (!is_there(path)) return "";
  const std::string second = temporary_name(path);
  if (link(path.c_str(), second.c_str()) == 0) return second;
  std::error_code problem;  // a file system without second names
  std::filesystem::copy_file(path, second, problem);
  if (!problem) return second;
  unlink(second.c_str());
  throw Error(path + ": cannot be copied: " + problem.message());
}

// Renames a temporary file, replacing what has that name.
void take_name(const std::string& path, const std::string& other) {
  const bool taken = std::rename(path.c_str(), other.c_str()) == 0;
  const int problem = errno;
  unlink(path.c_str());  // it stays where both were the same file already
  if (!taken) fail(other, problem);
}

}  // namespace

void discard_unfinished_file() noexcept {
  if (unfinished[0]) unlink(unfinished);
}

void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& writer,
                           const std::string& previous) {
  const std::string temporary = temporary_name(path);
  std::string second;
  bool created = false, renamed = false;
  try {
    const Unfinished guard(temporary);
    OutputFile file(temporary, OutputFile::Mode::New);
    created = true;
    writer(file);
    file.flush_to_disk();
    file.close();
    if (!previous.empty()) second = second_name(path);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path, errno);
    renamed = true;
    if (!second.empty()) take_name(second, previous);
  } catch (const Error& error) {
    if (renamed) throw;
    if (created) unlink(temporary.c_str());
    if (!second.empty()) unlink(second.c_str());
    std::string message = error.what();
    if (message.compare(0, temporary.size(), temporary) == 0) message.replace(0, temporary.size(), path);
    const bool before = access(path.c_str(), F_OK) == 0;
    throw Error(message + (before ? "; the previous file is unchanged" : "; nothing was written"));
  } catch (...) {
    if (created) unlink(temporary.c_str());
    throw;
  }
  flush_folder(path);
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, [&](OutputFile& file) { file.write(content); });
}

void remove_leftovers(const std::string& folder) {
  for (const std::string& name : names_in(folder)) {
    const std::string_view prefix = TEMPORARY_PREFIX, suffix = TEMPORARY_SUFFIX;
    const bool ours = name.size() > prefix.size() + suffix.size() && name.compare(0, prefix.size(), prefix) == 0 &&
                      name.compare(name.size() - suffix.size(), suffix.size(), suffix) == 0;
    if (ours) unlink((folder + "/" + name).c_str());
  }
}

namespace {

// ": runs is a link to X, which does not exist", if that is why a folder cannot be made; else empty.
std::string dangling_link(const std::string& path) {
  std::error_code none;
  for (std::filesystem::path at = path; !at.empty() && at != at.parent_path(); at = at.parent_path()) {
    if (std::filesystem::is_symlink(at, none) && !std::filesystem::exists(at, none))
      return ": " + at.string() + " is a link to " + std::filesystem::read_symlink(at, none).string() +
             ", which does not exist";
  }
  return "";
}

[[noreturn]] void refuse_folder(const std::string& path, int problem) {
  const std::string link = dangling_link(path);
  throw Error(path + ": cannot make the folder" + (link.empty() ? std::string(": ") + std::strerror(problem) : link));
}

// Parents first. Returns errno if it fails, 0 if the folder exists now.
int make_folders(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return 0;
  const std::string above = std::filesystem::path(path).parent_path().string();
  if (const int problem = above.empty() ? 0 : make_folders(above)) return problem;
  if (mkdir(path.c_str(), 0777) == 0) return flush_folder(path), 0;
  const int problem = errno;
  if (problem != EEXIST) return problem;
  return std::filesystem::is_directory(path, none) ? 0 : ENOTDIR;
}

}  // namespace

void make_folder(const std::string& path) {
  if (const int problem = make_folders(path)) refuse_folder(path, problem);
}

void check_folder(const std::string& path) {
  std::filesystem::path nearest = path;  // of those above it that are there
  struct stat status;
  for (; !nearest.empty() && lstat(nearest.c_str(), &status) != 0; nearest = nearest.parent_path())
    if (errno != ENOENT && errno != ENOTDIR) break;  // such as a name that is too long
  const std::string temporary = temporary_name((nearest / "folder").string());
  if (mkdir(temporary.c_str(), 0777) != 0) refuse_folder(path, errno);
  rmdir(temporary.c_str());
}

bool claim_folder(const std::string& path) {
  const std::string above = std::filesystem::path(path).parent_path().string();
  if (!above.empty()) make_folder(above);
  if (mkdir(path.c_str(), 0777) == 0) return flush_folder(path), true;
  if (errno == EEXIST) return false;
  refuse_folder(path, errno);
}

void refuse_link(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    throw Error(path + ": expected a folder, found a link");
}

std::string put_aside(const std::string& path) {
  std::string aside = path + ".before";
  for (int i = 2; is_there(aside); ++i) aside = path + ".before-" + std::to_string(i);
  std::error_code problem;
  std::filesystem::rename(path, aside, problem);
  if (problem) throw Error(path + ": cannot be renamed to " + aside + ": " + problem.message());
  return aside;
}

void write_keeping(const std::string& path, std::string_view content) {
  if (is_there(path)) {
    if (read_regular_file(path) == content) return;
    put_aside(path);
  }
  write_file_atomically(path, content);
}

void check_replaced(const std::string& path, bool force) {
  if (!is_there(path)) return;
  std::error_code none;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, none);
  const bool folder = std::filesystem::is_directory(path, none);  // a link to one too: what is replaced lies in it
  if (!folder && !std::filesystem::is_regular_file(status))
    throw Error(path + ": expected a file or a folder, found " +
                (std::filesystem::is_symlink(status) ? "a link" : "something else") + ", which is never replaced");
  if (!force)
    throw Error(path + (folder ? ": this folder exists already; choose another one, or --force replaces files in it"
                               : ": this file exists already; choose another one, or --force replaces it"));
}

void check_not_read(const std::string& path, const std::vector<std::string>& read) {
  for (const std::string& other : read) {
    std::error_code none;
    if (!std::filesystem::equivalent(path, other, none)) continue;
    const bool same_name =
        std::filesystem::path(path).lexically_normal() == std::filesystem::path(other).lexically_normal();
    throw Error(path + (same_name ? ": this file" : ": this is " + other + ", which") +
                " is read here and never replaced; choose another one");
  }
}

void check_writable(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) throw Error(path + ": cannot write: expected a file, found a folder");
  struct stat status;
  if (lstat(path.c_str(), &status) != 0 && errno != ENOENT) fail(path, errno);  // such as a name that is too long
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    throw Error(path + ": cannot write: there is no folder " + folder);
  // Permissions alone do not tell: the disk may be full, or read only.
  const std::string temporary = temporary_name(path);
  const int descriptor = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(path, errno);
  close(descriptor);
  unlink(temporary.c_str());
}

void check_output(const std::string& path, bool force, const std::vector<std::string>& read) {
  check_not_read(path, read);
  check_writable(path);
  check_replaced(path, force);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  std::filesystem::directory_iterator at(folder, problem);
  for (; !problem && at != std::filesystem::directory_iterator(); at.increment(problem))
    names.push_back(at->path().filename().string());
  if (problem && problem != std::errc::no_such_file_or_directory && problem != std::errc::not_a_directory)
    throw Error(folder + ": cannot read this folder: " + problem.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_there(const std::string& path) {
  struct stat status;
  if (lstat(path.c_str(), &status) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG) return false;
  throw Error(path + ": cannot be read: " + std::strerror(errno));
}

}  // namespace petroglyph
