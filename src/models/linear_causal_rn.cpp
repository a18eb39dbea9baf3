// The linear Causal Relation Network: the same function as causal_rn with ψ = exp and no exact inner norm, in time and
// memory linear in T. Cui, Yan, Muhawenayo and Kerner, "An All-MLP Sequence Modeling Architecture That Excels at
// Copying" (equation numbers), and its longer form "Linear-Time Sequence Modeling with MLPs".
//
//   x   = token_embedding[token] + position_embedding[position]                    (B,T,D)
//   in each block:
//     r   = norm(x)                                                                (B,T,D)
//     p_i = W_left r_i,  q_j = W_right r_j + b_right                               (B,T,H)
//     p_i = norm(p_i),   q_j = norm(q_j)                                           pre_activation_norm "approximate"
//     z_j = 1/j Σ_{i≤j} exp(p_i + q_j) = 1/j exp(q_j) ∘ Σ_{i≤j} exp(p_i)           (B,T,H)   eq. 5
//     x  += W_out norm(z) + b_out                                                  (B,T,D)   norm: post_reduction_norm
//   logits = W_head norm(x)                                                        (B,T,V)
//   With causal = false the sum runs over all positions, once for all of them (eq. 9 of the longer form).
//
// Because exp turns the sum of p and q into a product, the past of a position is one vector, Σ exp(p_i): one more token
// costs the same after ten as after ten thousand. It is also all that the model remembers: it copies short strings, but
// with 128 letters it did not reach 99 % in 2,000 steps (fig. 4), while causal_rn, whose exact norm forbids this
// rearrangement, did.
//
// Staying finite (appendix A does it with logcumsumexp). exp(p_i) overflows above p_i = 88.7, and is 0 below −104. A
// sum is kept as a pair for each channel, m the largest p_i so far and s = Σ exp(p_i − m), between 1 and the number of
// positions. Two pairs add up to
//   (m, s) + (m', s') = (M, s·exp(m − M) + s'·exp(m' − M)),   M = max(m, m')            one of the two exp is 1
// and z_j = exp(q_j + m_j) s_j / j. Where norm(z) follows, z_j may be divided by any number of the position: with
// shift_j = max_c (q_jc + m_jc) no exponent is above 0 and the largest is 0, so that z neither overflows nor vanishes,
// whatever p and q. Without that norm (post_reduction_norm false) there is no shift, and z overflows where j·z_j leaves
// float.
//
// The order of sums. One position after another would leave most of a GPU idle where there are few sequences. So T is
// cut into chunks of 64 positions, the sums of whole chunks are added up chunk by chunk, and within its chunk a
// position continues from there. Chunks can be summed at the same time, and only T/64 additions depend on each other;
// decoding, token by token, makes the same sums with three pairs: that of all positions, that of its unfinished chunk,
// and that of the chunks before.
//
// The backward pass. With e_j = exp(q_j + m_j − shift_j) (the shift counts as a constant: the norm that follows passes
// no gradient along z, so that ∂L/∂shift_j = −dz_j·z_j = 0), z_j = e_j s_j / j and g_j = dz_j ∘ e_j / j,
//   dq_j = dz_j ∘ z_j = g_j ∘ s_j
//   dp_i = Σ_{j≥i} dz_j ∘ exp(p_i + q_j − shift_j) / j = exp(p_i − m_i) ∘ A_i,    A_i = Σ_{j≥i} exp(m_i − m_j) ∘ g_j
// The last form is the one to compute. exp(p_i) times a sum of exp(q_j − shift_j) has factors that overflow while their
// product does not. In A every exponent is at most 0, for m only grows; and where a term vanishes, because m_j is far
// above m_i, what it adds to dp_i, exp(p_i − m_j) ∘ g_j, vanishes as well, because p_i ≤ m_i, while the small terms of
// early positions are kept at their own m_i.
// From one position to the one before it,
//   A_{i−1} = g_{i−1} + exp(m_{i−1} − m_i) ∘ A_i
// where either p_i is the new m_i, and dp_i = A_i, or m_{i−1} = m_i: the one exp(−|p_i − m_{i−1}|) that took p_i into
// the sum is all that the step needs. Chunks pass A back as they pass the sums on: a chunk's own part, from its last
// position down, is added to what it gets from later ones. Stored are p, q, shift and the chunks' sums; m_j, s_j and
// the exponentials are computed again.
// Where not causal, m, s and A are the same for all positions.

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"

namespace petroglyph::linear_causal_rn {

struct Config {
  ConfigReader reader;
  int vocab = reader.size("vocab");             // V
  int context = reader.size("context");         // the longest sequence
  int width = reader.size("width", 1 << 16);    // D, the papers' d_e
  int hidden = reader.size("hidden", 1 << 16);  // H, the papers' d_h
  int layers = reader.size("layers", 1 << 10);
  int heads = reader.heads("hidden", hidden);  // not used: only the exact norm of causal_rn has heads
  bool causal = reader.boolean("causal");
  // Whether p and q are normalized.
  bool pre_norm = reader.choice("pre_activation_norm", {"approximate", "none"}) == "approximate";
  bool post_norm = reader.boolean("post_reduction_norm");  // norm(z)

