// The receptive field of a model: the gradient of its last prediction with respect to the embedding at each position
// (regular_gpt, section 7.4 and figure 4; the method is from Chi et al. 2022, "Receptive Field Alignment Enables
// Transformer Length Extrapolation").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/model.h"

namespace petroglyph {

struct ReceptiveField {
  // (T): |∂f/∂e_i|, where f is the sum of the last position's logits and e_i the embedding of position i, before any
  // scale factor of the model
  std::vector<double> norms;
  std::vector<double> cumulative;  // (T): at j, the fraction of the j + 1 most recent positions
};
// Tokens (T) for the model `name` with this configuration and the parameters of `trained`. It works for any model with
// a token embedding, and for the RNN, whose embedding is a column of a weight matrix.
ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens);

}  // namespace petroglyph
