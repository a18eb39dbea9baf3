// How far back a model looks: the gradient of its last answer with respect to what enters at each position (regular_gpt, section
// 7.4 and figure 4; the tool is that of Chi et al. 2022, "Receptive Field Alignment Enables Transformer Length Extrapolation").
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/json.h"
#include "models/model.h"

namespace petroglyph {

// A trained model on sequences whose every position has an embedding for itself. Any model with a token embedding, or the RNN,
// whose embedding is the column of a weight.
class PositionGradients {
 public:
  // Tokens (B,T) for the model `name` with this configuration and the parameters of `trained`.
  PositionGradients(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                    const std::vector<int32_t>& tokens, int batch, int length);

  int64_t rows() const {
    return model_->logit_rows(input_);
  }                                             // of logits: B·T, or B of a model that answers at the end
  std::vector<real> logits(int64_t row) const;  // (V) of `trained`

  struct Answer {
    int64_t row;
    std::vector<real> dlogits;  // (V): ∂f/∂logits of this row
  };
  // (B,T): |∂f/∂e_i| for e_i position i's embedding, before a factor that the model may give it. At most one answer a sample.
  std::vector<double> norms(const std::vector<Answer>& answers);

 private:
  Ops& ops_;
  int classes_;  // V
  Tokens ids_;
  std::unique_ptr<Model> model_;
  Input input_;
  const real* logits_;
  bool used_ = false;  // what forward() kept: a backward pass writes over it
  Tensor dlogits_;     // (rows,V'), V' ≥ V
};

struct ReceptiveField {
  std::vector<double> norms;       // (B,T): of f, the sum of the last position's logits
  std::vector<double> cumulative;  // (B,T): at j, Σ g over the j + 1 most recent positions, as a share of all
};

ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens, int batch, int length);

}  // namespace petroglyph
