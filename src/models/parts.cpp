#include "models/parts.h"

#include <algorithm>

#include "error.h"
#include "text.h"

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

Mlp::Mlp(Parameters& parameters, const std::string& name, int width, int hidden, Pointwise activation, const Init& up,
         const Init& down)
    : width_(width), hidden_(hidden), activation_(activation) {
  up_ = &parameters.add(name + ".up.weight", {hidden, width}, up);
  up_bias_ = &parameters.add(name + ".up.bias", {hidden}, Init::zeros());
  down_ = &parameters.add(name + ".down.weight", {width, hidden}, down);
  down_bias_ = &parameters.add(name + ".down.bias", {width}, Init::zeros());
}

namespace {

// Calls f(first row, rows) until all N have had their turn. Few rows are taken at once: each turn packs the weights again.
template <class F>
void for_rows(const Ops& ops, int64_t N, F f) {
  const int64_t most = ops.rows_at_a_time();
  if (N / 2 < most) return f(int64_t{0}, N);
  for (int64_t row = 0; row < N; row += most) f(row, std::min(most, N - row));
}

}  // namespace

void Mlp::forward(Ops& ops, Kept& kept, real* x, const real* r, Tensor& hidden, int64_t N) const {
  kept.up.resize(ops, {N, hidden_});
  for_rows(ops, N, [&](int64_t row, int64_t rows) {
    real* const up = kept.up.data() + row * hidden_;
    hidden.resize(ops, {rows, hidden_});
    ops.linear(up, r + row * width_, up_->value, up_bias_->value, rows, width_, hidden_, Into::WRITE);
    ops.pointwise(hidden.data(), up, activation_, rows * hidden_);
    ops.linear(x + row * width_, hidden.data(), down_->value, down_bias_->value, rows, hidden_, width_, Into::ADD);
  });
}

void Mlp::backward(Ops& ops, real* dr, Into into, const real* dx, const Kept& kept, const real* r, Tensor& hidden,
                   Tensor& dhidden, int64_t N) const {
  for_rows(ops, N, [&](int64_t row, int64_t rows) {
    hidden.resize(ops, {rows, hidden_});
    dhidden.resize(ops, {rows, hidden_});
    real *const dup = dhidden.data(), *const h = hidden.data();
    const real* const dxs = dx + row * width_;
    ops.linear_backward_input(dup, dxs, down_->value, rows, hidden_, width_, Into::WRITE);
    ops.pointwise_backward(dup, h, dup, kept.up.data() + row * hidden_, activation_, rows * hidden_);
    ops.linear_backward_weight(down_->gradient, down_bias_->gradient, dxs, h, rows, hidden_, width_);
    ops.linear_backward_weight(up_->gradient, up_bias_->gradient, dup, r + row * width_, rows, width_, hidden_);
    ops.linear_backward_input(dr + row * width_, dup, up_->value, rows, width_, hidden_, into);
  });
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