  explicit Config(const Json& json) : reader("linear_causal_rn", json) { reader.finish(); }
};

struct Block {
  Linear left, right;  // (H,D) each; right has a bias
  Linear out;          // (D,H), with a bias
};

LinearRelationShape shape(const Config& c, const Pass& pass) {
  return {pass.batch, pass.count, c.hidden, c.causal, pass.first};
}

// A pass's activations. In training each block has its own, for the backward pass; in decoding one serves all blocks in
// turn.
struct Saved {
  struct Block {
    Tensor r, r_inv_std;          // (N,D), (N)
    Tensor p, q;                  // (N,H) each, normalized with pre_norm
    Tensor p_inv_std, q_inv_std;  // (N) each
    Tensor sums;                  // (B,chunks,2,H): the pair (m, s) after each chunk; training only
    Tensor shift;                 // (N): with post_norm only
    Tensor y, y_inv_std;          // (N,H), (N): norm(z), or z without that norm
  };
  std::vector<Block> blocks;
  Tensor x;             // (N,D): the residual stream
  Tensor y, y_inv_std;  // (N,D), (N): its norm after the last block
  Tensor logits;        // (N,V)

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    const int64_t N = pass.rows();
    blocks.resize(pass.is_training() ? static_cast<size_t>(c.layers) : 1);
    for (Block& b : blocks) {
      b.r.resize(ops, {N, c.width});
      for (Tensor* t : {&b.p, &b.q, &b.y}) t->resize(ops, {N, c.hidden});
      for (Tensor* t : {&b.r_inv_std, &b.p_inv_std, &b.q_inv_std, &b.y_inv_std}) t->resize(ops, {N});
      if (pass.is_training()) b.sums.resize(ops, {pass.batch, shape(c, pass).chunks(), 2, c.hidden});
      if (c.post_norm) b.shift.resize(ops, {N});
    }
    for (Tensor* t : {&x, &y}) t->resize(ops, {N, c.width});
    y_inv_std.resize(ops, {N});
    if (pass.need_logits) logits.resize(ops, {N, c.vocab});
  }
};

// What decoding stores of one block.
struct State {
  Tensor sums;  // (B,3,2,H): the pairs of all positions, of the unfinished chunk, and of the chunks before it
};

// Gradients of activations; those of the block at work, shared by all blocks.
struct Gradients {
  Tensor dx, dr;      // (N,D) each
  Tensor dz, dp, dq;  // (N,H) each
  Tensor later;       // (B,chunks,H): A beyond each chunk's last position

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    for (Tensor* t : {&dx, &dr}) t->resize(ops, {pass.rows(), c.width});
    for (Tensor* t : {&dz, &dp, &dq}) t->resize(ops, {pass.rows(), c.hidden});
    later.resize(ops, {pass.batch, shape(c, pass).chunks(), c.hidden});
  }
};

class LinearCausalRn final : public Model {
  Config config_;
  Ops& ops_;
  Parameter *token_embedding_, *position_embedding_;  // (V,D), (context,D)
  std::vector<Block> blocks_;
  Linear head_;  // (V,D)
  Pass pass_{};  // the last forward()
  Saved saved_;  // its activations
  Gradients gradients_;

 public:
  int classes() const override { return config_.vocab; }
  int longest() const override { return config_.context; }

  // ---- Parameters ---------------------------------------------------------------------------------------------------

  // Initial values as in causal_rn.cpp.
  LinearCausalRn(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const int V = config_.vocab, D = config_.width, H = config_.hidden;
    const Init weight = Init::normal(WEIGHT_DEVIATION);
    token_embedding_ = &parameters.add("token_embedding.weight", {V, D}, Init::normal(1));
    position_embedding_ = &parameters.add("position_embedding.weight", {config_.context, D}, Init::normal(1));
    for (int l = 0; l < config_.layers; ++l) {
      const std::string name = "blocks." + std::to_string(l) + ".";
      Block& w = blocks_.emplace_back();
      w.left = Linear(parameters, name + "left", D, H, weight);
      w.right = Linear(parameters, name + "right", D, H, weight, true);
      w.out = Linear(parameters, name + "out", H, D, Init::normal(output_deviation(config_.layers)), true);
    }
    head_ = Linear(parameters, "head", D, V, weight);
    parameters.allocate(ops);
  }

