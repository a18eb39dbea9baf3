// The Bidirectional Relation Network as a classifier of images: every patch looks at every other.
// Cui, Yan, Muhawenayo and Kerner, "An All-MLP Sequence Modeling Architecture That Excels at Copying", appendix C; its
// experiments with images: "Linear-Time Sequence Modeling with MLPs", sections 4.3 and 4.4.
//
//   x_n = W_patch patch_n + position_n   for the N patches of P numbers each          (B,N+1,D)
//   x_N = cls + position_N               one more position, from which the answer is read
//   in each block, as in causal_rn with ψ = exp, but every position sees all N + 1 (eq. 6):
//     z_j = 1/(N+1) Σ_i exp(μ(p_i + q_j))
//   logits = W_head norm(x_N)                                                         (B,classes)
//
// μ normalizes each p_i + q_j ("exact": quadratic in N, causal_rn.cpp), or p_i and q_j by themselves ("approximate"), or nothing
// ("none"). In the last two the sum over i is the same for all j up to the factor exp(q_j), and costs linear time
// (linear_causal_rn.cpp).
//
// The backward pass begins at x_N alone: the gradient of every other position is zero until the last block adds to it.

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "models/models.h"
#include "models/parts.h"
#include "models/relation_stack.h"

namespace petroglyph {

namespace {

class BirnImage final : public Model {
 public:
  BirnImage(ConfigReader& reader, const RelationConfig& config, Ops& ops)
      : width_(config.width),
        patches_(static_cast<int>(reader.integer("patches", 1, 1 << 20))),
        patch_size_(static_cast<int>(reader.integer("patch_size", 1, 1 << 20))),
        classes_(static_cast<int>(reader.integer("classes", 1, 1 << 24))),
        ops_(ops),
        stack_(config, ops, config.inner_norm == InnerNorm::EXACT ? quadratic_sums(Activation::EXP) : linear_sums()) {
    reader.finish();
    patch_embedding_ = PatchEmbedding(parameters, "birn_image", patches_, patch_size_, width_);
    stack_.declare(parameters);
    head_ = &parameters.add("head.weight", {classes_, width_}, Init::normal(WEIGHT_DEVIATION));
    parameters.allocate(ops);
  }

  int classes() const override { return classes_; }
  int64_t logit_rows(const Input& input) const override { return input.batch; }
  const real* forward(const Input& input) override;
  void backward(const Input& input, const real* dlogits) override;
  bool has_attention_maps() const override { return true; }
  std::vector<real> attention_map(size_t block, int sample) override { return stack_.map(state_, block, sample); }
  std::unique_ptr<Decoder> make_decoder(int, int) override {
    throw Error("birn_image: a model of images cannot read one token at a time");
  }

 private:
  int positions() const { return patches_ + 1; }  // T

  int width_;       // D
  int patches_;     // N
  int patch_size_;  // P
  int classes_;
  Ops& ops_;
  RelationStack stack_;
  PatchEmbedding patch_embedding_;
  Parameter* head_;
  RelationStack::State state_;
  Tensor y_, y_inv_std_, logits_;  // (B,D), (B), (B,classes)
  Tensor dx_, dy_;                 // (B,T,D), (B,D)
};

const real* BirnImage::forward(const Input& input) {
  const int B = input.batch, T = positions(), D = width_;
  state_.x.resize(ops_, {B, T, D});
  y_inv_std_.resize(ops_, {B});
  logits_.resize(ops_, {B, classes_});

  patch_embedding_.forward(ops_, state_.x.data(), input);
  stack_.start(state_, B, T);
  stack_.forward(state_, T);
  take_last(ops_, y_, state_.x.data(), B, T, D);
  ops_.normalize(y_.data(), y_inv_std_.data(), y_.data(), B, D);
  ops_.linear(logits_.data(), y_.data(), head_->value, nullptr, B, D, classes_, Into::WRITE);
  return logits_.data();
}

void BirnImage::backward(const Input& input, const real* dlogits) {
  const int B = input.batch, D = width_;
  dy_.resize(ops_, {B, D});
  ops_.linear_backward_weight(head_->gradient, nullptr, dlogits, y_.data(), B, D, classes_);
  ops_.linear_backward_input(dy_.data(), dlogits, head_->value, B, D, classes_, Into::WRITE);
  ops_.normalize_backward(dy_.data(), dy_.data(), y_.data(), y_inv_std_.data(), B, D, Into::WRITE);
  put_last(ops_, dx_, dy_.data(), B, positions(), D);
  stack_.backward(state_, dx_.data());
  patch_embedding_.backward(ops_, dx_.data(), input);
}

}  // namespace

std::unique_ptr<Model> make_birn_image(const Json& json, Ops& ops) {
  ConfigReader reader("birn_image", json);
  const RelationConfig config(reader, {"exact", "approximate", "none"}, false);
  return std::make_unique<BirnImage>(reader, config, ops);
}

}  // namespace petroglyph
