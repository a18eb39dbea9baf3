// The first and the last layer of a model: Embedding, from tokens or an image's patches to vectors, and Readout, from
// vectors to logits.
#pragma once

#include <string>

#include "models/config.h"
#include "models/parts.h"
#include "models/positions.h"

namespace petroglyph {

struct EmbeddingConfig {
  int vocab = 0, context = 0;       // tokens; `context` positions at most are learned. Of images it is patches + 1
  int patches = 0, patch_size = 0;  // images: N, P
  std::string position = "none";    // "learned", "sinusoidal"; of any other no vector is added
  real scale = 1;
  real deviation = 1;  // of the initial values; PyTorch's default, as in the papers' code. GPT-2: 0.02
  bool norm = false;

  EmbeddingConfig() = default;
  // schemes: the model's positions. Images have "learned" alone.
  EmbeddingConfig(ConfigReader& reader, const std::vector<std::string>& schemes);
  bool images() const { return patches > 0; }
  bool learns_positions() const { return position == "learned" && !images(); }
};

// x = scale · token_embedding[token] + position            (B,n,D)
// with `norm`, x = norm(x). Of images (parts.h),
// x = [W_patch patch_1, …, W_patch patch_N, cls_token] + position   (B,N+1,D)
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

  ReadoutConfig() = default;
  ReadoutConfig(ConfigReader& reader, const EmbeddingConfig& embedding);
};

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
  // normalized: whether there is a final norm; affine, epsilon: its. tokens: the embedding, read with `tied` only
  Readout(Parameters& parameters, const ReadoutConfig& config, int width, bool normalized, bool affine, real epsilon,
          Parameter* tokens);

  const real* forward(Ops& ops, Saved& saved, const real* x, int B, int n, Mode mode) const;
  // dx (B,n,D), after forward() in training
  void backward(Ops& ops, Tensor& dx, Saved& saved, const real* dlogits, const real* x, int B, int n);

 private:
  ReadoutConfig config_;
  int width_ = 0;
  bool normalized_ = false;
  Norm norm_;
  Parameter *head_ = nullptr, *bias_ = nullptr;  // (V,D), (V) or null
  Tensor dlast_;                                 // (B,D)
};

}  // namespace petroglyph
