#include "base/atomic_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
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
void flush_folder(const std::filesystem::path& path) {
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const int descriptor = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  const int problem = descriptor < 0 ? errno : flush(descriptor) == 0 ? 0 : errno;
  if (descriptor >= 0) close(descriptor);
  if (problem != 0 && problem != EINVAL && problem != ENOTSUP && problem != EACCES)
    throw Error(path.string() + ": written, but its folder cannot be flushed to the disk: " + std::strerror(problem));
}

}  // namespace

OutputFile::OutputFile(const std::string& path, Mode mode, const std::string& name)
    : path_(name.empty() ? path : name) {
  const int how = mode == Mode::Append ? O_APPEND : O_EXCL;
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | how, 0666);
  if (descriptor_ < 0) fail(path_, errno);
}

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

constexpr const char* TEMPORARY_PREFIX = ".petroglyph-";

// An unused name for a temporary file in the folder of `path`. It has this process's number; an earlier process with
// the same number, or one on another machine, may have left files. The destructor removes the file.
struct Temporary {
  std::string path;

  explicit Temporary(const std::string& for_path) {
    const std::filesystem::path folder = std::filesystem::path(for_path).parent_path();
    const std::string begin = (folder / TEMPORARY_PREFIX).string() + std::to_string(getpid()) + "-";
    for (int i = 1; path.empty() || is_there(path); ++i) path = begin + std::to_string(i) + ".tmp";
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  ~Temporary() { unlink(path.c_str()); }
};

// Keeps the file `path`, if there is one, under another name too, in place of what has that name. Where the file system
// has no second names (hard links): a copy.
void keep_as(const std::string& path, const std::string& other) {
  if (!is_there(path)) return;
  unlink(other.c_str());
  if (link(path.c_str(), other.c_str()) != 0) std::filesystem::copy_file(path, other);
}

}  // namespace

void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& writer,
                           const std::string& previous) {
  Temporary temporary(path);
  OutputFile file(temporary.path, OutputFile::Mode::New, path);
  writer(file);
  file.flush_to_disk();
  file.close();
  if (!previous.empty()) keep_as(path, previous);
  if (std::rename(temporary.path.c_str(), path.c_str()) != 0) fail(path, errno);
  temporary.path.clear();
  flush_folder(path);
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, [&](OutputFile& file) { file.write(content); });
}

void remove_leftovers(const std::string& folder) {
  for (const std::string& name : names_in(folder))
    if (name.rfind(TEMPORARY_PREFIX, 0) == 0) unlink((folder + "/" + name).c_str());
}

bool make_folder(const std::string& path) {
  std::error_code problem;
  const bool made = std::filesystem::create_directories(path, problem);
  if (problem) throw Error(path + ": cannot make the folder: " + problem.message());
  if (!made) return false;
  for (std::filesystem::path at = path; !at.empty() && at != at.root_path(); at = at.parent_path()) flush_folder(at);
  return true;
}

void refuse_link(const std::string& path) {
  if (std::filesystem::is_symlink(path)) throw Error(path + ": expected a folder, found a link");
}

std::string put_aside(const std::string& path) {
  std::string aside = path + ".before";
  for (int i = 2; is_there(aside); ++i) aside = path + ".before-" + std::to_string(i);
  std::filesystem::rename(path, aside);
  return aside;
}

void write_keeping(const std::string& path, std::string_view content) {
  if (is_there(path)) {
    if (read_file(path) == content) return;
    put_aside(path);
  }
  write_file_atomically(path, content);
}

void check_replaced(const std::string& path, bool force) {
  if (!is_there(path)) return;
  std::error_code none;
  const bool folder = std::filesystem::is_directory(path, none);  // a link to one too: what is replaced lies in it
  if (!folder && !std::filesystem::is_regular_file(std::filesystem::symlink_status(path, none)))
    throw Error(path + ": expected a file or a folder; a link, a pipe or a device is never replaced");
  if (!force) throw Error(path + ": exists already; choose another name, or --force");
}

void check_not_read(const std::string& path, const std::vector<std::string>& read) {
  std::error_code none;
  for (const std::string& other : read)
    if (std::filesystem::equivalent(path, other, none))
      throw Error(path + ": is read here (" + other + ") and never replaced; choose another name");
}

void check_writable(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) fail(path, EISDIR);
  // Permissions alone do not tell: the disk may be full, or read only.
  const Temporary temporary(path);
  OutputFile(temporary.path, OutputFile::Mode::New, path);
}

void check_output(const std::string& path, bool force, const std::vector<std::string>& read) {
  check_not_read(path, read);
  check_writable(path);
  check_replaced(path, force);
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  if (!is_there(folder)) return names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_there(const std::string& path) { return std::filesystem::exists(std::filesystem::symlink_status(path)); }

}  // namespace petroglyph
