#include "models/parts.h"

namespace petroglyph {

Norm::Norm(Parameters& parameters, const std::string& name, int width, bool affine) : width_(width) {
  if (!affine) return;
  weight_ = &parameters.add(name + ".weight", {width}, Init::ones());
  bias_ = &parameters.add(name + ".bias", {width}, Init::zeros());
}

const real* Norm::forward(Ops& ops, Kept& kept, Tensor& output, const real* x, int64_t N) const {
  kept.hat.resize(ops, {N, width_});
  kept.inv_std.resize(ops, {N});
  if (!weight_) {
    ops.normalize(kept.hat.data(), kept.inv_std.data(), x, N, width_);
    return kept.hat.data();
  }
  output.resize(ops, {N, width_});
  ops.layer_norm(output.data(), kept.hat.data(), kept.inv_std.data(), x, weight_->value, bias_->value, N, width_);
  return output.data();
}

void Norm::in_place(Ops& ops, Kept& kept, real* x, int64_t N) const {
  kept.hat.resize(ops, {N, width_});
  kept.inv_std.resize(ops, {N});
  if (weight_) {
    ops.layer_norm(x, kept.hat.data(), kept.inv_std.data(), x, weight_->value, bias_->value, N, width_);
    return;
  }
  ops.normalize(kept.hat.data(), kept.inv_std.data(), x, N, width_);
  ops.copy(x, 0, kept.hat.data(), 0, kept.hat.bytes(), 1);
}

const real* Norm::output(Ops& ops, const Kept& kept, Tensor& output, int64_t N) const {
  if (!weight_) return kept.hat.data();
  output.resize(ops, {N, width_});
  ops.layer_norm_output(output.data(), kept.hat.data(), weight_->value, bias_->value, N, width_);
  return output.data();
}

void Norm::backward(Ops& ops, real* dx, const real* dy, const Kept& kept, int64_t N, Into into) const {
  if (weight_)
    ops.layer_norm_backward(dx, weight_->gradient, bias_->gradient, dy, kept.hat.data(), kept.inv_std.data(),
                            weight_->value, N, width_, into);
  else
    ops.normalize_backward(dx, dy, kept.hat.data(), kept.inv_std.data(), N, width_, into);
}

Mlp::Mlp(Parameters& parameters, const std::string& name, int width, int hidden, Pointwise activation, int residuals)
    : width_(width), hidden_(hidden), activation_(activation) {
  up_ = &parameters.add(name + ".up.weight", {hidden, width}, Init::normal(WEIGHT_DEVIATION));
  up_bias_ = &parameters.add(name + ".up.bias", {hidden}, Init::zeros());
  down_ = &parameters.add(name + ".down.weight", {width, hidden}, Init::normal(output_deviation(residuals)));
  down_bias_ = &parameters.add(name + ".down.bias", {width}, Init::zeros());
}

void Mlp::forward(Ops& ops, Kept& kept, real* x, const real* r, Tensor& hidden, int64_t N) const {
  kept.up.resize(ops, {N, hidden_});
  hidden.resize(ops, {N, hidden_});
  ops.linear(kept.up.data(), r, up_->value, up_bias_->value, N, width_, hidden_, Into::WRITE);
  ops.pointwise(hidden.data(), kept.up.data(), activation_, N * hidden_);
  ops.linear(x, hidden.data(), down_->value, down_bias_->value, N, hidden_, width_, Into::ADD);
}

void Mlp::backward(Ops& ops, real* dr, Into into, const real* dx, const Kept& kept, const real* r, Tensor& hidden,
                   Tensor& dhidden, int64_t N) const {
  hidden.resize(ops, {N, hidden_});
  dhidden.resize(ops, {N, hidden_});
  real* const dup = dhidden.data();
  ops.linear_backward_input(dup, dx, down_->value, N, hidden_, width_, Into::WRITE);
  ops.pointwise_backward(dup, hidden.data(), dup, kept.up.data(), activation_, N * hidden_);
  ops.linear_backward_weight(down_->gradient, down_bias_->gradient, dx, hidden.data(), N, hidden_, width_);
  ops.linear_backward_weight(up_->gradient, up_bias_->gradient, dup, r, N, width_, hidden_);
  ops.linear_backward_input(dr, dup, up_->value, N, width_, hidden_, into);
}

}  // namespace petroglyph
