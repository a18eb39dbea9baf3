// Named tensors and metadata in the safetensors format, which Python reads too: checkpoints.
//
//   8 bytes   length n of the header, little-endian
//   n bytes   JSON: {"__metadata__": {KEY: STRING, …},
//              NAME: {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, …}
//   the rest  the tensors' bytes, without holes or overlaps
//
// Our own files carry two checksums (checksum.h) in the metadata, so that a damaged file is noticed before it is used:
//   checksum_of_data    of the tensors' bytes, in the order of their names
//   checksum_of_header  of names, types and shapes in that order, and of the other metadata in the order of its keys
// so that another program may write the same contents in another order. The reader checks both, and where one of them
// is there the other must be; files of others have neither. A program that changes something and keeps the metadata
// must drop the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/mapped_file.h"

namespace petroglyph {

// A file that has been checked from end to end; its tensors are read from the mapped file (mapped_file.h) on demand.
class SafetensorsFile {
 public:
  struct Entry {
    std::string dtype;
    std::vector<int64_t> shape;
    uint64_t begin = 0, end = 0;  // bytes, counted from the start of the data
    int64_t count() const;        // elements
  };

  // Throws an Error for a file that cannot be read, is truncated, damaged, or something else.
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<std::string>& names() const { return names_; }  // in the header's order
  const Entry* find(const std::string& name) const;
  const Entry& entry(const std::string& name) const;  // throws when there is none
  // The tensor's bytes in the file, at any address.
  const unsigned char* data_of(const Entry& entry) const { return file_.data() + data_begin_ + entry.begin; }

  // All but the two checksums.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& metadata(const std::string& key) const;  // throws when there is none

  // The tensor's elements: F32 as it is, F64 rounded to nearest, F16 and BF16 exactly; throws for other types.
  std::vector<float> read_as_float(const std::string& name) const;
  // The elements first … first+count−1 of it, which must be there.
  void read_as_float(const std::string& name, int64_t first, int64_t count, float* values) const;

  // Throws unless the tensor has this shape: "PATH: tensor NAME has shape 192×192, expected 64×64".
  void expect_shape(const std::string& name, const std::vector<int64_t>& shape) const;

 private:
  std::string_view header() const;
  void parse_metadata(const Json& object);
  void parse_entry(const std::string& name, const Json& object);
  void check_header() const;
  void check_layout() const;
  void check_data() const;
  [[noreturn]] void fail(const std::string& complaint) const;

  MappedFile file_;
  uint64_t data_begin_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::string> metadata_;
  std::string checksum_of_data_, checksum_of_header_;  // as the file states them; empty: not
};

// Whether a file begins as PyTorch's do: a zip archive or, in their old form, a pickle. The Error of it, which says
// what to do.
bool is_torch(const MappedFile& file);
[[noreturn]] void refuse_torch(const std::string& path);

// Whether a file is named as one, or begins as one: with the length of a header and its '{'. It may be damaged.
bool is_safetensors(const std::string& path);

// Collects tensors and writes them in one go. The data is not copied: it must live until save().
class SafetensorsWriter {
 public:
  void metadata(const std::string& key, const std::string& value);
  void add(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape, const void* data);
  void add(const std::string& name, const std::vector<int64_t>& shape, const float* data) {
    add(name, "F32", shape, data);
  }

  // Replaces the file in one step, and keeps what it replaced as `previous`, where that is named (atomic_file.h). Equal
  // tensors and metadata give equal files, byte for byte.
  void save(const std::string& path, const std::string& previous = "") const;

 private:
  struct Tensor {
    std::string dtype;
    std::vector<int64_t> shape;
    const void* data;
    uint64_t size;  // bytes
  };
  std::string header() const;

  std::map<std::string, std::string> metadata_;
  std::vector<std::string> names_;  // in the order of the file
  std::map<std::string, Tensor> tensors_;
};

}  // namespace petroglyph
