// What the relation networks share: the stack of blocks around the sums over pairs, and the model that reads tokens.
//
// x (B,T,D) passes through the blocks; in each
//   r   = norm(x)                          plain: no epsilon, no gain, no bias
//   p_i = W_left r_i                       what position i offers
//   q_j = W_right r_j + b_right            what position j asks
//   p, q = norm(p), norm(q)                only with "approximate" pre-activation normalization
//   z_j = 1/n_j Σ_i ψ(p_i + q_j)           PairSums, over the n_j positions i that j sees; with "exact" ψ(norm(p_i + q_j)).
//                                          Here the models differ
//   x  += W_out norm(z) + b_out            norm only with post-reduction normalization
//
// The backward pass is that of linear layers (dx = dy W, dW = dyᵀ x, db = Σ dy) and of plain norms (normalize_backward), in
// reverse. The residual hands the gradient of a block's output on to its input, and the block adds its part.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/model.h"

namespace petroglyph {

enum class InnerNorm { EXACT, APPROXIMATE, NONE };

// The key activation: "exp", "relu", "elu" or "gelu".
Activation read_activation(ConfigReader& reader);

struct RelationConfig {
  int width;   // D, the papers' d_e
  int hidden;  // H, the papers' d_h
  int layers;
  int heads;             // consecutive groups of H / heads channels, each with an exact inner norm of its own
  InnerNorm inner_norm;  // pre_activation_norm: of the pairs, before ψ
  bool post_reduction_norm;
  bool causal;

  // Reads the keys that all relation networks have. inner_norms: the allowed ones of "exact", "approximate" and "none".
  RelationConfig(ConfigReader& reader, const std::vector<std::string>& inner_norms, bool causal);
};

// The sums over pairs of all blocks, for one batch of sequences, with what the backward pass or a stream's later tokens need.
class PairSums {
 public:
  virtual ~PairSums() = default;
  // z (B,n,H) of the n newest positions, which follow `before` earlier ones. p, q (B,n,H); what it does to them (centering) stays.
  virtual void forward(int block, real* z, real* p, real* q, int before, int n) = 0;
  // After forward over whole sequences: dp, dq (B,T,H) from dz, which it may overwrite, with p and q as forward left them.
  virtual void backward(int block, real* dp, real* dq, real* dz, const real* p, const real* q) = 0;
};

// Makes them for sequences of up to `capacity` positions.
using MakePairSums = std::function<std::unique_ptr<PairSums>(const RelationConfig&, Ops&, int batch, int capacity)>;

class RelationStack {
 public:
  RelationStack(const RelationConfig& config, Ops& ops, MakePairSums make_sums)
      : config_(config), ops_(ops), make_sums_(std::move(make_sums)) {}

  // Declares blocks.0.left.weight and so on.
  void declare(Parameters& parameters);

  // What one block computes on the way forward and the backward pass wants to see again, of N = B·n rows.
  struct Activations {
    Tensor r, r_inv_std;          // (N,D), (N)
    Tensor p, q;                  // (N,H) each
    Tensor p_inv_std, q_inv_std;  // (N) each: approximate only
    Tensor y, y_inv_std;          // (N,H), (N): norm(z), or z without that norm
  };

  // A batch of whole sequences, or a stream with its newest tokens.
  struct State {
    int batch = 0, capacity = 0;  // B, and T at the end
    int length = 0;               // positions read so far
    Tensor x;                     // (N,D)
    std::vector<Activations> blocks;
    std::unique_ptr<PairSums> sums;
  };

  // Empties the state for `batch` sequences of up to `capacity` positions.
  void start(State& state, int batch, int capacity) const;
  // state.x (B,n,D), the n next positions, passes through all blocks.
  void forward(State& state, int n);
  // After one forward over whole sequences: dx (B,T,D), the gradient of state.x, from that of the output to that of the input.
  void backward(State& state, real* dx);

  // How strongly position i speaks to position j in a block of the last forward over whole sequences, for ψ = exp:
  //   the length of exp(μ(p_i + q_j)) over all channels, divided by its sum over the i that j sees; μ: the norm of "exact", else
  //   nothing (p and q of "approximate" are normalized already)
  // The papers show such maps (causal_rn_linear_time, 4.4) but give no formula: this one is ours. Of one sample: (T,T), a row for
  // each j.
  std::vector<real> map(const State& state, size_t block, int sample) const;

 private:
  struct Block {
    Parameter* left;                // (H,D)
    Parameter *right, *right_bias;  // (H,D), (H)
    Parameter *out, *out_bias;      // (D,H), (D)
  };
  void block_forward(int number, Activations& a, State& state, int n);
  void block_backward(int number, State& state, real* dx);

  RelationConfig config_;
  Ops& ops_;
  MakePairSums make_sums_;
  std::vector<Block> blocks_;
  Tensor dr_, dp_, dq_, dz_;  // (N,D), (N,H), (N,H), (N,H): of the backward pass, shared by all blocks
};

// Tokens and learned positions, the stack, and logits of the next token at every position.
// `reader` has the keys vocab and context left.
std::unique_ptr<Model> make_relation_language_model(ConfigReader& reader, const RelationConfig& config, Ops& ops,
                                                    MakePairSums make_sums);

// The sums in the two forms: causal_rn.cpp and linear_causal_rn.cpp.
MakePairSums quadratic_sums(Activation activation);
MakePairSums linear_sums();

}  // namespace petroglyph
