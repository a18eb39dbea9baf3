#include "tasks/npz.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "base/zip.h"

namespace petroglyph {

namespace {

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
  const ZipFile archive(mapped, ".npz file");
  if (!archive.has(name + ".npy")) {
    const std::vector<std::string> names = archive.names();
    throw Error(mapped.path() + ": has no array " + name + (names.empty() ? "" : ", only " + join(names, ", ")));
  }
  const Bytes member = archive.open(name + ".npy", mapped.path() + ": array " + name,
                                    "numpy.savez stores arrays uncompressed, savez_compressed does not");
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
