#include "models/parts.h"

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

Activation read_activation(ConfigReader& reader) {
  const std::string name = reader.choice("activation", {"exp", "relu", "elu", "gelu"});
  return name == "exp"    ? Activation::EXP
         : name == "relu" ? Activation::RELU
         : name == "elu"  ? Activation::ELU
                          : Activation::GELU;
}

void check_length(const std::string& model, int length, int context) {
  if (length > context)
    throw Error(text("%s: a sequence of %d tokens is longer than the context of %d", model.c_str(), length, context));
}

Norm::Norm(Parameters& parameters, const std::string& name, int width, bool affine, real epsilon)
    : width_(width), epsilon_(epsilon) {
  if (!affine) return;
  weight_ = &parameters.add(name + ".weight", {width}, Init::ones());
  bias_ = &parameters.add(name + ".bias", {width}, Init::zeros());
}

const real* Norm::forward(Ops& ops, Saved& saved, Tensor& output, const real* x, int64_t N) const {
  saved.hat.resize(ops, {N, width_});
  saved.inv_std.resize(ops, {N});
  if (!weight_) {
    ops.normalize(saved.hat.data(), saved.inv_std.data(), x, N, width_);
    return saved.hat.data();
  }
  output.resize(ops, {N, width_});
  ops.layer_norm(output.data(), saved.hat.data(), saved.inv_std.data(), x, weight_->value, bias_->value, epsilon_, N,
                 width_);
  return output.data();
}

void Norm::in_place(Ops& ops, Saved& saved, real* x, int64_t N) const {
  saved.hat.resize(ops, {N, width_});
  saved.inv_std.resize(ops, {N});
  if (weight_) {
    ops.layer_norm(x, saved.hat.data(), saved.inv_std.data(), x, weight_->value, bias_->value, epsilon_, N, width_);
    return;
  }
  ops.normalize(saved.hat.data(), saved.inv_std.data(), x, N, width_);
  ops.copy(x, 0, saved.hat.data(), 0, saved.hat.bytes(), 1);
}

const real* Norm::output(Ops& ops, const Saved& saved, Tensor& output, int64_t N) const {
  if (!weight_) return saved.hat.data();
  output.resize(ops, {N, width_});
  ops.layer_norm_output(output.data(), saved.hat.data(), weight_->value, bias_->value, N, width_);
  return output.data();
}

void Norm::backward(Ops& ops, real* dx, const real* dy, const Saved& saved, int64_t N, Into into) const {
  if (weight_)
    ops.layer_norm_backward(dx, weight_->gradient, bias_->gradient, dy, saved.hat.data(), saved.inv_std.data(),
                            weight_->value, N, width_, into);
  else
    ops.normalize_backward(dx, dy, saved.hat.data(), saved.inv_std.data(), N, width_, into);
}

Mlp::Mlp(Parameters& parameters, const std::string& name, int width, int hidden, Pointwise activation, const Init& up,
         const Init& down)
    : width_(width), hidden_(hidden), activation_(activation) {
  up_ = &parameters.add(name + ".up.weight", {hidden, width}, up);
  up_bias_ = &parameters.add(name + ".up.bias", {hidden}, Init::zeros());
  down_ = &parameters.add(name + ".down.weight", {width, hidden}, down);
  down_bias_ = &parameters.add(name + ".down.bias", {width}, Init::zeros());
}

void Mlp::forward(Ops& ops, Saved& saved, real* x, const real* r, Tensor& hidden, int64_t N) const {
  saved.up.resize(ops, {N, hidden_});
  hidden.resize(ops, {N, hidden_});
  ops.linear(saved.up.data(), r, up_->value, up_bias_->value, N, width_, hidden_, Into::WRITE);
  ops.pointwise(hidden.data(), saved.up.data(), activation_, N * hidden_);
  ops.linear(x, hidden.data(), down_->value, down_bias_->value, N, hidden_, width_, Into::ADD);
}

void Mlp::backward(Ops& ops, real* dr, Into into, const real* dx, const Saved& saved, const real* r, Tensor& hidden,
                   Tensor& dhidden, int64_t N) const {
  hidden.resize(ops, {N, hidden_});
  dhidden.resize(ops, {N, hidden_});
  real* const dup = dhidden.data();
  ops.linear_backward_input(dup, dx, down_->value, N, hidden_, width_, Into::WRITE);
  ops.pointwise_backward(dup, hidden.data(), dup, saved.up.data(), activation_, N * hidden_);
  ops.linear_backward_weight(down_->gradient, down_bias_->gradient, dx, hidden.data(), N, hidden_, width_);
  ops.linear_backward_weight(up_->gradient, up_bias_->gradient, dup, r, N, width_, hidden_);
  ops.linear_backward_input(dr, dup, up_->value, N, width_, hidden_, into);
}

PatchEmbedding::PatchEmbedding(Parameters& parameters, const std::string& model, int patches, int patch_size, int width)
    : model_(model), patches_(patches), patch_size_(patch_size), width_(width) {
  weight_ = &parameters.add("patch_embedding.weight", {width, patch_size}, Init::normal(WEIGHT_DEVIATION));
  cls_token_ = &parameters.add("cls_token", {width}, Init::normal(1));
  positions_ = &parameters.add("position_embedding.weight", {patches + 1, width}, Init::normal(1));
}

void PatchEmbedding::forward(Ops& ops, real* x, const Input& input) {
  if (!input.patches) throw Error(model_ + ": reads the patches of images, not tokens");
  if (input.length != patches_)
    throw Error(text("%s: %d patches an image, expected %d", model_.c_str(), input.length, patches_));
  rows_.resize(ops, {input.rows(), width_});
  ops.linear(rows_.data(), input.patches, weight_->value, nullptr, input.rows(), patch_size_, width_, Into::WRITE);
  ops.append_class_token(x, rows_.data(), cls_token_->value, positions_->value, input.batch, patches_ + 1, width_);
}

void PatchEmbedding::backward(Ops& ops, const real* dx, const Input& input) {
  ops.append_class_token_backward(rows_.data(), cls_token_->gradient, positions_->gradient, dx, input.batch,
                                  patches_ + 1, width_);
  ops.linear_backward_weight(weight_->gradient, nullptr, rows_.data(), input.patches, input.rows(), patch_size_,
                             width_);
}

void take_last(Ops& ops, Tensor& last, const real* x, int B, int T, int D) {
  const size_t row = static_cast<size_t>(D) * sizeof(real);
  last.resize(ops, {B, D});
  ops.copy(last.data(), row, x + static_cast<int64_t>(T - 1) * D, row * T, row, static_cast<size_t>(B));
}

void put_last(Ops& ops, Tensor& dx, const real* dlast, int B, int T, int D) {
  const size_t row = static_cast<size_t>(D) * sizeof(real);
  dx.resize(ops, {B, T, D});
  dx.zero();
  ops.copy(dx.data() + static_cast<int64_t>(T - 1) * D, row * T, dlast, row, row, static_cast<size_t>(B));
}

}  // namespace petroglyph
