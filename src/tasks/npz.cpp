#include "tasks/npz.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// The bytes of a file under a name for complaints, and numbers in them; nothing outside them is ever touched.
class Bytes {
 public:
  Bytes(const unsigned char* data, uint64_t size, std::string name)
      : data_(data), size_(size), name_(std::move(name)) {}

  uint64_t size() const { return size_; }
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

// ---- The archive --------------------------------------------------------------------------------------------------
//
// A zip file is read from its end: a record there says where the central directory lies, whose entries say where the members
// do. Numbers that do not fit into 32 bits are all ones there and stand in 64 bits elsewhere (APPNOTE, 4.3 and 4.5.3).

struct Member {
  std::string name;
  int method;  // 0: stored
  uint64_t stored_size, size, header;
};

struct Directory {
  uint64_t begin, members;
};

constexpr uint64_t END_SIZE = 22, LONGEST_COMMENT = 0xFFFF, ALL_ONES = 0xFFFFFFFF;
constexpr std::string_view END = "PK\5\6", END_64 = "PK\6\6", LOCATOR_64 = "PK\6\7", ENTRY = "PK\1\2", LOCAL = "PK\3\4";

Directory find_directory(const Bytes& file) {
  const uint64_t most = std::min(file.size(), END_SIZE + LONGEST_COMMENT);
  for (uint64_t back = END_SIZE; back <= most; ++back) {
    const uint64_t end = file.size() - back;
    if (file.text(end, 4) != END || file.number(end + 20, 2) != back - END_SIZE) continue;
    const Directory directory{file.number(end + 16, 4), file.number(end + 10, 2)};
    if (directory.begin != ALL_ONES && directory.members != 0xFFFF) return directory;
    if (end < 20 || file.text(end - 20, 4) != LOCATOR_64) return directory;
    const uint64_t end_64 = file.number(end - 12, 8);
    if (file.text(end_64, 4) != END_64) file.fail("is truncated or damaged");
    return {file.number(end_64 + 48, 8), file.number(end_64 + 32, 8)};
  }
  file.fail("is no .npz file, or truncated: it does not end as a zip archive does");
}

// The numbers of an entry that are all ones stand, in this order, in its extra field 1.
void read_large_numbers(Member& member, const Bytes& extra) {
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const uint64_t id = extra.number(at, 2), size = extra.number(at + 2, 2);
    const Bytes field = extra.part(at + 4, size, extra.name());
    at += 4 + size;
    if (id != 1) continue;
    uint64_t next = 0;
    for (uint64_t* number : {&member.size, &member.stored_size, &member.header})
      if (*number == ALL_ONES) {
        *number = field.number(next, 8);
        next += 8;
      }
  }
}

std::vector<Member> read_directory(const Bytes& file) {
  const Directory directory = find_directory(file);
  std::vector<Member> members;
  uint64_t at = directory.begin;
  for (uint64_t i = 0; i < directory.members; ++i) {
    if (file.text(at, 4) != ENTRY) file.fail("is truncated or damaged");
    const uint64_t name = file.number(at + 28, 2), extra = file.number(at + 30, 2), comment = file.number(at + 32, 2);
    Member member{std::string(file.text(at + 46, name)), static_cast<int>(file.number(at + 10, 2)),
                  file.number(at + 20, 4), file.number(at + 24, 4), file.number(at + 42, 4)};
    read_large_numbers(member, file.part(at + 46 + name, extra, file.name()));
    members.push_back(std::move(member));
    at += 46 + name + extra + comment;
  }
  return members;
}

Bytes open_member(const Bytes& file, const std::string& name) {
  std::vector<std::string> names;
  for (const Member& member : read_directory(file)) {
    if (member.name != name + ".npy") {
      names.push_back(member.name);
      continue;
    }
    const std::string where = file.name() + ": array " + name;
    if (member.method != 0)
      throw Error(where + " is compressed; numpy.savez stores arrays uncompressed, savez_compressed does not");
    if (file.text(member.header, 4) != LOCAL || member.stored_size != member.size) file.fail("is truncated or damaged");
    const uint64_t begin = member.header + 30 + file.number(member.header + 26, 2) + file.number(member.header + 28, 2);
    return file.part(begin, member.size, where);
  }
  file.fail("has no array " + name + (names.empty() ? "" : ", only " + join(names, ", ")));
}

// ---- The array ----------------------------------------------------------------------------------------------------

// What follows 'KEY': in the header, which is a Python dictionary: {'descr': '<i8', 'fortran_order': False, 'shape': (3, 2), }
std::string_view value_of(const Bytes& member, std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) member.fail("has no " + std::string(key) + " in its header");
  return trim(header.substr(at + key.size()));
}

std::vector<int64_t> parse_shape(const Bytes& member, std::string_view words) {
  const size_t end = words.find(')');
  if (words.empty() || words[0] != '(' || end == std::string_view::npos) member.fail("has no shape in its header");
  std::vector<int64_t> shape;
  for (const std::string& word : split(words.substr(1, end - 1), ',')) {
    if (trim(word).empty()) continue;  // behind the last comma
    const auto length = parse_integer(trim(word));
    if (!length || *length < 0 || *length > int64_t(1) << 40) member.fail("has a bad shape " + std::string(words));
    shape.push_back(*length);
  }
  return shape;
}

}  // namespace

NpyArray find_array(const MappedFile& mapped, const std::string& name) {
  const Bytes member = open_member({mapped.data(), mapped.size(), mapped.path()}, name);
  if (member.size() < 10 || member.text(0, 6) != "\x93NUMPY") member.fail("is no .npy file");
  const int digits = member.number(6, 1) == 1 ? 2 : 4;  // of the header's length, by the format's version
  const uint64_t length = member.number(8, digits), begin = 8 + static_cast<uint64_t>(digits) + length;
  const std::string_view header = member.text(8 + static_cast<uint64_t>(digits), length);

  NpyArray array;
  const std::string_view type = value_of(member, header, "'descr':");
  const size_t quote = type.size() > 1 && type[0] == '\'' ? type.find('\'', 1) : std::string_view::npos;
  if (quote == std::string_view::npos) member.fail("has no single type in its header");
  array.type = type.substr(1, quote - 1);
  if (value_of(member, header, "'fortran_order':").substr(0, 5) != "False") member.fail("is in Fortran's order");
  array.shape = parse_shape(member, value_of(member, header, "'shape':"));
  array.data = member.part(begin, member.size() - begin, member.name()).data();
  const auto item = parse_integer(std::string_view(array.type).substr(std::min<size_t>(2, array.type.size())));
  if (!item || *item < 1 || *item > 16) member.fail("has the type " + array.type + ", expected whole numbers");
  uint64_t size = static_cast<uint64_t>(*item);
  for (const int64_t n : array.shape) {
    if (n > 0 && size > member.size() / static_cast<uint64_t>(n) + 1) member.fail("is truncated or damaged");
    size *= static_cast<uint64_t>(n);
  }
  if (size != member.size() - begin)
    member.fail(text("holds %llu bytes, its shape %s wants %llu",
                     static_cast<unsigned long long>(member.size() - begin), shape_text(array.shape).c_str(),
                     static_cast<unsigned long long>(size)));
  return array;
}

}  // namespace petroglyph
