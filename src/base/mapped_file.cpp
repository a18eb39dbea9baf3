#include "base/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

namespace petroglyph {

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // A pipe would keep us waiting, and is refused below.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) throw Error(path + ": cannot read: " + std::strerror(errno));
  struct stat status {};
  const bool known = fstat(descriptor, &status) == 0, regular = known && S_ISREG(status.st_mode);
  void* address = nullptr;
  if (regular && status.st_size > 0)
    address = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int reason = errno;
  close(descriptor);
  if (known && !regular) throw Error(path + ": expected a file, found something else");
  if (!known || address == MAP_FAILED) throw Error(path + ": cannot read: " + std::strerror(reason));
  data_ = static_cast<const unsigned char*>(address);
  size_ = static_cast<size_t>(status.st_size);
  if (text().rfind("version https://git-lfs.", 0) != 0) return;
  munmap(address, size_);
  throw Error(path + ": is a git-lfs pointer, not the file: git lfs pull");
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, size_t(0))) {}

MappedFile::~MappedFile() {
  if (data_) munmap(const_cast<unsigned char*>(data_), size_);
}

}  // namespace petroglyph
