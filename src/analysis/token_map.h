// Which tokens of a text a model's predictions depend on: for each predicted token, how strongly the embedding of
// each earlier token changes its log-probability.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/receptive_field.h"

namespace petroglyph {

struct TokenMap {
  std::vector<int32_t> said;        // (T): the text's next token; after the last one, the likeliest token
  std::vector<double> probability;  // (T): the model's probability for it
  std::vector<double> norms;        // (T,T): at t,i |∂ log p(said_t)/∂e_i|, receptive_field.h
};

// Throws Error for a model that has logits only at the end of its input.
TokenMap token_map(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                   const std::vector<int32_t>& tokens);

// Attention weights of one block, (T,T): the mean of its attention maps.
std::vector<double> mean_attention(Model& model, Ops& ops, const std::vector<int32_t>& tokens, size_t block);

// Each row (T) of a map (T,T) divided by its largest value.
std::vector<double> in_parts_of_largest(std::vector<double> map, size_t T);

}  // namespace petroglyph
