// A file mapped into memory: the system reads its pages on access, so that it may be larger than the memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petroglyph {

class MappedFile {
 public:
  // Throws Error for what cannot be read, and for what git without git-lfs leaves in a large file's place. If the file
  // is truncated while it is mapped, the program ends (program.cpp).
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  const std::string& path() const { return path_; }
  const unsigned char* data() const { return data_; }  // null where the file is empty
  size_t size() const { return size_; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  std::string path_;
  const unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace petroglyph
