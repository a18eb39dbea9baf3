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

// A trained model on sequences in which every position has its own embedding. It works for any model with a token
// embedding, and for the RNN, whose embedding is a column of a weight matrix.
class PositionGradients {
 public:
  // Tokens (B,T) for the model `name` with this configuration and the parameters of `trained`.
  PositionGradients(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                    const std::vector<int32_t>& tokens, int batch, int length);

  int64_t rows() const {
    return model_->logit_rows(input_);
  }                                             // of logits: B·T, or B if the model has logits only at the end
  std::vector<real> logits(int64_t row) const;  // (V) of `trained`

  struct Answer {
    int64_t row;
    std::vector<real> dlogits;  // (V): ∂f/∂logits of this row
  };
  // (B,T): |∂f/∂e_i|, where e_i is the embedding of position i, before any scale factor of the model. At most one
  // answer a sample.
  std::vector<double> norms(const std::vector<Answer>& answers);

 private:
  Ops& ops_;
  int classes_;  // V
  Tokens ids_;
  std::unique_ptr<Model> model_;
  Input input_;
  const real* logits_;
  bool used_ = false;  // whether the saved activations of forward() are used up: a backward pass overwrites them
  Tensor dlogits_;     // (rows,V'), V' ≥ V
};

struct ReceptiveField {
  std::vector<double> norms;       // (B,T): for f = the sum of the last position's logits
  std::vector<double> cumulative;  // (B,T): at j, the fraction of g at the j + 1 most recent positions
};

ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens, int batch, int length);

}  // namespace petroglyph
