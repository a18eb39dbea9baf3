// One vector for a set: Deep Sets (Zaheer et al. 2017) and the Relation Network (Santoro et al. 2017), from which the relation
// networks of this project descend. "Linear-Time Sequence Modeling with MLPs", sections 2 and 3.2 (equation numbers; the
// workshop paper has the second as its eq. 2). Here they classify images, whose patches are the set:
//   x_n = W_patch patch_n + position_n                                                                          (B,N,D)
//
// Deep Sets, a sum over the elements:
//   y = 1/N Σ_n f(x_n),                   f(x) = W_out ψ(W_in x + b_in) + b_out                                eqs. 1, 2
// The Relation Network, a sum over the pairs:
//   y = 1/N² Σ_i Σ_j f([x_i; x_j])                                                                             eq. 3
//
//   logits = W_head norm(y)                                                                                    (B,classes)
//
// f is applied to N² pairs, but its two matrices need not be. With W_in = (W_left W_right), p_i = W_left x_i and
// q_j = W_right x_j + b_in,
//   y = b_out + W_out z,     z = 1/N Σ_j z_j,     z_j = 1/N Σ_i ψ(p_i + q_j)                                   as eqs. 7, 8
// and z_j is the sum of causal_rn.cpp without its norms and its mask. For ψ = exp it comes apart, exactly:
//   z_j = 1/N exp(q_j) ∘ Σ_i exp(p_i),     z = (1/N Σ_j exp(q_j)) ∘ (1/N Σ_i exp(p_i))                         as eq. 9
// so that a network of time quadratic in N, and one of linear time, are the same function (proposition 3.2, which says it of each
// z_j; the mean over j is ours): the form "quadratic" computes the first, "linear" the second.
//
// A mean over the elements is a product with a column c whose N entries are 1/N: mean = cᵀ z, and dz = c dmean. The backward passes
// are those of linear layers and of the sum over pairs.

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "models/models.h"
#include "models/parts.h"

namespace petroglyph {

namespace {

// What the two share: everything but how z_j (B,N,H) comes from x (B,N,D).
class SetNetwork : public Model {
 public:
  SetNetwork(ConfigReader& reader, Ops& ops)
      : width_(static_cast<int>(reader.integer("width", 1, 1 << 16))),
        hidden_(static_cast<int>(reader.integer("hidden", 1, 1 << 16))),
        ops_(ops),
        name_(reader.owner()),
        patches_(static_cast<int>(reader.integer("patches", 1, 1 << 20))),
        patch_size_(static_cast<int>(reader.integer("patch_size", 1, 1 << 20))),
        classes_(static_cast<int>(reader.integer("classes", 1, 1 << 24))) {
    patch_embedding_ = &parameters.add("patch_embedding.weight", {width_, patch_size_}, Init::normal(WEIGHT_DEVIATION));
    position_embedding_ = &parameters.add("position_embedding.weight", {patches_, width_}, Init::normal(1));
  }

  int classes() const override { return classes_; }
  int64_t logit_rows(const Input& input) const override { return input.batch; }
  const real* forward(const Input& input) override;
  void backward(const Input& input, const real* dlogits) override;
  std::unique_ptr<Decoder> make_decoder(int, int) override {
    throw Error(name_ + ": a model of images cannot decode token by token");
  }

 protected:
  // Behind the parameters of the layer that a derived class declares.
  void declare_rest() {
    out_ = &parameters.add("out.weight", {width_, hidden_}, Init::normal(WEIGHT_DEVIATION));
    out_bias_ = &parameters.add("out.bias", {width_}, Init::zeros());
    head_ = &parameters.add("head.weight", {classes_, width_}, Init::normal(WEIGHT_DEVIATION));
    parameters.allocate(ops_);
  }

  // z (B,N,H), whose mean over the elements counts, from x (B,N,D).
  virtual void forward_elements(real* z, const real* x, int B) = 0;
  // dx is written; dz may be overwritten.
  virtual void backward_elements(real* dx, real* dz, const real* x, int B) = 0;

  int elements() const { return patches_; }  // N

  int width_, hidden_;  // D, H
  Ops& ops_;

