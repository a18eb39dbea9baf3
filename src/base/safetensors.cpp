#include "base/safetensors.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/half.h"
#include "base/json.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr uint64_t LONGEST_HEADER = 100'000'000;  // the format's own limit
constexpr const char* METADATA = "__metadata__";
constexpr const char* DATA_KEY = "checksum_of_data";
constexpr const char* HEADER_KEY = "checksum_of_header";

// Bytes of one element, 0 for a type that we do not know.
uint64_t size_of(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "U8" || dtype == "I8" || dtype == "BOOL" || dtype == "F8_E4M3" || dtype == "F8_E5M2") return 1;
  return 0;
}

// Bytes of a tensor; nothing for an unknown type, a negative shape, or when 64 bits do not hold their number.
std::optional<uint64_t> bytes_of(const std::vector<int64_t>& shape, const std::string& dtype) {
  uint64_t bytes = size_of(dtype);
  if (bytes == 0 || std::any_of(shape.begin(), shape.end(), [](int64_t extent) { return extent < 0; })) return {};
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (int64_t extent : shape) {
    if (bytes > UINT64_MAX / static_cast<uint64_t>(extent)) return {};
    bytes *= static_cast<uint64_t>(extent);
  }
  return bytes;
}

std::string commas(uint64_t value) { return with_commas(static_cast<int64_t>(value)); }

void absorb_word(Checksum& checksum, const std::string& word) {
  const uint64_t length = word.size();  // so that no two rows of words are alike
  checksum.update(&length, sizeof length);
  checksum.update(word.data(), word.size());
}

// Checksum of a header's contents, independent of their order in the file. Tensors: name → a type and a shape.
template <class Tensors>
std::string header_checksum(const std::map<std::string, std::string>& metadata, const Tensors& tensors) {
  Checksum checksum;
  for (const auto& [key, value] : metadata) absorb_word(checksum, key), absorb_word(checksum, value);
  for (const auto& [name, tensor] : tensors) {
    absorb_word(checksum, name);
    absorb_word(checksum, tensor.dtype);
    checksum.update(tensor.shape.data(), tensor.shape.size() * sizeof(int64_t));
  }
  return checksum.hex();
}

}  // namespace

int64_t SafetensorsFile::Entry::count() const { return static_cast<int64_t>((end - begin) / size_of(dtype)); }

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const std::string_view text = header();
  data_begin_ = sizeof(uint64_t) + text.size();
  const Json json = Json::parse(text, path + ": header");
  for (const auto& [name, value] : json.members()) {
    try {
      name == METADATA ? parse_metadata(value) : parse_entry(name, value);
    } catch (const Error& error) {
      fail(name + ": " + error.what());
    }
  }
  check_layout();
  check_header();
  check_data();
}

void SafetensorsFile::fail(const std::string& complaint) const { throw Error(path() + ": " + complaint); }

bool is_torch(const MappedFile& file) {
  const std::string_view bytes = file.text();
  if (bytes.size() <= 8 || bytes[8] == '{') return false;  // a safetensors header may have any length
  return bytes.substr(0, 4) == "PK\3\4" || (bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5);
}

void refuse_torch(const std::string& path) {
  throw Error(path + ": is a PyTorch file. Convert it first: python3 data/torch_to_safetensors.py " + path + " FOLDER");
}

std::string_view SafetensorsFile::header() const {
  if (is_torch(file_)) refuse_torch(path());
  uint64_t length = 0;
  if (file_.size() > sizeof length) std::memcpy(&length, file_.data(), sizeof length);
  if (length == 0 || length > LONGEST_HEADER || file_.size() < sizeof length + length ||
      file_.text()[sizeof length] != '{')
    fail(counted(static_cast<int64_t>(file_.size()), "byte") + " long: truncated, or not a safetensors file");
  return file_.text().substr(sizeof length, length);
}

void SafetensorsFile::parse_metadata(const Json& object) {
  for (const auto& [key, value] : object.members())
    (key == DATA_KEY ? checksum_of_data_ : key == HEADER_KEY ? checksum_of_header_ : metadata_[key]) = value.string();
}

void SafetensorsFile::check_header() const {
  if (checksum_of_data_.empty() != checksum_of_header_.empty()) fail("it has one checksum of two: damaged");
  if (checksum_of_header_.empty()) return;
  const std::string found = header_checksum(metadata_, entries_);
  if (found != checksum_of_header_)
    fail("checksum of the header is " + found + ", the header states " + checksum_of_header_ + ": damaged");
}

void SafetensorsFile::parse_entry(const std::string& name, const Json& object) {
  Entry entry;
  entry.dtype = object.at("dtype").string();
  for (const Json& extent : object.at("shape").items()) entry.shape.push_back(extent.integer());
  const std::vector<Json>& offsets = object.at("data_offsets").items();
  if (object.members().size() != 3 || offsets.size() != 2) throw Error("expected dtype, shape and two data_offsets");
  const int64_t begin = offsets[0].integer(), end = offsets[1].integer();
  const std::optional<uint64_t> bytes = bytes_of(entry.shape, entry.dtype);
  if (begin < 0 || end < begin || !bytes || *bytes != static_cast<uint64_t>(end - begin))
    throw Error("the shape " + shape_text(entry.shape) + " of type " + entry.dtype + " does not take the bytes " +
                std::to_string(begin) + " to " + std::to_string(end));
  entry.begin = static_cast<uint64_t>(begin);
  entry.end = static_cast<uint64_t>(end);
  names_.push_back(name);
  entries_[name] = entry;
}

