// The Causal Relation Network: an all-MLP sequence model in which every position looks at every earlier one.
// Cui, Yan, Muhawenayo and Kerner, "An All-MLP Sequence Modeling Architecture That Excels at Copying" (equation numbers).
//
// B samples of T positions, i and j = 1 … T; D channels (the paper's d_e), H hidden ones (d_h), V tokens. norm: zero mean and unit
// variance over the channels.
//
//   x   = token_embedding[token] + position_embedding[position]       (B,T,D)
//   in each block:
//     r   = norm(x)                                                   (B,T,D)   plain: no epsilon, no gain, no bias
//     p_i = W_left r_i                                                (B,T,H)   what position i offers
//     q_j = W_right r_j + b_right                                     (B,T,H)   what position j asks
//     z_j = 1/j Σ_{i≤j} exp(norm(p_i + q_j))                          (B,T,H)   eq. 4, with pre-activation normalization
//     x  += W_out norm(z) + b_out                                     (B,T,D)   post-reduction normalization
//   logits = W_head norm(x)                                           (B,T,V)
//
// Eq. 3 applies an MLP to every pair [x_i; x_j]. Its input layer splits into the halves W_left and W_right, and its output
// layer can wait until after the sum (eq. 4), so that what is done for every pair is an addition, a norm and an exp.
//
// Why it can recall: without the inner norm, exp(p_i + q_j) = exp(p_i)∘exp(q_j), the sum over i folds into one vector
// (eq. 5), and the past is forgotten into it: the linear CausalRN. With the norm the past stays a matrix, one p_i for every
// position, like a Transformer's cache of keys and values.
//
// The paper's ablations are settings: pre_activation_norm "approximate" normalizes p and q by themselves before the sum,
// "none" does nothing; post_reduction_norm; ψ = relu or elu instead of exp; and of its longer form ("Linear-Time Sequence
// Modeling with MLPs") H ≠ D, state expansion. Three more: ψ = gelu; heads, of which each has an inner norm of its own; and
// causal = false (eq. 6), where all positions are summed over.
//
// The backward pass of the pairs (a d before a name means its gradient: dd_ij is that of d_ij), with the inner norm over the
// width = H/heads channels of a head. Let p, q already have their mean over these channels removed (which changes no
// norm(p_i + q_j)) and
//   d_ij = p_i + q_j,   s_ij = 1/std(d_ij),   h_ij = s_ij d_ij
//   width/s_ij² = |p_i|² + |q_j|² + 2 p_i·q_j                               ← one product Q Pᵀ gives all the s_ij
// ψ passes back g_ij = dz_j ∘ ψ'(h_ij) / j. The derivative of a norm (cpu/normalize.cpp) is s (g − mean g − h mean(g∘h)). With h =
// s d and w_ij = s_ij² mean(g_ij∘h_ij) = s_ij³ mean(g_ij∘d_ij) it becomes, with center(x) = x − mean x,
//   dd_ij = s_ij g_ij − mean(s_ij g_ij) − w_ij d_ij
//   dp_i = Σ_j dd_ij = center(Σ_j s_ij g_ij) − p_i Σ_j w_ij − Σ_j w_ij q_j   ← the last sum is a product W Q
//   dq_j = Σ_i dd_ij = center(Σ_i s_ij g_ij) − q_j Σ_i w_ij − Σ_i w_ij p_i
// where sums over j are over those that see i, and W has a row for each i (stored is its transpose). Without the inner norm dp_i =
// Σ_j g_ij and dq_j = Σ_i g_ij. The time is O(T²·H); one sweep over the pairs recomputes ψ', and nothing of size T²·H is ever
// stored: s of every block and w of the one at work are (B,heads,T,T), a row for each j. Removing a mean is its own transpose, so
// centering p and q needs nothing more: dp and dq come out centered.
//
// Staying finite, with ψ = exp. Under the exact norm no channel of h is above √(width − 1). The sum of T of them is finite while
// √(width − 1) + ln T < 88.7 (width up to 6,800 at T = 514), and the squares, which norm(z) needs, while 2√(width − 1) + ln heads
// < 88.7 (1,968 with one head); in a wider head a position whose h lies in one channel alone would become zeros. p and q
// normalized apart may add up to 2√(H − 1), too much from H = 1,969 on, and unnormalized to anything. There, where norm(z)
// follows, z_j is divided by exp(shift_j), shift_j the largest p_i + q_j of all channels and all i that j sees: that norm undoes
// it, and passes no gradient along z (linear_causal_rn.cpp). Without that norm z overflows where j·z_j leaves float.
//
// Everything else, from the norm of x to the residual, the linear form and the images share: relation_stack.cpp.

