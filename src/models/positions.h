// Position schemes: how a Transformer gets the positions of its tokens. "learned" and "sinusoidal" add a vector to the
// token's (Embedding in parts.h). The others change the scores of attention; they are parts with parameters of their
// own and both passes:
//
//   DistanceBias      alibi, t5, kerple: a number for each head and distance, added to the scores
//   RelativeScores    xl: products of the queries with a vector for each distance, added to the scores
#pragma once

#include <string>

#include "models/model.h"

namespace petroglyph {

// The rows R_n of the sinusoidal table (math/positions.h) on the device, as many as the longest sequence so far needs.
class Sinusoids {
 public:
  // Rows 0 … T−1, or with both_signs 1−T … T−1: row n belongs to position or distance n.
  const real* table(Ops& ops, int T, int width, bool both_signs = false);

 private:
  Tensor rows_;  // (T,D) or (2T−1,D) of the longest T
  int longest_ = 0;
};

// score_ts + bias_n of each head, for the distance n = t − s ≥ 0. One table serves all blocks.
//
//   alibi    bias_n = −slope_h n, slope_h = 2^(−8(h+1)/heads), or as published    Press et al. 2022
//   t5       bias_n = table[bucket(n)][h]                                         Raffel et al. 2020 (*)
//   kerple   bias_n = −r1_h log(1 + r2_h n)                                       Chi et al. 2022
//   (*) T5's own scores have no 1/√d; here they have.
//
// Attention returns dbias_n = Σ_{t−s=n} ds_ts, added up over the blocks. Of what the table was made of:
//   t5       dtable[b][h] = Σ dbias_n over the n of bucket b
//   kerple   dr1 = −Σ_n dbias_n log(1 + r2 n),   dr2 = −Σ_n dbias_n r1 n / (1 + r2 n)
class DistanceBias {
 public:
  DistanceBias() = default;
  // scheme: with any other one there is no bias, and all pointers are null
  DistanceBias(Parameters& parameters, int width, int heads, const std::string& scheme, bool published_slopes);

  // Makes the table, of at least T rows, from the parameters. table() returns it, or null if there is none.
  void forward(Ops& ops, int T);
  const real* table() const { return bias_.data(); }
  // dbias (T,heads), set to zeros; null where nothing is learned.
  real* zero_gradient(Ops& ops, int T);
  // The parameters' gradients, from dbias.
  void backward(Ops& ops, int T);

 private:
  bool learned() const { return table_ || r1_; }

  int heads_ = 0;
  bool alibi_ = false, published_slopes_ = false;
  Parameter *table_ = nullptr, *r1_ = nullptr, *r2_ = nullptr;  // (buckets,heads), (heads), (heads)
  Tensor bias_, dbias_;                                         // (T,heads) or more rows, (T,heads)
  Tokens buckets_;                                              // (T) or more: t5's
};

// Of each block: score_ts = ((q_t + u)·k_s + (q_t + v)·P_{t−s}) / √d,   P_n = W_R R_n     Dai et al. 2019,
// Transformer-XL u, v: two vectors for each head, v not the values; R_n: the sinusoids of distance n.
//
// The scores are linear in q + u, q + v, k and P, and so
//   d(q_t+u) = Σ_s ds_ts k_s / √d     d(q_t+v) = Σ_s ds_ts P_{t−s} / √d     dP_n = Σ_{t−s=n} ds_ts (q_t+v) / √d
//   dq = d(q+u) + d(q+v)     du = Σ_t d(q_t+u)     dv = Σ_t d(q_t+v)     dW_R = Σ_n dP_n R_nᵀ
class RelativeScores {
 public:
  // Scratch that all blocks share, and R.
  struct Scratch {
    Tensor content, position;                // (N,D) each: q + u and q + v
    Tensor dcontent, dposition, dprojected;  // (N,D), (N,D), (distances,D)
    Sinusoids waves;
  };

  RelativeScores() = default;
  RelativeScores(Parameters& parameters, const std::string& prefix, int width, int heads, bool causal);

  // The number of distances in sequences of T positions: 0 … T−1, or 1−T … T−1.
  int64_t distances(int T) const { return causal_ ? T : 2 * T - 1; }
  // projected (distances,D) = P
  void project(Ops& ops, Tensor& projected, Scratch& scratch, int T) const;
  // in.q = q + u, in.q_position = q + v, of q (N,·) with rows 3D apart; in.positions = P
  void forward(Ops& ops, AttentionInput& in, const Tensor& projected, Scratch& scratch, int64_t N) const;
  // Makes attention_backward() write the gradients of q + u, q + v and P into the scratch.
  void attach(Ops& ops, AttentionGradient& out, Scratch& scratch, int64_t N, int T) const;
  // dq, with rows 3D apart, and the parameters' gradients
  void backward(Ops& ops, real* dq, Scratch& scratch, int64_t N, int T) const;

 private:
  int width_ = 0;
  bool causal_ = true;
  Parameter *weight_ = nullptr, *u_ = nullptr, *v_ = nullptr;  // (D,D) the rows grouped by head, (heads,d), (heads,d)
};

}  // namespace petroglyph
