// The words nearest to a vector in the embedding space, and the next token that an MLP language model predicts after
// them (mlps_for_nlp, section 4.2, figures 13 and 14).
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "models/model.h"

namespace petroglyph {

struct Keyword {
  int32_t token;
  double cosine;  // cosine similarity of the token's embedding and the vector
};

// The `count` tokens whose embeddings, the rows of table (V,E), have the largest cosine similarity with the vector
// (E), largest first. Ties are sorted by token number. The similarity of a zero vector or a zero row is 0.
std::vector<Keyword> nearest_tokens(const std::vector<float>& table, const std::vector<double>& vector, int count);

// The likeliest next token after each of `tokens`, if all earlier positions of the context are embedded as zeros.
// `trained` is an mlp_lm with this configuration.
std::vector<int32_t> completions(const Json& config, const Model& trained, Ops& ops,
                                 const std::vector<int32_t>& tokens);

}  // namespace petroglyph
