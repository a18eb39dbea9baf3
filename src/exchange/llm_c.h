// llm.c's model file, gpt2_124M.bin: GPT-2 in one file, array after array. An array holds one parameter of all blocks.
//
//   int32[256]   20240326, version 3 (float32) or 5 (bfloat16), context, vocabulary, blocks, heads, width,
//                padded vocabulary
//   the arrays   in the order of llm_c.cpp, the matrix of every linear layer as (out,in)
#pragma once

#include <functional>

#include "base/json.h"
#include "exchange/weights.h"

namespace petroglyph {

struct LlmCFile {
  Json config;      // of Petroglyph's transformer
  Weights weights;  // under Petroglyph's names
};

// Whether a file begins with llm.c's header.
bool is_llm_c(const MappedFile& file);
LlmCFile open_llm_c(const std::string& path);

// Returns a parameter by its Petroglyph name.
using OwnValues = std::function<std::vector<float>(const std::string& name)>;
// Writes a GPT-2 model with this configuration as float32; the vocabulary is padded as in llm.c.
void save_llm_c(const std::string& path, const Json& config, const OwnValues& values);

}  // namespace petroglyph
