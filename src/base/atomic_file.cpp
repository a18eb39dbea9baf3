#include "base/atomic_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"

namespace petroglyph {

namespace {

[[noreturn]] void fail(const std::string& path, int reason) {
  throw Error(path + ": cannot write: " + std::strerror(reason));
}

// A rename is on the disk only when its folder is. File systems that cannot flush a folder say EINVAL; they are
// trusted.
void flush_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const int descriptor = open(folder.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;  // a folder that may be written but not read
  const int problem = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  if (problem != 0 && problem != EINVAL && problem != ENOTSUP) {
    throw Error(path + ": written, but its folder cannot be flushed to the disk: " + std::strerror(problem));
  }
}

}  // namespace

OutputFile::OutputFile(const std::string& path, Mode mode) : path_(path) {
  const int how = mode == Mode::Append ? O_APPEND : O_TRUNC;
  descriptor_ = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
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
  // A pipe or a character device has nothing to flush and says EINVAL.
  if (fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail(path_, errno);
}

void OutputFile::close(bool flushed) {
  if (flushed) flush_to_disk();
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(path_, errno);
}

void write_file_atomically(const std::string& path, const std::function<void(OutputFile&)>& writer) {
  const std::string temporary = path + ".tmp";
  bool created = false;
  try {
    OutputFile file(temporary, OutputFile::Mode::Replace);
    created = true;
    writer(file);
    file.close(true);
    if (std::rename(temporary.c_str(), path.c_str()) != 0) fail(path, errno);
  } catch (const Error& error) {
    if (created) unlink(temporary.c_str());
    std::string message = error.what();
    if (message.compare(0, temporary.size(), temporary) == 0) message.replace(0, temporary.size(), path);
    const bool existed = access(path.c_str(), F_OK) == 0;
    throw Error(message + (existed ? "; the previous file is unchanged" : "; nothing was written"));
  } catch (...) {
    if (created) unlink(temporary.c_str());
    throw;
  }
  flush_folder(path);
}

void write_file_atomically(const std::string& path, std::string_view content) {
  write_file_atomically(path, [&](OutputFile& file) { file.write(content); });
}

void make_folder(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (problem) throw Error(path + ": cannot make the folder: " + problem.message());
}

}  // namespace petroglyph
