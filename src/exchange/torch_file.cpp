#include "exchange/torch_file.h"

#include <cstring>

#include "base/atomic_file.h"
#include "base/half.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr const char* COMPRESSED = "torch.save stores its members as they are";

std::string folder_of(const ZipFile& archive, const std::string& path) {
  for (const std::string& name : archive.names()) {
    const size_t at = name.find("/data.pkl");
    if (at != std::string::npos && at + 9 == name.size()) return name.substr(0, at + 1);
  }
  throw Error(path + ": has no data.pkl: not a file of torch.save");
}

// Bytes of an element, 0 for a type that no weights have.
int64_t size_of(const std::string& type) {
  if (type == "torch.FloatStorage") return 4;
  if (type == "torch.DoubleStorage") return 8;
  return type == "torch.HalfStorage" || type == "torch.BFloat16Storage" ? 2 : 0;
}

template <class T, class ToFloat>
void convert(const unsigned char* bytes, std::vector<float>& values, ToFloat to_float) {
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    values[i] = to_float(value);
  }
}

}  // namespace

TorchFile::TorchFile(const std::string& path, const std::vector<std::string>& keys)
    : file_(path),
      archive_(file_, "file of torch.save"),
      folder_(folder_of(archive_, path)),
      pickle_(archive_.open_checked(folder_ + "data.pkl", path, COMPRESSED).all(), path) {
  if (archive_.has(folder_ + "byteorder") && archive_.open(folder_ + "byteorder", path, COMPRESSED).all() != "little")
    fail("its numbers are not in little-endian order");
  const Pickle::Value* dictionary = &pickle_.root();
  for (const std::string& key : keys)
    if (const Pickle::Value* found = pickle_.find(pickle_.root(), key)) {
      dictionary = found;
      break;
    }
  if (dictionary->kind != Pickle::Kind::DICTIONARY) fail("has no dictionary of tensors");
  for (size_t i = 0; i + 1 < dictionary->items.size(); i += 2) {
    const Pickle::Value& name = pickle_.at(dictionary->items[i]);
    const Pickle::Value* call = rebuilt(pickle_.at(dictionary->items[i + 1]));
    if (name.kind == Pickle::Kind::STRING && call) add(name.word, *call);
  }
}

void TorchFile::fail(const std::string& complaint) const { throw Error(file_.path() + ": " + complaint); }

// The arguments of _rebuild_tensor_v2, within a _rebuild_parameter too; null for anything else.
const Pickle::Value* TorchFile::rebuilt(const Pickle::Value& value) const {
  const Pickle::Value* at = &value;
  for (int depth = 0; depth < 2; ++depth) {
    if (at->kind != Pickle::Kind::CALL || at->items.size() != 2) return nullptr;
    const std::string& function = pickle_.at(at->items[0]).word;
    const Pickle::Value& arguments = pickle_.at(at->items[1]);
    if (arguments.kind != Pickle::Kind::LIST || arguments.items.empty()) return nullptr;
    if (function == "torch._utils._rebuild_tensor_v2") return &arguments;
    if (function != "torch._utils._rebuild_parameter") return nullptr;
    at = &pickle_.at(arguments.items[0]);
  }
  return nullptr;
}

Shape TorchFile::integers(const Pickle::Value& list) const {
  Shape numbers;
  for (const Pickle::Id id : list.items) {
    const int64_t number = pickle_.at(id).integer;
    if (pickle_.at(id).kind != Pickle::Kind::INTEGER || number < 0 || number > int64_t(1) << 40)
      fail("a tensor's shape is damaged");
    numbers.push_back(number);
  }
  return numbers;
}

// (('storage', torch.FloatStorage, '0', 'cpu', elements), first, shape, strides, …)
void TorchFile::add(const std::string& name, const Pickle::Value& arguments) {
  if (arguments.items.size() < 4) fail("tensor " + name + " is damaged");
  const Pickle::Value& persistent = pickle_.at(arguments.items[0]);
  const bool known = persistent.kind == Pickle::Kind::PERSISTENT && persistent.items.size() == 1;
  const Pickle::Value* storage = known ? &pickle_.at(persistent.items[0]) : nullptr;
  if (!storage || storage->items.size() < 3) fail("tensor " + name + " has no storage");
  Tensor tensor;
  tensor.type = pickle_.at(storage->items[1]).word;
  tensor.storage = pickle_.at(storage->items[2]).word;
  tensor.first = pickle_.at(arguments.items[1]).integer;
  tensor.shape = integers(pickle_.at(arguments.items[2]));
  tensor.strides = integers(pickle_.at(arguments.items[3]));
  check_room(name, tensor);
  const std::string compiled = "_orig_mod.";  // torch.compile's
  tensors_[name.rfind(compiled, 0) == 0 ? name.substr(compiled.size()) : name] = tensor;
}

