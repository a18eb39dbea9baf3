// llm.c's model file, gpt2_124M.bin: GPT-2 in one file, its arrays one after another for all blocks at once.
//
//   int32[256]   20240326, version 3 (float32) or 5 (bfloat16), maximal length, vocabulary, blocks, heads, width, padded vocabulary
//   the arrays   in the order of llm_c.cpp, every product's matrix (out,in)
#pragma once

#include <functional>

#include "base/json.h"
#include "exchange/weights.h"

namespace petroglyph {

struct LlmCFile {
  Json config;      // of our transformer
  Weights weights;  // under our own names
};

// Whether a file begins as llm.c's does.
bool is_llm_c(const MappedFile& file);
LlmCFile open_llm_c(const std::string& path);

// A parameter of ours by its name.
using OwnValues = std::function<std::vector<float>(const std::string& name)>;
// Writes GPT-2 of this configuration; the vocabulary is padded as llm.c pads it.
void save_llm_c(const std::string& path, const Json& config, bool bfloat, const OwnValues& values);

}  // namespace petroglyph
