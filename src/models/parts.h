// Parts that several models are built from: each with its parameters, what its forward pass saves for the backward
// pass, and both passes. Linear, Norm, Mlp; then a model's first layer, Embedding (of images PatchEmbedding), and its
// last one, Readout.
#pragma once

#include <string>

#include "models/config.h"
#include "models/model.h"
#include "models/positions.h"

namespace petroglyph {

// "all weights randomly following N(0, 0.02)" (causal_rn_workshop, appendix D), read as the deviation, as GPT-2's is
constexpr real WEIGHT_DEVIATION = real(0.02);
// "except for output layers, which were further divided by the square root of the number of residual connections"
inline real output_deviation(int residuals) { return WEIGHT_DEVIATION / numerics::sqrt(static_cast<real>(residuals)); }

// The default ε of affine norms, against a division by zero. Plain norms have none.
constexpr real NORM_EPSILON = real(1e-5);

// The key "activation": ψ of a relation, "exp", "relu", "elu" or "gelu".
Activation read_activation(ConfigReader& reader);

// The key "pre_activation_norm": ψ of norm(p_i + q_j), of norm(p_i) + norm(q_j), or of p_i + q_j.
enum class PreNorm { EXACT, APPROXIMATE, NONE };
PreNorm read_pre_norm(ConfigReader& reader);

// Throws Error where a sequence is longer than the position embedding.
void check_length(const std::string& model, int length, int context);

// y = x Wᵀ + b
//
// Backward: dx = dy W,   dW = Σ_n dy_n ⊗ x_n,   db = Σ_n dy_n
struct Linear {
  int in = 0, out = 0;
  Parameter *weight = nullptr, *bias = nullptr;  // (out,in) from row `first` on, (out) or null
  int64_t first = 0;

  Linear() = default;
  // Declares name.weight and, with has_bias, name.bias, which begins as zeros.
  Linear(Parameters& parameters, const std::string& name, int in, int out, const Init& init, bool has_bias = false);
  // With another layer's weight, such as the embedding's, or with `rows` rows of a weight that several layers share.
  explicit Linear(Parameter* weight);
  Linear(Parameter* weight, int first, int rows);

  // y (N,out) from x (N,in), or y += that
  void forward(Ops& ops, real* y, const real* x, int64_t N, Into into = Into::WRITE) const;
  // dx (N,in), or dx += that, and the parameters' gradients
  void backward(Ops& ops, real* dx, const real* dy, const real* x, int64_t N, Into into = Into::WRITE) const;
  // The halves of backward(), for layers that need only one of them, or the first one earlier.
  void backward_input(Ops& ops, real* dx, const real* dy, int64_t N, Into into = Into::WRITE) const;
  void backward_weight(Ops& ops, const real* dy, const real* x, int64_t N) const;

 private:
  const real* value() const { return weight->value + first * in; }
};

// Layer normalization: plain, y = (x − mean x) / std x, or affine, with ε, a gain and a bias:
//   y = hat ∘ weight + bias,   hat = (x − mean x) / √(variance + ε)
class Norm {
 public:
  struct Saved {
    Tensor hat, inv_std;  // (N,D), (N)
  };

  Norm() = default;
  Norm(Parameters& parameters, const std::string& name, int width, bool affine, real epsilon = NORM_EPSILON);

  // Returns the output: saved.hat where the norm is plain, `output` where it is affine.
  const real* forward(Ops& ops, Saved& saved, Tensor& output, const real* x, int64_t N) const;
  // x = norm(x)
  void in_place(Ops& ops, Saved& saved, real* x, int64_t N) const;
  // The output of forward() once more, for the backward pass of the layers that read it.
  const real* output(Ops& ops, const Saved& saved, Tensor& output, int64_t N) const;
  // dx may be dy
  void backward(Ops& ops, real* dx, const real* dy, const Saved& saved, int64_t N, Into into) const;

 private:
  // saved, and where the norm is affine y, which may be x
  void normalize(Ops& ops, Saved& saved, real* y, const real* x, int64_t N) const;

  int width_ = 0;
  real epsilon_ = 0;
  Parameter *weight_ = nullptr, *bias_ = nullptr;  // (D) each, or null
};

// x += W_down f(W_up r + b_up) + b_down
class Mlp {
 public:
  struct Saved {
    Tensor up;  // (N,H)
  };

  Mlp() = default;
  Mlp(Parameters& parameters, const std::string& name, int width, int hidden, Pointwise activation, const Init& up,
      const Init& down);

