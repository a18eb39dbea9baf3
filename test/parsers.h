// Everything here that reads a file which somebody else may have made or damaged: what the fuzzer (fuzz.cpp) and the
// storm of damaged files (damage.cpp) feed. Each takes the file or throws an Error; test/corpus/NAME/ has small good
// files of each, and others that a fuzzer found.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "cpu/make_cpu.h"
#include "exchange/families.h"
#include "exchange/foreign.h"
#include "ptx/decode.h"
#include "tasks/corpus.h"
#include "tasks/image_files.h"
#include "tokenizers/foreign_files.h"
#include "tokenizers/tokenizer.h"

namespace petroglyph {

struct Parser {
  const char *name, *suffix;
  void (*read)(const std::string& path);
};

inline void read_json(const std::string& path) {
  const Json json = Json::parse(read_file(path), path);
  if (!(Json::parse(json.text(), path) == json)) throw std::logic_error("a text that is another one when written");
}

inline void read_safetensors(const std::string& path) {
  const SafetensorsFile file(path);
  for (const std::string& name : file.names()) {
    if (file.entry(name).dtype == "F32" || file.entry(name).dtype == "F64") file.read_as_float(name);
  }
}

inline void read_log(const std::string& path) {
  const CsvTable table = read_csv(path);
  CsvLog::resume(path, table.names, static_cast<int64_t>(table.rows()));
}

inline void read_images(const std::string& path, const char* format) {
  const ImageFiles files({path}, format);
  for (int64_t i = 0; i < std::min<int64_t>(files.size(), 4); ++i) files.picture(i);
}

inline void use_tokenizer(const Tokenizer& tokenizer) {
  std::vector<int32_t> tokens;
  const std::string text = "the first one, the first\n";
  tokenizer.check(text, "text");
  tokenizer.encode(text, tokens);
  const std::string json = tokenizer.to_json().text();
  for (const char* key : {"\"lstrip\"", "\"rstrip\"", "\"space_before\""})  // which take and add spaces
    if (json.find(key) != std::string::npos) return;
  if (tokenizer.decode(tokens) != text) throw std::logic_error("a tokenizer that does not give its text back");
}

inline void read_tokenizer(const std::string& path) { use_tokenizer(*open_tokenizer(path, false)); }

// GPT-2's two files in one: the second begins with "#version".
inline void read_gpt2(const std::string& path) {
  const std::string both = read_file(path), folder = path + ".folder";
  const size_t cut = std::min(both.find("#version"), both.size());
  make_folder(folder);
  write_file_atomically(folder + "/vocab.json", both.substr(0, cut));
  write_file_atomically(folder + "/merges.txt", both.substr(cut));
  use_tokenizer(*find_tokenizer(folder));
}

// llm.c's, every tensor of it.
inline void read_model(const std::string& path) {
  static const auto ops = make_cpu(1);
  load_foreign(open_foreign(path), *ops);
}

inline void read_ptx(const std::string& path) {
  try {
    for (const ptx::Kernel& kernel : ptx::read_kernels(path)) ptx::decode(kernel);
  } catch (const ptx::Fault& fault) {
    throw Error(in_one_line(path + ": " + fault.what()));
  }
}

inline void read_shard(const std::string& path) {
  const auto tokenizer = open_tokenizer("bytes", false);
  const auto corpus = open_corpus(path, *tokenizer);
  std::vector<int32_t> tokens(static_cast<size_t>(corpus->size()));
  if (!tokens.empty()) corpus->read(0, corpus->size(), tokens.data());
}

inline const std::vector<Parser>& parsers() {
  static const std::vector<Parser> all = {
      {"json", ".json", read_json},
      {"safetensors", ".safetensors", read_safetensors},
      {"csv", ".csv", read_log},
      {"images", ".bin", [](const std::string& path) { read_images(path, "auto"); }},
      {"tokenizers", ".json", read_tokenizer},
      {"gpt2", ".json", read_gpt2},
      {"configs", ".json", [](const std::string& path) { translate(Json::parse(read_file(path), path), path); }},
      {"models", ".bin", read_model},
      {"ptx", ".ptx", read_ptx},
      {"shards", ".bin", read_shard},
  };
  return all;
}

}  // namespace petroglyph