void SafetensorsFile::check_layout() const {
  std::multimap<std::pair<uint64_t, uint64_t>, const std::string*> order;
  for (const auto& [name, entry] : entries_) order.emplace(std::pair(entry.begin, entry.end), &name);
  uint64_t at = 0;
  for (const auto& [bytes, name] : order) {
    if (bytes.first != at)
      fail("tensor " + *name + " begins at byte " + commas(bytes.first) + " of the data, expected " + commas(at));
    at = bytes.second;
  }
  if (file_.size() != data_begin_ + at)
    fail(commas(file_.size()) + " bytes long, expected " + commas(data_begin_ + at) + ": truncated or damaged");
}

void SafetensorsFile::check_data() const {
  if (checksum_of_data_.empty()) return;
  Checksum checksum;
  for (const auto& [name, entry] : entries_)
    checksum.update(data_of(entry), static_cast<size_t>(entry.end - entry.begin));
  if (checksum.hex() != checksum_of_data_)
    fail("checksum of the data is " + checksum.hex() + ", its header states " + checksum_of_data_ + ": damaged");
}

const SafetensorsFile::Entry* SafetensorsFile::find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const Entry* found = find(name);
  if (found == nullptr) fail("it has no tensor " + name);
  return *found;
}

const std::string& SafetensorsFile::metadata(const std::string& key) const {
  const auto found = metadata_.find(key);
  if (found == metadata_.end()) fail("its metadata lacks \"" + key + "\"");
  return found->second;
}

void SafetensorsFile::expect_shape(const std::string& name, const std::vector<int64_t>& shape) const {
  const Entry& found = entry(name);
  if (found.shape == shape) return;
  fail("tensor " + name + " has shape " + shape_text(found.shape) + ", expected " + shape_text(shape));
}

std::vector<float> SafetensorsFile::read_as_float(const std::string& name) const {
  std::vector<float> values(static_cast<size_t>(entry(name).count()));
  read_as_float(name, 0, static_cast<int64_t>(values.size()), values.data());
  return values;
}

void SafetensorsFile::read_as_float(const std::string& name, int64_t first, int64_t count, float* values) const {
  const Entry& found = entry(name);
  // The bytes may lie at any address.
  const auto convert = [&](auto type, auto to_float) {
    const unsigned char* at = data_of(found) + static_cast<uint64_t>(first) * sizeof type;
    for (int64_t i = 0; i < count; ++i, at += sizeof type) {
      std::memcpy(&type, at, sizeof type);
      values[i] = to_float(type);
    }
  };
  const auto narrow = [&](double value) {
    const auto rounded = static_cast<float>(value);
    if (overflowed(value, rounded)) fail("tensor " + name + " has " + exact_text(value) + ", too large for 32 bits");
    return rounded;
  };
  if (found.dtype == "F32") return convert(float(), [](float value) { return value; });
  if (found.dtype == "F64") return convert(double(), narrow);
  if (found.dtype == "F16") return convert(uint16_t(), from_f16);
  if (found.dtype == "BF16") return convert(uint16_t(), from_bf16);
  fail("tensor " + name + " is of type " + found.dtype + ", expected F32, F64, F16 or BF16");
}

bool is_safetensors(const std::string& path) {
  if (std::filesystem::path(path).extension() == ".safetensors") return true;
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return false;
  const MappedFile file(path);
  uint64_t length = 0;
  if (file.size() <= sizeof length) return false;
  std::memcpy(&length, file.data(), sizeof length);
  return length <= LONGEST_HEADER && file.text()[sizeof length] == '{';
}

void SafetensorsWriter::metadata(const std::string& key, const std::string& value) {
  if (key == DATA_KEY || key == HEADER_KEY) throw Error("metadata \"" + key + "\" is reserved for the checksums");
  metadata_[key] = value;
}

void SafetensorsWriter::add(const std::string& name, const std::string& dtype, const std::vector<int64_t>& shape,
                            const void* data) {
  const std::optional<uint64_t> size = bytes_of(shape, dtype);
  if (!size) throw Error("tensor " + name + ": impossible shape " + shape_text(shape) + " of type " + dtype);
  if (name == METADATA || !tensors_.insert({name, {dtype, shape, data, *size}}).second)
    throw Error("tensor " + name + ": this name was used before");
  names_.push_back(name);
}

std::string SafetensorsWriter::header() const {
  Checksum data;
  for (const auto& [name, tensor] : tensors_) data.update(tensor.data, tensor.size);
  Json metadata = Json::object().set(DATA_KEY, data.hex()).set(HEADER_KEY, header_checksum(metadata_, tensors_));
  for (const auto& [key, value] : metadata_) metadata.set(key, value);

  Json header = Json::object();
  header.set(METADATA, metadata);
  uint64_t begin = 0;
  for (const std::string& name : names_) {
    const Tensor& tensor = tensors_.at(name);
    Json shape = Json::array(), offsets = Json::array();
    for (int64_t extent : tensor.shape) shape.push(extent);
    offsets.push(begin).push(begin + tensor.size);
    begin += tensor.size;
    header.set(name, Json::object().set("dtype", tensor.dtype).set("shape", shape).set("data_offsets", offsets));
  }
  std::string text = header.text();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data is aligned
  return text;
}

void SafetensorsWriter::save(const std::string& path, const std::string& previous) const {
  const std::string text = header();
  const uint64_t length = text.size();
  if (length > LONGEST_HEADER) throw Error(path + ": cannot write: names and metadata of " + commas(length) + " bytes");
  const auto write = [&](OutputFile& file) {
    file.write(&length, sizeof length);
    file.write(text);
    for (const std::string& name : names_) file.write(tensors_.at(name).data, tensors_.at(name).size);
  };
  write_file_atomically(path, write, previous);
}

}  // namespace petroglyph
