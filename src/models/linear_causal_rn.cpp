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
// Because exp turns the sum of p and q into a product, the past of a position is one vector, Σ exp(p_i): one more token
// costs the same after ten as after ten thousand. It is also all that the model remembers: it copies short strings, but with 128
// letters it did not reach 99 % in 2,000 steps (fig. 4), while causal_rn, whose exact norm forbids this rearrangement, did.
//
// Staying finite (appendix A does it with logcumsumexp). exp(p_i) overflows above p_i = 88.7, and is 0 below −104. A sum is kept
// as a pair for each channel, m the largest p_i so far and s = Σ exp(p_i − m), between 1 and the number of positions. Two pairs
// add up to
//   (m, s) + (m', s') = (M, s·exp(m − M) + s'·exp(m' − M)),   M = max(m, m')            one of the two exp is 1
// and z_j = exp(q_j + m_j) s_j / j. Where norm(z) follows, z_j may be divided by any number of the position: with
// shift_j = max_c (q_jc + m_jc) no exponent is above 0 and the largest is 0, so that z neither overflows nor vanishes,
// whatever p and q. Without that norm (post_reduction_norm false) there is no shift, and z overflows where j·z_j leaves float.
//
// The order of sums. One position after another would leave most of a GPU idle where there are few sequences. So T is cut into
// chunks of 64 positions, the sums of whole chunks are added up chunk by chunk, and within its chunk a position goes on from
// there. Chunks can be summed at the same time, and only T/64 additions depend on each other; a stream, token by token, makes
// the same sums with three pairs: that of all positions, that of its unfinished chunk, and that of the chunks before.
//
// The backward pass. With e_j = exp(q_j + m_j − shift_j) (the shift counts as a constant: the norm that follows passes no
// gradient along z, so that ∂L/∂shift_j = −dz_j·z_j = 0), z_j = e_j s_j / j and g_j = dz_j ∘ e_j / j,
//   dq_j = dz_j ∘ z_j = g_j ∘ s_j
//   dp_i = Σ_{j≥i} dz_j ∘ exp(p_i + q_j − shift_j) / j = exp(p_i − m_i) ∘ A_i,    A_i = Σ_{j≥i} exp(m_i − m_j) ∘ g_j
// The last form is the one to compute. exp(p_i) times a sum of exp(q_j − shift_j) has factors that overflow while their
// product does not. In A every exponent is at most 0, for m only grows; and where a term vanishes, because m_j is far above
// m_i, what it adds to dp_i, exp(p_i − m_j) ∘ g_j, vanishes as well, because p_i ≤ m_i, while the small terms of early positions
// are kept at their own m_i.
// From one position to the one before it,
//   A_{i−1} = g_{i−1} + exp(m_{i−1} − m_i) ∘ A_i
// where either p_i is the new m_i, and dp_i = A_i, or m_{i−1} = m_i: the one exp(−|p_i − m_{i−1}|) that took p_i into the sum
// is all that the step needs. Chunks pass A back as they pass the sums on: a chunk's own part, from its last position down, is
// added to what it gets from later ones. Stored are p, q, shift and the chunks' sums; m_j, s_j and the exponentials are computed
// again.
// Where not causal, m, s and A are the same for all positions.

#include "models/model.h"
#include "models/models.h"
#include "models/relation_stack.h"

namespace petroglyph {

namespace {

class LinearSums final : public PairSums {
 public:
  LinearSums(const RelationConfig& config, Ops& ops, int batch, int capacity)
      : config_(config), ops_(ops), batch_(batch), capacity_(capacity), blocks_(static_cast<size_t>(config.layers)) {}

  void forward(int block, real* z, real* p, real* q, int before, int n) override {
    Saved& k = blocks_[static_cast<size_t>(block)];
    const LinearRelationShape s{batch_, n, config_.hidden, config_.causal, before};
    const bool whole = n == capacity_;
    if (whole)
      k.sums.resize(ops_, {batch_, s.chunks(), 2, config_.hidden});
    else
      k.state.resize(ops_, {batch_, 3, 2, config_.hidden});
    if (config_.post_reduction_norm) k.shift.resize(ops_, {batch_, n});
    ops_.linear_relation(z, k.shift.data(), whole ? k.sums.data() : nullptr, k.state.data(), p, q, s);
  }

  void backward(int block, real* dp, real* dq, real* dz, const real* p, const real* q) override {
    const Saved& k = blocks_[static_cast<size_t>(block)];
    const LinearRelationShape s{batch_, capacity_, config_.hidden, config_.causal, 0};
    later_.resize(ops_, {batch_, s.chunks(), config_.hidden});
    ops_.linear_relation_backward(dp, dq, later_.data(), dz, k.shift.data(), k.sums.data(), p, q, s);
  }

 private:
  struct Saved {
    Tensor sums;   // (B,chunks,2,H): the pair after each chunk
    Tensor state;  // (B,3,2,H), in their place in a stream
    Tensor shift;  // (B,T)
  };

  RelationConfig config_;
  Ops& ops_;
  int batch_, capacity_;
  std::vector<Saved> blocks_;
  // (B,chunks,H): A beyond each chunk's last position; of the backward pass, shared by all blocks
  Tensor later_;
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
