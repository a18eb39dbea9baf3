// Parts that several models are built from: each with its parameters, what its forward pass saves for the backward
// pass, and both passes.
#pragma once

#include <string>

#include "models/config.h"
#include "models/model.h"

namespace petroglyph {

// "all weights randomly following N(0, 0.02)" (causal_rn_workshop, appendix D), read as the deviation, as GPT-2's is
constexpr real WEIGHT_DEVIATION = real(0.02);
// "except for output layers, which were further divided by the square root of the number of residual connections"
inline real output_deviation(int residuals) { return WEIGHT_DEVIATION / numerics::sqrt(static_cast<real>(residuals)); }

// What keeps a norm from a division by zero, unless the configuration says otherwise; plain norms have none.
constexpr real NORM_EPSILON = real(1e-5);

// The key "activation": ψ of a relation, "exp", "relu", "elu" or "gelu".
Activation read_activation(ConfigReader& reader);

// Throws Error where a sequence is longer than the position embedding.
void check_length(const std::string& model, int length, int context);

// Layer normalization, plain or affine.
class Norm {
 public:
  struct Saved {
    Tensor hat, inv_std;  // (N,D), (N)
  };

  Norm() = default;
  Norm(Parameters& parameters, const std::string& name, int width, bool affine, real epsilon = NORM_EPSILON);

  // Returns the output: saved.hat where the norm is plain, `output` where it is affine.
  const real* forward(Ops& ops, Saved& saved, Tensor& output, const real* x, int64_t N) const;
  // x becomes its norm.
  void in_place(Ops& ops, Saved& saved, real* x, int64_t N) const;
  // The output once more, for the backward pass of what read it.
  const real* output(Ops& ops, const Saved& saved, Tensor& output, int64_t N) const;
  // dx may be dy
  void backward(Ops& ops, real* dx, const real* dy, const Saved& saved, int64_t N, Into into) const;

 private:
  int width_ = 0;
  real epsilon_ = 0;
  Parameter *weight_ = nullptr, *bias_ = nullptr;  // (D) each, or null
};

// down(f(up(r)))
class Mlp {
 public:
  struct Saved {
    Tensor up;  // (N,H)
  };

  Mlp() = default;
  Mlp(Parameters& parameters, const std::string& name, int width, int hidden, Pointwise activation, const Init& up,
      const Init& down);

  // x += down(f(up(r))); r may be x. hidden: room for f(up(r))
  void forward(Ops& ops, Saved& saved, real* x, const real* r, Tensor& hidden, int64_t N) const;
  // dr from dx, the gradient of x; dr may be dx. hidden and dhidden: room
  void backward(Ops& ops, real* dr, Into into, const real* dx, const Saved& saved, const real* r, Tensor& hidden,
                Tensor& dhidden, int64_t N) const;

 private:
  int width_ = 0, hidden_ = 0;
  Pointwise activation_{};
  Parameter *up_ = nullptr, *up_bias_ = nullptr;      // (H,D), (H)
  Parameter *down_ = nullptr, *down_bias_ = nullptr;  // (D,H), (D)
};

// Images as sequences: the patches, and behind them one position more, from which the answer is read.
//   x = [W_patch patch_1, …, W_patch patch_N, cls_token] + position               (B,N+1,D)
class PatchEmbedding {
 public:
  PatchEmbedding() = default;
  PatchEmbedding(Parameters& parameters, const std::string& model, int patches, int patch_size, int width);

  // x (B,N+1,D). Throws Error where the input is not made of images of N patches.
  void forward(Ops& ops, real* x, const Input& input);
  void backward(Ops& ops, const real* dx, const Input& input);

 private:
  std::string model_;
  int patches_ = 0, patch_size_ = 0, width_ = 0;                               // N, P, D
  Parameter *weight_ = nullptr, *cls_token_ = nullptr, *positions_ = nullptr;  // (D,P), (D), (N+1,D)
  Tensor rows_;  // (B,N,D): the embedded patches, and later their gradient
};

// last (B,D) = x (B,T,D) at the last position
void take_last(Ops& ops, Tensor& last, const real* x, int B, int T, int D);
// dx (B,T,D) from the gradient of that: zeros at all other positions
void put_last(Ops& ops, Tensor& dx, const real* dlast, int B, int T, int D);

// The gradient of a bias that may not be there.
inline real* gradient_or_null(const Parameter* p) { return p ? p->gradient : nullptr; }
inline const real* value_or_null(const Parameter* p) { return p ? p->value : nullptr; }

}  // namespace petroglyph
