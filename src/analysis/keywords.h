// Which words stand behind a vector of the space that tokens are embedded in, and how an MLP language model goes on from them
// (mlps_for_nlp, section 4.2, figures 13 and 14).
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "models/model.h"

namespace petroglyph {

struct Keyword {
  int32_t token;
  double cosine;  // of the angle between the token's embedding and the vector
};

// The `count` tokens whose embeddings, rows of table (V,E), point most nearly where the vector (E) points; the nearest first. Equal
// ones stand in the order of their numbers; a vector or a row of zeros has the cosine 0.
std::vector<Keyword> nearest_tokens(const std::vector<float>& table, const std::vector<double>& vector, int count);

// The likeliest next token after each of `tokens`, where all that stood before it is embedded as zeros. `trained` is an mlp_lm with
// this configuration.
std::vector<int32_t> completions(const Json& config, const Model& trained, Ops& ops,
                                 const std::vector<int32_t>& tokens);

}  // namespace petroglyph