// A shape may say anything; memory is asked for on the word of one that its storage has room for.
void TorchFile::check_room(const std::string& name, const Tensor& tensor) const {
  const int64_t element = size_of(tensor.type);
  if (element == 0) return;  // read() refuses it
  const std::string where = file_.path() + ": tensor " + name;
  const Bytes storage = archive_.open(folder_ + "data/" + tensor.storage, where, COMPRESSED);
  const auto room = static_cast<int64_t>(storage.size()) / element;
  int64_t count = 1;
  for (const int64_t size : tensor.shape) {
    if (size > 0 && count > room / size) storage.fail("is truncated or damaged");
    count *= size;
  }
}

std::vector<std::string> TorchFile::names() const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

const Shape* TorchFile::shape(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second.shape;
}

std::vector<float> TorchFile::read(const std::string& name) const {
  const Tensor& tensor = tensors_.at(name);
  const std::string where = file_.path() + ": tensor " + name;
  const int64_t element = size_of(tensor.type);
  if (element == 0) throw Error(where + " is of " + tensor.type + ", expected 32, 64 or 16 bits of a fraction");
  const Bytes storage = archive_.open_checked(folder_ + "data/" + tensor.storage, where, COMPRESSED);
  const auto room = static_cast<int64_t>(storage.size()) / element;
  int64_t count = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.strides.size() != tensor.shape.size() || (tensor.shape[d] > 1 && tensor.strides[d] != count))
      throw Error(where + " is not stored row by row");
    count *= tensor.shape[d];
  }
  if (tensor.first < 0 || tensor.first > room || count > room - tensor.first) storage.fail("is truncated or damaged");
  const unsigned char* bytes = storage.data() + tensor.first * element;
  std::vector<float> values(static_cast<size_t>(count));
  const auto narrow = [&](double value) {
    const auto rounded = static_cast<float>(value);
    if (overflowed(value, rounded)) throw Error(where + " has " + exact_text(value) + ", more than 32 bits can say");
    return rounded;
  };
  if (tensor.type == "torch.FloatStorage") convert<float>(bytes, values, [](float v) { return v; });
  if (tensor.type == "torch.DoubleStorage") convert<double>(bytes, values, narrow);
  if (tensor.type == "torch.HalfStorage") convert<uint16_t>(bytes, values, from_f16);
  if (tensor.type == "torch.BFloat16Storage") convert<uint16_t>(bytes, values, from_bf16);
  return values;
}

// ---- Out ------------------------------------------------------------------------------------------------------------

namespace {

// Instructions of a pickle (protocol 2) that leave a value on the stack.
std::string word(std::string_view letters) { return "X" + little(letters.size()) + std::string(letters); }
std::string integer(int64_t value) {
  if (value == static_cast<int32_t>(value)) return "J" + little(static_cast<uint64_t>(value));
  return "\x8A\x08" + little(static_cast<uint64_t>(value), 8);
}
std::string tuple(const Shape& numbers) {
  std::string out = "(";
  for (const int64_t number : numbers) out += integer(number);
  return out + "t";
}

// {key: value, …}: its keys are words, its values booleans, words, objects and whole numbers.
std::string dictionary(const Json& object) {
  std::string out = "}(";
  for (const auto& [key, value] : object.members()) {
    out += word(key);
    switch (value.kind()) {
      case Json::Kind::Boolean: out += value.boolean() ? "\x88" : "\x89"; break;
      case Json::Kind::Number: out += integer(value.integer()); break;
      case Json::Kind::String: out += word(value.string()); break;
      default: out += dictionary(value);
    }
  }
  return out + "u";
}

// _rebuild_tensor_v2(('storage', torch.FloatStorage, '0', 'cpu', elements), 0, shape, strides, False, OrderedDict())
std::string call(const TorchTensor& tensor, const char* storage_type) {
  Shape strides(tensor.shape.size(), 1);
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * tensor.shape[d];
  return std::string("ctorch._utils\n_rebuild_tensor_v2\n((") + word("storage") + "ctorch\n" + storage_type + "\n" +
         word(std::to_string(tensor.storage)) + word("cpu") + integer(elements(tensor.shape)) + "tQ" + integer(0) +
         tuple(tensor.shape) + tuple(strides) +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

}  // namespace

void write_torch_file(const std::string& path, const std::string& key, const std::vector<TorchTensor>& tensors,
                      const std::vector<std::string>& storages, Precision precision, const Json& beside) {
  const char* const type = precision == Precision::F32   ? "FloatStorage"
                           : precision == Precision::F16 ? "HalfStorage"
                                                         : "BFloat16Storage";
  std::string pickle = "\x80\2" + dictionary(beside) + "(" + word(key) + "}(";
  for (const TorchTensor& tensor : tensors) pickle += word(tensor.name) + call(tensor, type);
  pickle += "uu.";
  write_file_atomically(path, [&](OutputFile& file) {
    ZipWriter archive(file);
    archive.add("ckpt/data.pkl", pickle);
    archive.add("ckpt/byteorder", "little");
    for (size_t i = 0; i < storages.size(); ++i) archive.add("ckpt/data/" + std::to_string(i), storages[i]);
    archive.add("ckpt/version", "3\n");
    archive.finish();
  });
}

}  // namespace petroglyph