  // ---- Forward ------------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    check_length("linear_causal_rn", input.length, config_.context);
    pass_ = {Mode::TRAINING, input.batch, 0, input.length, input.length, true};
    return run(input, saved_, nullptr, pass_);
  }

  // The tokens of a pass through the model; states: in decoding, of each block. The logits (N,V), or null without
  // need_logits.
  const real* run(const Input& input, Saved& saved, std::vector<State>* states, const Pass& pass) {
    const int D = config_.width;
    const int64_t N = pass.rows();
    saved.resize(ops_, config_, pass);

    ops_.embedding(saved.x, token_embedding_->value, position_embedding_->value, input.tokens_for("linear_causal_rn"),
                   pass.first, pass.batch, pass.count, D);
    for (size_t l = 0; l < blocks_.size(); ++l)
      block_forward(blocks_[l], saved.blocks[pass.is_training() ? l : 0], saved.x,
                    pass.is_training() ? nullptr : &(*states)[l], pass);
    if (!pass.need_logits) return nullptr;
    ops_.normalize(saved.y, saved.y_inv_std, saved.x, N, D);  // y = norm(x)        (N,D)
    head_.forward(ops_, saved.logits, saved.y, N);            // logits = W_head y  (N,V)
    return saved.logits;
  }

  void block_forward(const Block& w, Saved::Block& s, real* x, State* state, const Pass& pass) {
    const int D = config_.width, H = config_.hidden;
    const int64_t N = pass.rows();

    ops_.normalize(s.r, s.r_inv_std, x, N, D);                          // r = norm(x)              (N,D)
    w.left.forward(ops_, s.p, s.r, N);                                  // p = W_left r             (N,H)
    w.right.forward(ops_, s.q, s.r, N);                                 // q = W_right r + b_right  (N,H)
    if (config_.pre_norm) ops_.normalize(s.p, s.p_inv_std, s.p, N, H);  // p = norm(p)              (N,H)
    if (config_.pre_norm) ops_.normalize(s.q, s.q_inv_std, s.q, N, H);  // q = norm(q)              (N,H)
    real* const sums = state ? nullptr : s.sums.data();                 // of the chunks of whole sequences
    real* const state_sums = state ? state->sums.data() : nullptr;      // or of all positions so far
    ops_.linear_relation(s.y, s.shift, sums, state_sums, s.p, s.q, shape(config_, pass));  // y = z           (N,H)
    if (config_.post_norm) ops_.normalize(s.y, s.y_inv_std, s.y, N, H);  // y = norm(z)              (N,H)
    w.out.forward(ops_, x, s.y, N, Into::ADD);                           // x += W_out y + b_out     (N,D)
  }

  // ---- Backward -----------------------------------------------------------------------------------------------------

  void backward(const Input& input, const real* dlogits) override {
    const int V = config_.vocab, D = config_.width;
    const int64_t N = pass_.rows();
    gradients_.resize(ops_, config_, pass_);
    real* const dx = gradients_.dx;

    head_.backward(ops_, dx, dlogits, saved_.y, N);                                  // logits = W_head y
    ops_.normalize_backward(dx, dx, saved_.y, saved_.y_inv_std, N, D, Into::WRITE);  // y = norm(x)
    for (size_t l = blocks_.size(); l-- > 0;) block_backward(blocks_[l], saved_.blocks[l]);
    ops_.embedding_backward(token_embedding_->gradient, position_embedding_->gradient, dx, input.tokens, input.batch,
                            input.length, D, V);
  }

  // dx, the gradient of the block's output, becomes that of its input: the residual connection passes it on, and the
  // block adds its part.
  void block_backward(const Block& w, const Saved::Block& s) {
    const int D = config_.width, H = config_.hidden;
    const int64_t N = pass_.rows();
    Gradients& g = gradients_;

    w.out.backward(ops_, g.dz, g.dx, s.y, N);  // x += W_out y + b_out
    if (config_.post_norm) ops_.normalize_backward(g.dz, g.dz, s.y, s.y_inv_std, N, H, Into::WRITE);  // y = norm(z)
    ops_.linear_relation_backward(g.dp, g.dq, g.later, g.dz, s.shift, s.sums, s.p, s.q, shape(config_, pass_));
    if (config_.pre_norm) ops_.normalize_backward(g.dp, g.dp, s.p, s.p_inv_std, N, H, Into::WRITE);  // p = norm(p)
    if (config_.pre_norm) ops_.normalize_backward(g.dq, g.dq, s.q, s.q_inv_std, N, H, Into::WRITE);  // q = norm(q)
    w.left.backward(ops_, g.dr, g.dp, s.r, N);                                                       // p = W_left r
    w.right.backward(ops_, g.dr, g.dq, s.r, N, Into::ADD);                   // q = W_right r + b_right
    ops_.normalize_backward(g.dx, g.dr, s.r, s.r_inv_std, N, D, Into::ADD);  // r = norm(x)
  }

  // ---- Decoding -----------------------------------------------------------------------------------------------------

  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    if (!config_.causal) throw Error("linear_causal_rn: a bidirectional model cannot decode token by token");
    check_length("linear_causal_rn", capacity, config_.context);
    std::vector<State> states(blocks_.size());
    for (State& state : states) state.sums.resize(ops_, {batch, 3, 2, config_.hidden});
    return make_model_decoder<Saved>("linear_causal_rn", *this, std::move(states), batch, capacity);
  }
};

}  // namespace petroglyph::linear_causal_rn

std::unique_ptr<petroglyph::Model> petroglyph::make_linear_causal_rn(const Json& config, Ops& ops) {
  return std::make_unique<linear_causal_rn::LinearCausalRn>(config, ops);
}