 private:
  std::string name_;
  int patches_, patch_size_, classes_;
  Parameter *patch_embedding_, *position_embedding_;  // (D,P), (N,D)
  Parameter *out_ = nullptr, *out_bias_ = nullptr;    // (D,H), (D)
  Parameter* head_ = nullptr;                         // (classes,D)
  Tensor x_, z_, column_;                             // (B,N,D), (B,N,H), (N)
  Tensor mean_, y_, y_inv_std_, logits_;              // (B,H), (B,D), (B), (B,classes)
  Tensor dx_, dz_, dmean_, dy_;                       // of the same shapes
};

const real* SetNetwork::forward(const Input& input) {
  if (!input.patches) throw Error(name_ + ": reads the patches of images, not tokens");
  if (input.length != patches_)
    throw Error(text("%s: %d patches an image, expected %d", name_.c_str(), input.length, patches_));
  const int B = input.batch, N = patches_, D = width_, H = hidden_;
  x_.resize(ops_, {B, N, D});
  z_.resize(ops_, {B, N, H});
  mean_.resize(ops_, {B, H});
  y_.resize(ops_, {B, D});
  y_inv_std_.resize(ops_, {B});
  logits_.resize(ops_, {B, classes_});
  if (column_.size() == 0) {
    column_.resize(ops_, {N});
    column_.upload(std::vector<real>(static_cast<size_t>(N), 1 / static_cast<real>(N)));
  }
  ops_.linear(x_.data(), input.patches, patch_embedding_->value, nullptr, input.rows(), patch_size_, D, Into::WRITE);
  ops_.add_positions(x_.data(), position_embedding_->value, 0, B, N, D);
  forward_elements(z_.data(), x_.data(), B);
  mean_.zero();
  // mean_b += cᵀ z_b: the product that a weight's gradient is
  for (int64_t b = 0; b < B; ++b)
    ops_.linear_backward_weight(mean_.data() + b * H, nullptr, column_.data(), z_.data() + b * N * H, N, H, 1);
  ops_.linear(y_.data(), mean_.data(), out_->value, out_bias_->value, B, H, D, Into::WRITE);
  ops_.normalize(y_.data(), y_inv_std_.data(), y_.data(), B, D);
  ops_.linear(logits_.data(), y_.data(), head_->value, nullptr, B, D, classes_, Into::WRITE);
  return logits_.data();
}

void SetNetwork::backward(const Input& input, const real* dlogits) {
  const int B = input.batch, N = patches_, D = width_, H = hidden_;
  dx_.resize(ops_, {B, N, D});
  dz_.resize(ops_, {B, N, H});
  dmean_.resize(ops_, {B, H});
  dy_.resize(ops_, {B, D});
  ops_.linear_backward_weight(head_->gradient, nullptr, dlogits, y_.data(), B, D, classes_);
  ops_.linear_backward_input(dy_.data(), dlogits, head_->value, B, D, classes_, Into::WRITE);
  ops_.normalize_backward(dy_.data(), dy_.data(), y_.data(), y_inv_std_.data(), B, D, Into::WRITE);
  ops_.linear_backward_weight(out_->gradient, out_bias_->gradient, dy_.data(), mean_.data(), B, H, D);
  ops_.linear_backward_input(dmean_.data(), dy_.data(), out_->value, B, H, D, Into::WRITE);
  for (int64_t b = 0; b < B; ++b)
    ops_.linear_backward_input(dz_.data() + b * N * H, column_.data(), dmean_.data() + b * H, N, H, 1, Into::WRITE);
  backward_elements(dx_.data(), dz_.data(), x_.data(), B);
  ops_.add_positions_backward(position_embedding_->gradient, dx_.data(), B, N, D);
  ops_.linear_backward_weight(patch_embedding_->gradient, nullptr, dx_.data(), input.patches, input.rows(), patch_size_,
                              D);
}

// ---- Deep Sets ----------------------------------------------------------------------------------------------------

class DeepSets final : public SetNetwork {
 public:
  DeepSets(ConfigReader& reader, Ops& ops)
      : SetNetwork(reader, ops),
        activation_(reader.choice("activation", {"relu", "gelu"}) == "relu" ? Pointwise::RELU : Pointwise::GELU) {
    reader.finish();
    in_ = &parameters.add("in.weight", {hidden_, width_}, Init::normal(WEIGHT_DEVIATION));
    in_bias_ = &parameters.add("in.bias", {hidden_}, Init::zeros());
    declare_rest();
  }

