// The linear Causal Relation Network: the same function as causal_rn with ψ = exp and no exact inner norm, in time and memory
// linear in T. Cui, Yan, Muhawenayo and Kerner, "An All-MLP Sequence Modeling Architecture That Excels at Copying" (equation
// numbers), and its longer form "Linear-Time Sequence Modeling with MLPs".
//
//   in each block, with r = norm(x), p_i = W_left r_i and q_j = W_right r_j + b_right, each normalized by itself with
//   pre_activation_norm "approximate":
//     z_j = 1/j Σ_{i≤j} exp(p_i + q_j) = 1/j exp(q_j) ∘ Σ_{i≤j} exp(p_i)         (B,T,H)   eq. 5
//     x  += W_out norm(z) + b_out
//   With causal = false the sum runs over all positions, once for all of them (eq. 9 of the longer form).
//
// Because exp turns the sum of p and q into a product, the past of a position is one vector, Σ exp(p_i): a token more costs the
// same after ten as after ten thousand. It is also all that the model remembers, which is why it hardly learns to copy where
// causal_rn, whose exact norm forbids this rearrangement, learns it well.
//
// Staying finite (appendix A does it with logcumsumexp). exp(p_i) leaves float at |p_i| = 88. A sum is kept as a pair for
// each channel, m the largest p_i so far and s = Σ exp(p_i − m), between 1 and the number of positions; two pairs add up to
//   (m, s) + (m', s') = (M, s·exp(m − M) + s'·exp(m' − M)),   M = max(m, m')          one of the two exp is 1
// and z_j = exp(q_j + m_j) s_j / j. Where norm(z) follows, z_j may be divided by any number of the position: with
// shift_j = max_c (q_jc + m_jc) no exponent is above 0 and the largest is 0, so that z neither overflows nor vanishes,
// whatever the p and q. Without that norm (post_reduction_norm false) there is no shift, and z overflows where it has to.
//
// The order of sums. T positions are cut into chunks of 64, and a chunk's pairs are summed from its first position; to these
// come, as one pair, all the chunks before. So chunks can be summed at the same time (their totals need T/64 additions), and
// a stream makes the same sums with two pairs: that of the whole chunks, and that of the positions since.
//
// The backward pass. Let M_j be the m of z_j's sum, and e_j = exp(q_j + M_j − shift_j) (the shift is a constant: the norm
// that follows passes no gradient along z). z_j = e_j s_j / j, and with g_j = dz_j ∘ e_j / j
//   dq_j = dz_j ∘ z_j = g_j ∘ s_j
//   dp_i = Σ_{j≥i} dz_j ∘ exp(p_i + q_j − shift_j) / j = exp(p_i − M_i) ∘ A_i,    A_i = Σ_{j≥i} exp(M_i − M_j) ∘ g_j
// The second form is the one to compute. The first, exp(p_i) times a sum of exp(q_j − shift_j), has factors that overflow
// while their product does not. In the second every exponent is at most 0, because M only grows; and a term that vanishes in
// A_i, because M_j is far above M_i, vanishes beside what belongs there, while one that is small for another i is kept.
// From one position to the one before it,
//   A_{i−1} = g_{i−1} + exp(M_{i−1} − M_i) ∘ A_i
// and where p_i sets no new maximum that exponential is 1, where it does exp(p_i − M_i) is: one exp(−|p_i − M_{i−1}|) is both.
// A chunk computes its own part of A from its last position down, and adds what comes from later chunks as one vector,
//   L_k = Σ_{j after chunk k} exp(M − M_j) ∘ g_j,  M = M_j of the chunk's last position:   dp_i += exp(p_i − M) ∘ L_k
// which passes from chunk to chunk in the same way. Nothing but the chunks' pairs is stored: s_j and M_j are computed again.
// Not causal, M, s and Σ g are the same for all positions.

#include "model.h"
#include "models/models.h"
#include "models/relation_network.h"

namespace petroglyph {

namespace {

class LinearSums final : public PairSums {
 public:
  LinearSums(const RelationConfig& config, Ops& ops, int batch, int capacity)
      : config_(config), ops_(ops), batch_(batch), capacity_(capacity), blocks_(static_cast<size_t>(config.layers)) {}

  void forward(int block, real* z, real* p, real* q, int before, int n) override {
    Kept& k = blocks_[static_cast<size_t>(block)];
    const LinearRelationShape s{batch_, n, config_.hidden, config_.causal, before};
    const bool whole = n == capacity_;
    if (whole)
      k.sums.resize(ops_, {batch_, s.chunks(), 2, config_.hidden});
    else
      k.state.resize(ops_, {batch_, 2, 2, config_.hidden});
    if (config_.post_norm) k.shift.resize(ops_, {batch_, n});
    ops_.linear_relation(z, k.shift.data(), whole ? k.sums.data() : nullptr, k.state.data(), p, q, s);
  }

  void backward(int block, real* dp, real* dq, real* dz, const real* p, const real* q) override {
    const Kept& k = blocks_[static_cast<size_t>(block)];
    const LinearRelationShape s{batch_, capacity_, config_.hidden, config_.causal, 0};
    later_.resize(ops_, {batch_, s.chunks(), config_.hidden});
    ops_.linear_relation_backward(dp, dq, later_.data(), dz, k.shift.data(), k.sums.data(), p, q, s);
  }

 private:
  struct Kept {
    Tensor sums;   // (B,chunks,2,H): the pair after each chunk
    Tensor state;  // (B,2,2,H), in their place in a stream
    Tensor shift;  // (B,T)
  };

  RelationConfig config_;
  Ops& ops_;
  int batch_, capacity_;
  std::vector<Kept> blocks_;
  Tensor later_;  // (B,chunks,H): L_k, of the backward pass, shared by all blocks
};

}  // namespace

MakePairSums linear_sums() {
  return [](const RelationConfig& config, Ops& ops, int batch, int capacity) {
    return std::make_unique<LinearSums>(config, ops, batch, capacity);
  };
}

std::unique_ptr<Model> make_linear_causal_rn(const Json& json, Ops& ops) {
  ConfigReader reader("linear_causal_rn", json);
  const bool causal = reader.boolean("causal");
  const RelationConfig config(reader, {"approximate", "none"}, causal);
  return make_relation_language_model(reader, config, ops, linear_sums());
}

}  // namespace petroglyph