  // r may be x. hidden (N,H): scratch, f(W_up r + b_up)
  void forward(Ops& ops, Saved& saved, real* x, const real* r, Tensor& hidden, int64_t N) const;
  // dr from dx, the gradient of x; dr may be dx. hidden and dhidden (N,H): scratch
  void backward(Ops& ops, real* dr, Into into, const real* dx, const Saved& saved, const real* r, Tensor& hidden,
                Tensor& dhidden, int64_t N) const;

 private:
  Pointwise activation_{};
  Linear up_, down_;  // (H,D), (D,H)
};

// Images as sequences: the patches, then one more position, the class token, from which the class is read.
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
  int patches_ = 0;                                        // N
  Linear linear_;                                          // (D,P)
  Parameter *cls_token_ = nullptr, *positions_ = nullptr;  // (D), (N+1,D)
  Tensor rows_;                                            // (B,N,D): the embedded patches, later their gradient
};

struct EmbeddingConfig {
  int vocab = 0, context = 0;       // context: the number of learned positions; of images, patches + 1
  int patches = 0, patch_size = 0;  // of images: N, P
  std::string position = "none";    // "learned" or "sinusoidal"; with any other no vector is added
  real scale = 1;
  real deviation = 1;  // of the initial values: PyTorch's default, as in the papers' code. GPT-2: 0.02
  bool norm = false;

  EmbeddingConfig() = default;
  // schemes: the model's positions. Images have "learned" alone.
  EmbeddingConfig(ConfigReader& reader, const std::vector<std::string>& schemes);
  bool images() const { return patches > 0; }
  bool learns_positions() const { return position == "learned" && !images(); }
};

// x = scale · token_embedding[token] + position            (B,n,D)
// with `norm`, x = norm(x). Of images it is a PatchEmbedding.
//
// Backward: dtoken_embedding[v] = scale · Σ_{token = v} dx,   dposition_t = Σ_b dx_bt.
class Embedding {
 public:
  using Saved = Norm::Saved;

  Embedding() = default;
  // model: its name, for error messages. affine, epsilon: of the norm
  Embedding(Parameters& parameters, const std::string& model, const EmbeddingConfig& config, int width, bool affine,
            real epsilon);

  // x (B,n,D) of the n positions from `first` on, of at most `capacity`
  void forward(Ops& ops, Saved& saved, real* x, const Input& input, int first, int n, int capacity);
  // dx is overwritten.
  void backward(Ops& ops, const Saved& saved, real* dx, const Input& input, int n);

  // Throws Error where a sequence is longer than the learned positions.
  void check_length(int length) const;
  Parameter* tokens() const { return tokens_; }

 private:
  std::string model_;
  EmbeddingConfig config_;
  int width_ = 0;
  Parameter *tokens_ = nullptr, *positions_ = nullptr;  // (vocab,D), (context,D) or null
  PatchEmbedding patches_;                              // images
  Norm norm_;
  Sinusoids sinusoids_;
};

struct ReadoutConfig {
  int classes = 0;    // V
  bool last = false;  // of the last position alone
  bool bias = false;  // b_head
  bool tied = false;  // W_head is the token embedding
};
ReadoutConfig read_readout(ConfigReader& reader, const EmbeddingConfig& embedding);

// logits = W_head final_norm(x) + b_head                   (R,V)
// of R rows: all B·n; or in training, with `last`, the B last positions. In decoding each position is the last one of
// the tokens so far. With `tied` W_head's gradient gets this part first and the embedding's last.
class Readout {
 public:
  struct Saved {
    Tensor last;            // (B,D): x at the last position, with `last` in training only
    Norm::Saved norm;       // (R,D), (R)
    Tensor normed, logits;  // (R,D), (R,V)
  };

  Readout() = default;
  // normalized: whether there is a final norm; affine, epsilon: of this norm. tokens: the embedding, used if `tied`
  Readout(Parameters& parameters, const ReadoutConfig& config, int width, bool normalized, bool affine, real epsilon,
          Parameter* tokens);

  const real* forward(Ops& ops, Saved& saved, const real* x, int B, int n, Mode mode) const;
  // dx (B,n,D), after forward() in training
  void backward(Ops& ops, Tensor& dx, Saved& saved, const real* dlogits, const real* x, int B, int n);

 private:
  ReadoutConfig config_;
  bool normalized_ = false;
  Norm norm_;
  Linear head_;   // (V,D)
  Tensor dlast_;  // (B,D)
};

// last (B,D) = x (B,T,D) at the last position
void take_last(Ops& ops, Tensor& last, const real* x, int B, int T, int D);
// dx (B,T,D) from the gradient of that: zeros at all other positions
void put_last(Ops& ops, Tensor& dx, const real* dlast, int B, int T, int D);

}  // namespace petroglyph
