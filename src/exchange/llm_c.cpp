#include "exchange/llm_c.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/half.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "exchange/families.h"

namespace petroglyph {

namespace {

constexpr int32_t MAGIC = 20240326, FLOATS = 3, BFLOATS = 5;
constexpr uint64_t HEADER = 256 * sizeof(int32_t);
constexpr int64_t PADDING = 128;  // the vocabulary is padded to a multiple of it

struct Sizes {
  int64_t context, vocab, layers, heads, width, padded;
};

struct FileArray {
  std::string name;  // Petroglyph's
  Shape shape;
  int64_t rows;  // rows in the file: the last ones may be padding
};

// The arrays in the order of the file.
std::vector<FileArray> arrays(const Sizes& s) {
  const int64_t D = s.width;
  std::vector<FileArray> list = {{"token_embedding.weight", {s.vocab, D}, s.padded},
                                 {"position_embedding.weight", {s.context, D}, s.context}};
  const std::vector<std::pair<const char*, Shape>> of_blocks = {{"norm_1.weight", {D}},
                                                                {"norm_1.bias", {D}},
                                                                {"attention.qkv.weight", {3 * D, D}},
                                                                {"attention.qkv.bias", {3 * D}},
                                                                {"attention.out.weight", {D, D}},
                                                                {"attention.out.bias", {D}},
                                                                {"norm_2.weight", {D}},
                                                                {"norm_2.bias", {D}},
                                                                {"mlp.up.weight", {4 * D, D}},
                                                                {"mlp.up.bias", {4 * D}},
                                                                {"mlp.down.weight", {D, 4 * D}},
                                                                {"mlp.down.bias", {D}}};
  for (const auto& [name, shape] : of_blocks)
    for (int64_t l = 0; l < s.layers; ++l)
      list.push_back({"blocks." + std::to_string(l) + "." + name, shape, shape[0]});
  for (const char* name : {"final_norm.weight", "final_norm.bias"}) list.push_back({name, {D}, D});
  return list;
}

// float32 or bfloat16, depending on `size`, the bytes of a number.
std::vector<float> read_numbers(const MappedFile& file, uint64_t begin, int64_t count, uint64_t size) {
  std::vector<float> values(static_cast<size_t>(count));
  const unsigned char* bytes = file.data() + begin;
  if (size == sizeof(float)) {
    std::memcpy(values.data(), bytes, values.size() * size);
    return values;
  }
  for (float& value : values) {
    uint16_t half;
    std::memcpy(&half, bytes, sizeof half);
    value = from_bf16(half);
    bytes += size;
  }
  return values;
}

Weights read_arrays(std::shared_ptr<const MappedFile> file, const Sizes& s, uint64_t size) {
  Weights weights{file->path(), {}};
  uint64_t end = HEADER;
  for (const FileArray& array : arrays(s)) {
    const int64_t count = elements(array.shape);
    weights.tensors[array.name] = {array.shape,
                                   [file, end, count, size] { return read_numbers(*file, end, count, size); }};
    end += static_cast<uint64_t>(count / array.shape[0] * array.rows) * size;
  }
  if (file->size() != end)
    throw Error(file->path() + ": " + with_commas(static_cast<int64_t>(file->size())) +
                " bytes long, its header promises " + with_commas(static_cast<int64_t>(end)) +
                (file->size() < end ? ": truncated" : ": damaged"));
  return weights;
}

}  // namespace

bool is_llm_c(const MappedFile& file) {
  int32_t magic = 0;
  if (file.size() >= sizeof magic) std::memcpy(&magic, file.data(), sizeof magic);
  return magic == MAGIC;
}

LlmCFile open_llm_c(const std::string& path) {
  const auto file = std::make_shared<const MappedFile>(path);
  if (file->size() < HEADER) throw Error(path + ": too short for a model of llm.c: truncated");
  int32_t header[8];
  std::memcpy(header, file->data(), sizeof header);
  if (header[1] != FLOATS && header[1] != BFLOATS)
    throw Error(path + text(": a model of llm.c's version %d, expected %d (float32) or %d (bfloat16)", header[1],
                            FLOATS, BFLOATS));
  const Sizes s{header[2], header[3], header[4], header[5], header[6], header[7]};
  const char* const names[] = {"maximal length", "vocabulary", "blocks", "heads", "width", "padded vocabulary"};
  const int32_t most[] = {1 << 24, 1 << 24, 1 << 10, 1 << 16, 1 << 16, 1 << 24};
  for (int i = 0; i < 6; ++i)
    if (header[2 + i] < 1 || header[2 + i] > most[i])
      throw Error(path + text(": %s %d, expected 1 to %d: damaged", names[i], header[2 + i], most[i]));
  if (s.padded < s.vocab || s.width % s.heads != 0) throw Error(path + ": sizes that do not fit each other: damaged");
  Json config = transformer_config(s.vocab, s.context, s.width, 4 * s.width, s.layers, s.heads).set("tied_head", true);
  return {std::move(config), read_arrays(file, s, header[1] == FLOATS ? 4 : 2)};
}

void save_llm_c(const std::string& path, const Json& config, const OwnValues& values) {
  const auto size = [&](const char* key) { return config.at(key).integer(); };
  const int64_t vocab = size("vocab"), padded = (vocab + PADDING - 1) / PADDING * PADDING;
  const Sizes s{size("context"), vocab, size("layers"), size("heads"), size("width"), padded};
  std::vector<int32_t> header(HEADER / sizeof(int32_t));
  header[0] = MAGIC;
  header[1] = FLOATS;
  const int64_t sizes[] = {s.context, s.vocab, s.layers, s.heads, s.width, s.padded};
  std::copy(std::begin(sizes), std::end(sizes), header.begin() + 2);
  write_file_atomically(path, [&](OutputFile& file) {
    file.write(header.data(), HEADER);
    for (const FileArray& array : arrays(s)) {
      std::vector<float> numbers = values(array.name);
      numbers.resize(static_cast<size_t>(elements(array.shape) / array.shape[0] * array.rows));  // pads with zeros
      file.write(numbers.data(), numbers.size() * sizeof(float));
    }
  });
}

}  // namespace petroglyph