#include "models/model.h"
#include "models/models.h"
#include "models/relation_stack.h"

namespace petroglyph {

namespace {

class QuadraticSums final : public PairSums {
 public:
  QuadraticSums(const RelationConfig& config, Activation activation, Ops& ops, int batch, int capacity)
      : config_(config),
        activation_(activation),
        ops_(ops),
        batch_(batch),
        capacity_(capacity),
        keys_(static_cast<size_t>(config.layers)),
        kept_(static_cast<size_t>(config.layers)) {}

  void forward(int block, real* z, real* p, real* q, int before, int n) override;
  void backward(int block, real* dp, real* dq, real* dz, const real* p, const real* q) override;

 private:
  struct Saved {
    Tensor inv_std;  // s_ij (B,heads,n,T), with room for T = capacity: exact only
    Tensor shift;    // (B,n): where exp needs a guard against overflow
  };

  bool whole(int n) const { return n == capacity_; }  // otherwise a stream: one `Saved` serves all blocks in turn
  Saved& kept(int block, int n) { return kept_[whole(n) ? static_cast<size_t>(block) : 0]; }
  RelationShape shape(int before, int n) const {
    return {batch_, n, before + n, capacity_, config_.hidden, config_.heads, config_.causal, activation_};
  }
  bool exact() const { return config_.inner_norm == InnerNorm::EXACT; }
  // Where exp(p + q) may overflow (see above) and a norm that follows lets us rescale it.
  bool shifted() const { return activation_ == Activation::EXP && !exact() && config_.post_reduction_norm; }
  const real* remember(int block, const real* p, int before, int n);

  RelationConfig config_;
  Activation activation_;
  Ops& ops_;
  int batch_, capacity_;
  std::vector<Tensor> keys_;  // of a stream: p of all positions so far (B,capacity,H)
  std::vector<Saved> kept_;
  Tensor weight_;  // w_ij, of the backward pass, shared by all blocks
};

// The keys of all positions so far, with the n new ones of p.
const real* QuadraticSums::remember(int block, const real* p, int before, int n) {
  if (whole(n)) return p;
  Tensor& keys = keys_[static_cast<size_t>(block)];
  keys.resize(ops_, {batch_, capacity_, config_.hidden});
  const size_t row = static_cast<size_t>(config_.hidden) * sizeof(real);
  ops_.copy(keys.data() + static_cast<int64_t>(before) * config_.hidden, static_cast<size_t>(capacity_) * row, p,
            static_cast<size_t>(n) * row, static_cast<size_t>(n) * row, static_cast<size_t>(batch_));
  return keys.data();
}

void QuadraticSums::forward(int block, real* z, real* p, real* q, int before, int n) {
  Saved& k = kept(block, n);
  const RelationShape s = shape(before, n);
  if (exact()) {
    const int64_t rows = static_cast<int64_t>(batch_) * n * config_.heads;
    ops_.center(p, p, rows, s.head_width());
    ops_.center(q, q, rows, s.head_width());
  }
  const real* keys = remember(block, p, before, n);
  if (exact()) {
    k.inv_std.resize(ops_, {batch_, config_.heads, n, capacity_});
    ops_.relation_inv_std(k.inv_std.data(), keys, q, s);
  }
  if (shifted()) {
    k.shift.resize(ops_, {batch_, n});
    ops_.relation_shift(k.shift.data(), keys, q, s);
  }
  ops_.relation(z, k.inv_std.data(), k.shift.data(), keys, q, s);
}

void QuadraticSums::backward(int block, real* dp, real* dq, real* dz, const real* p, const real* q) {
  Saved& k = kept(block, capacity_);
  if (exact()) weight_.resize(ops_, k.inv_std.shape());
  ops_.relation_backward(dp, dq, weight_.data(), dz, k.inv_std.data(), k.shift.data(), p, q, shape(0, capacity_));
}

}  // namespace

MakePairSums quadratic_sums(Activation activation) {
  return [activation](const RelationConfig& config, Ops& ops, int batch, int capacity) {
    return std::make_unique<QuadraticSums>(config, activation, ops, batch, capacity);
  };
}

std::unique_ptr<Model> make_causal_rn(const Json& json, Ops& ops) {
  ConfigReader reader("causal_rn", json);
  const bool causal = reader.boolean("causal");
  const RelationConfig config(reader, {"exact", "approximate", "none"}, causal);
  const Activation activation = read_activation(reader);
  return make_relation_language_model(reader, config, ops, quadratic_sums(activation));
}

}  // namespace petroglyph
