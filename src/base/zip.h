// Zip archives whose members are stored as they are: numpy's .npz files and PyTorch's. What is read is not copied, so it may be
// larger than memory; its checksums are compared where that is asked for, which reads all of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"

namespace petroglyph {

class OutputFile;

// The bytes of a file under a name for complaints, and numbers in them; nothing outside them is ever touched.
class Bytes {
 public:
  Bytes(const unsigned char* data, uint64_t size, std::string name)
      : data_(data), size_(size), name_(std::move(name)) {}

  uint64_t size() const { return size_; }
  std::string_view all() const { return text(0, size_); }
  Bytes part(uint64_t begin, uint64_t size, const std::string& name) const {
    if (begin > size_ || size > size_ - begin) fail("is truncated or damaged");
    return {data_ + begin, size, name};
  }
  std::string_view text(uint64_t begin, uint64_t size) const {
    return {reinterpret_cast<const char*>(part(begin, size, name_).data_), static_cast<size_t>(size)};
  }
  uint64_t number(uint64_t begin, int bytes) const {  // little-endian
    const Bytes digits = part(begin, static_cast<uint64_t>(bytes), name_);
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; --i) value = value << 8 | digits.data_[i];
    return value;
  }
  const unsigned char* data() const { return data_; }
  const std::string& name() const { return name_; }
  [[noreturn]] void fail(const std::string& complaint) const { throw Error(name_ + ": " + complaint); }

 private:
  const unsigned char* data_;
  uint64_t size_;
  std::string name_;
};

// An archive in a mapped file, which must outlive it. An Error opens with the file's name.
class ZipFile {
 public:
  // what: what the file should be, for the complaint: ".npz file"
  ZipFile(const MappedFile& file, const std::string& what);

  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return find(name) != nullptr; }
  // A member's bytes, called `where` in complaints. `compressed`: what to say where it is.
  Bytes open(const std::string& name, const std::string& where, const std::string& compressed) const;
  // The same whose checksum is that of the archive, where it says one: zero is what writers put who compute none.
  Bytes open_checked(const std::string& name, const std::string& where, const std::string& compressed) const;

 private:
  struct Member {
    std::string name;
    int method;  // 0: stored
    uint64_t stored_size, size, header, checksum;
  };
  struct Directory {
    uint64_t begin, members;
  };

  Directory find_directory(const std::string& what) const;
  static void read_large_numbers(Member& member, const Bytes& extra);
  const Member* find(const std::string& name) const;

  Bytes file_;
  std::vector<Member> members_;
};

// The lowest bytes of a number, at most eight, the lowest first.
std::string little(uint64_t value, int bytes = 4);

// Writes an archive into a file that is empty yet: a member after another, and at the end what they are.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}
  // Throws Error, which opens with the file's name, beyond the 4 GiB that numbers of 32 bits can say.
  void add(const std::string& name, std::string_view bytes);
  void finish();

 private:
  void write(std::string_view bytes);
  void check_room(uint64_t bytes) const;

  OutputFile& file_;
  uint64_t written_ = 0, members_ = 0;
  std::string directory_;
};

}  // namespace petroglyph
