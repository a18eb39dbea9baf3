// Which tokens of a text a model's answers depend on: for each token that is said, how strongly the embedding of each one before it
// moves its log-probability.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/receptive_field.h"

namespace petroglyph {

struct TokenMap {
  std::vector<int32_t> said;        // (T): the token after each of the text's, and after the last one the likeliest
  std::vector<double> probability;  // (T): what the model gives it
  std::vector<double> norms;        // (T,T): at t,i |∂ log p(said_t)/∂e_i|, receptive_field.h
};

// Throws Error for a model that answers at the end of what it reads alone.
TokenMap token_map(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                   const std::vector<int32_t>& tokens);

// How much each position takes from each other one in a block of the model, (T,T): the mean of its attention maps.
std::vector<double> mean_attention(Model& model, Ops& ops, const std::vector<int32_t>& tokens, size_t block);

// Each row (T) of a map (T,T) in parts of its largest value.
std::vector<double> in_parts_of_largest(std::vector<double> map, size_t T);

}  // namespace petroglyph
