// How far back a model looks: the gradient of its last answer with respect to what enters at each position (regular_gpt, section 7.4
// and figure 4; the tool is that of Chi et al. 2022, "Receptive Field Alignment Enables Transformer Length Extrapolation").
#pragma once

#include <cstdint>
#include <vector>

#include "base/json.h"
#include "models/model.h"

namespace petroglyph {

struct ReceptiveField {
  std::vector<double>
      norms;  // (B,T): g_i = |∂f/∂e_i| for f the sum of the last position's logits and e_i position i's embedding
  std::vector<double> cumulative;  // (B,T): at j, Σ g over the j + 1 most recent positions, as a share of all
};

// Of the model `name` with this configuration and the parameters of `trained`, on tokens (B,T). Any model with a token embedding, or
// the RNN, whose embedding is the column of a weight. A model that multiplies its embeddings by a number has e_i before that.
ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens, int batch, int length);

}  // namespace petroglyph
