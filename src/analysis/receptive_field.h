// Gradients with respect to the embedding at each position.
//
// The receptive field of a model: the gradient of its last prediction with respect to the embedding at each position
// (regular_gpt, section 7.4 and figure 4; the method is from Chi et al. 2022, "Receptive Field Alignment Enables
// Transformer Length Extrapolation").
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/json.h"
#include "models/model.h"

namespace petroglyph {

// A trained model on a sequence in which every position has its own embedding. It works for any model with a token
// embedding, and for the RNN, whose embedding is a column of a weight matrix.
class PositionGradients {
 public:
  // Tokens (T) for the model `name` with this configuration and the parameters of `trained`.
  PositionGradients(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                    const std::vector<int32_t>& tokens);

  int64_t rows() const { return model_->logit_rows(input_); }  // of logits: T, or 1 if they are of the end only
  std::vector<real> logits(int64_t row) const;                 // (V) of `trained`
  // (T): |∂f/∂e_i|, where e_i is the embedding of position i, before any scale factor of the model; for f with the
  // derivatives dlogits (V) by one row of the logits.
  std::vector<double> norms(int64_t row, const std::vector<real>& dlogits);

 private:
  Ops& ops_;
  int classes_;  // V
  Tokens ids_;
  std::unique_ptr<Model> model_;
  Input input_;
  const real* logits_;
  Tensor dlogits_;  // (rows,V'), V' ≥ V
};

struct ReceptiveField {
  std::vector<double> norms;       // (T): for f = the sum of the last position's logits
  std::vector<double> cumulative;  // (T): at j, the fraction of the j + 1 most recent positions
};
ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens);

// For each predicted token of a text, how strongly the embedding of each earlier token changes its log-probability.
struct TokenMap {
  std::vector<int32_t> next;        // (T): the text's next token; after the last one, the likeliest token
  std::vector<double> probability;  // (T): the model's probability for it
  std::vector<double> norms;        // (T,T): at t,i |∂ log p(next_t)/∂e_i|
};
// Throws Error for a model that has logits only at the end of its input.
TokenMap token_map(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                   const std::vector<int32_t>& tokens);

}  // namespace petroglyph