 private:
  void forward_elements(real* z, const real* x, int B) override {
    const int64_t rows = static_cast<int64_t>(B) * elements();
    h_.resize(ops_, {rows, hidden_});
    ops_.linear(h_.data(), x, in_->value, in_bias_->value, rows, width_, hidden_, Into::WRITE);
    ops_.pointwise(z, h_.data(), activation_, rows * hidden_);
  }
  void backward_elements(real* dx, real* dz, const real* x, int B) override {
    const int64_t rows = static_cast<int64_t>(B) * elements();
    ops_.pointwise_backward(dz, nullptr, dz, h_.data(), activation_, rows * hidden_);
    ops_.linear_backward_weight(in_->gradient, in_bias_->gradient, dz, x, rows, width_, hidden_);
    ops_.linear_backward_input(dx, dz, in_->value, rows, width_, hidden_, Into::WRITE);
  }

  Pointwise activation_;
  Parameter *in_, *in_bias_;  // (H,D), (H)
  Tensor h_;                  // (B,N,H)
};

// ---- The Relation Network -----------------------------------------------------------------------------------------

class PlainRelationNetwork final : public SetNetwork {
 public:
  PlainRelationNetwork(ConfigReader& reader, Ops& ops) : SetNetwork(reader, ops), activation_(read_activation(reader)) {
    linear_ = reader.choice("form", {"quadratic", "linear"}) == "linear";
    if (linear_ && activation_ != Activation::EXP) reader.fail("only the activation exp has a linear form");
    reader.finish();
    left_ = &parameters.add("left.weight", {hidden_, width_}, Init::normal(WEIGHT_DEVIATION));
    right_ = &parameters.add("right.weight", {hidden_, width_}, Init::normal(WEIGHT_DEVIATION));
    right_bias_ = &parameters.add("right.bias", {hidden_}, Init::zeros());
    declare_rest();
  }

 private:
  RelationShape quadratic(int B) const {
    return {B, elements(), elements(), elements(), hidden_, 1, false, activation_};
  }
  LinearRelationShape linear(int B) const { return {B, elements(), hidden_, false, 0}; }

  void forward_elements(real* z, const real* x, int B) override {
    const int64_t rows = static_cast<int64_t>(B) * elements();
    p_.resize(ops_, {rows, hidden_});
    q_.resize(ops_, {rows, hidden_});
    ops_.linear(p_.data(), x, left_->value, nullptr, rows, width_, hidden_, Into::WRITE);
    ops_.linear(q_.data(), x, right_->value, right_bias_->value, rows, width_, hidden_, Into::WRITE);
    if (linear_) {
      sums_.resize(ops_, {B, linear(B).chunks(), 2, hidden_});
      ops_.linear_relation(z, nullptr, sums_.data(), nullptr, p_.data(), q_.data(), linear(B));
    } else {
      ops_.relation(z, nullptr, nullptr, p_.data(), q_.data(), quadratic(B));
    }
  }

  void backward_elements(real* dx, real* dz, const real* x, int B) override {
    const int64_t rows = static_cast<int64_t>(B) * elements();
    dp_.resize(ops_, {rows, hidden_});
    dq_.resize(ops_, {rows, hidden_});
    if (linear_) {
      later_.resize(ops_, {B, linear(B).chunks(), hidden_});
      ops_.linear_relation_backward(dp_.data(), dq_.data(), later_.data(), dz, nullptr, sums_.data(), p_.data(),
                                    q_.data(), linear(B));
    } else {
      ops_.relation_backward(dp_.data(), dq_.data(), nullptr, dz, nullptr, nullptr, p_.data(), q_.data(), quadratic(B));
    }
    ops_.linear_backward_weight(left_->gradient, nullptr, dp_.data(), x, rows, width_, hidden_);
    ops_.linear_backward_weight(right_->gradient, right_bias_->gradient, dq_.data(), x, rows, width_, hidden_);
    ops_.linear_backward_input(dx, dp_.data(), left_->value, rows, width_, hidden_, Into::WRITE);
    ops_.linear_backward_input(dx, dq_.data(), right_->value, rows, width_, hidden_, Into::ADD);
  }

  Activation activation_;
  bool linear_;
  Parameter *left_, *right_, *right_bias_;  // (H,D), (H,D), (H)
  Tensor p_, q_, dp_, dq_;                  // (B,N,H) each
  Tensor sums_, later_;                     // of the linear form, see linear_causal_rn.cpp
};

}  // namespace

std::unique_ptr<Model> make_deep_sets(const Json& json, Ops& ops) {
  ConfigReader reader("deep_sets", json);
  return std::make_unique<DeepSets>(reader, ops);
}

std::unique_ptr<Model> make_relation_network(const Json& json, Ops& ops) {
  ConfigReader reader("relation_network", json);
  return std::make_unique<PlainRelationNetwork>(reader, ops);
}

}  // namespace petroglyph
