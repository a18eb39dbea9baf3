// The Causal Relation Network: an all-MLP sequence model in which every position looks at every earlier one.
// Cui, Yan, Muhawenayo and Kerner, "An All-MLP Sequence Modeling Architecture That Excels at
// Copying" (equation numbers).
//
// B samples of T positions, i and j = 1 … T; D channels (the paper's d_e), H hidden ones (d_h), V tokens. norm: zero
// mean and unit variance over the channels.
//
//   x   = token_embedding[token] + position_embedding[position]       (B,T,D)
//   in each block:
//     r   = norm(x)                                                   (B,T,D)   plain: no epsilon, no gain, no bias
//     p_i = W_left r_i                                                (B,T,H)   what position i offers
//     q_j = W_right r_j + b_right                                     (B,T,H)   what position j looks for
//     z_j = 1/j Σ_{i≤j} exp(norm(p_i + q_j))                          (B,T,H)   eq. 4, pre-activation normalization
//     x  += W_out norm(z) + b_out                                     (B,T,D)   post-reduction normalization
//   logits = W_head norm(x)                                           (B,T,V)
//
// Eq. 3 applies an MLP to every pair [x_i; x_j]. Its input layer splits into the halves W_left and W_right, and its
// output layer can wait until after the sum (eq. 4), so that only an addition, a norm and an exp are computed for every
// pair.
//
// Why it can recall: without the inner norm, exp(p_i + q_j) = exp(p_i)∘exp(q_j), the sum over i folds into one vector
// (eq. 5), and the past is forgotten into it: the linear CausalRN. With the norm the past stays a matrix, one p_i for
// every position, like a Transformer's cache of keys and values.
//
// The paper's ablations are settings: pre_activation_norm "approximate" normalizes p and q by themselves before the
// sum, "none" does nothing; post_reduction_norm; ψ = relu or elu instead of exp; and of its longer form ("Linear-Time
// Sequence Modeling with MLPs") H ≠ D, state expansion. Three more: ψ = gelu; heads, each with an inner norm of its
// own; and causal = false (eq. 6), where the sum runs over all positions.
//
// The backward pass of the pairs (a d before a name means its gradient: dd_ij is that of d_ij), with the inner norm
// over the width = H/heads channels of a head. Let p, q already have their mean over these channels removed (which
// changes no norm(p_i + q_j)) and
//   d_ij = p_i + q_j,   s_ij = 1/std(d_ij),   h_ij = s_ij d_ij
//   width/s_ij² = |p_i|² + |q_j|² + 2 p_i·q_j                               ← one product Q Pᵀ gives all the s_ij
// ψ passes back g_ij = dz_j ∘ ψ'(h_ij) / j. A norm's derivative (cpu/normalize.cpp) is s (g − mean g − h mean(g∘h)).
// With h = s d and w_ij = s_ij² mean(g_ij∘h_ij) = s_ij³ mean(g_ij∘d_ij) it becomes, with center(x) = x − mean x,
//   dd_ij = s_ij g_ij − mean(s_ij g_ij) − w_ij d_ij
//   dp_i = Σ_j dd_ij = center(Σ_j s_ij g_ij) − p_i Σ_j w_ij − Σ_j w_ij q_j   ← the last sum is a product W Q
//   dq_j = Σ_i dd_ij = center(Σ_i s_ij g_ij) − q_j Σ_i w_ij − Σ_i w_ij p_i
// where sums over j are over those that see i, and W has a row for each i (stored is its transpose). Without the inner
// norm dp_i = Σ_j g_ij and dq_j = Σ_i g_ij. The time is O(T²·H); one sweep over the pairs recomputes ψ', and nothing of
// size T²·H is ever stored: s of every block and w of the one at work are (B,heads,T,T), a row for each j. Removing a
// mean is its own transpose, so centering p and q needs nothing more: dp and dq come out centered.
//
// Staying finite, with ψ = exp. Under the exact norm no channel of h is above √(width − 1). The sum of T of them is
// finite while √(width − 1) + ln T < 88.7 (width up to 6,800 at T = 514), and the squares, which norm(z) needs, while
// 2√(width − 1) + ln heads < 88.7 (1,968 with one head); in a wider head a position whose h lies in one channel alone
// would become zeros. p and q normalized apart may add up to 2√(H − 1), too much from H = 1,969 on, and unnormalized to
// anything. There, where norm(z) follows, z_j is divided by exp(shift_j), shift_j the largest p_i + q_j of all channels
// and all i that j sees: that norm undoes it, and passes no gradient along z (linear_causal_rn.cpp). Without that norm
// z overflows where j·z_j leaves float.
//
// The rest of the backward pass is that of linear layers, y = x Wᵀ + b: dx = dy W, dW = dyᵀ x, db = Σ dy; and of plain
// norms (normalize_backward). It runs through the lines of the block from the last to the first.
//
// Decoding stores p of all positions (B,T,H) of each block: a new position j needs its own q_j and every p_i before it.

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"

namespace petroglyph::causal_rn {

struct Config {
  ConfigReader reader;
  int vocab = reader.size("vocab");             // V
  int context = reader.size("context");         // the longest sequence
  int width = reader.size("width", 1 << 16);    // D, the paper's d_e
  int hidden = reader.size("hidden", 1 << 16);  // H, the paper's d_h
  int layers = reader.size("layers", 1 << 10);
  int heads = reader.heads("hidden", hidden);  // groups of H/heads channels, each with an exact norm of its own
  bool causal = reader.boolean("causal");
  PreNorm pre_norm = read_pre_norm(reader);
  bool post_norm = reader.boolean("post_reduction_norm");
  Activation activation = read_activation(reader);  // ψ

  explicit Config(const Json& json) : reader("causal_rn", json) {
    reader.finish();
    if (!is_exact()) heads = 1;  // the other norms have no heads
  }
  bool is_exact() const { return pre_norm == PreNorm::EXACT; }
  // Where exp(p + q) may overflow and norm(z) allows any scale of z: see "Staying finite".
  bool is_shifted() const { return activation == Activation::EXP && !is_exact() && post_norm; }
};

struct Block {
  Linear left, right;  // (H,D) each; right has a bias
  Linear out;          // (D,H), with a bias
};

// A pass's activations. In training each block has its own, for the backward pass; in decoding one serves all blocks in
// turn.
struct Saved {
  struct Block {
    Tensor r, r_inv_std;          // (N,D), (N)
    Tensor p, q;                  // (N,H) each, as ψ reads them: centered ("exact") or normalized ("approximate")
    Tensor p_inv_std, q_inv_std;  // (N) each: "approximate" only
    Tensor s;                     // (B,heads,n,capacity): s_ij, a row for each j, "exact" only
    Tensor shift;                 // (N): see "Staying finite"
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
      if (c.is_exact()) b.s.resize(ops, {pass.batch, c.heads, pass.count, pass.capacity});
      if (c.is_shifted()) b.shift.resize(ops, {N});
    }
    for (Tensor* t : {&x, &y}) t->resize(ops, {N, c.width});
    y_inv_std.resize(ops, {N});
    if (pass.need_logits) logits.resize(ops, {N, c.vocab});
  }
};

// What decoding stores of one block.
struct KvCache {
  Tensor p;  // (B,capacity,H): of all positions so far
};

// Gradients of activations; those of the block at work, shared by all blocks.
struct Gradients {
  Tensor dx, dr;      // (N,D) each
  Tensor dz, dp, dq;  // (N,H) each
  Tensor w;           // (B,heads,T,T): w_ij, a row for each j, "exact" only

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    for (Tensor* t : {&dx, &dr}) t->resize(ops, {pass.rows(), c.width});
    for (Tensor* t : {&dz, &dp, &dq}) t->resize(ops, {pass.rows(), c.hidden});
    if (c.is_exact()) w.resize(ops, {pass.batch, c.heads, pass.count, pass.count});
  }
};

class CausalRn final : public Model {
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

  RelationShape shape(const Pass& pass) const {
    const Config& c = config_;
    return {pass.batch, pass.count, pass.first + pass.count, pass.capacity, c.hidden, c.heads, c.causal, c.activation};
  }

  // ---- Parameters ---------------------------------------------------------------------------------------------------

  // The papers' code: PyTorch's default N(0, 1) for embeddings, N(0, 0.02²) for the rest, divided by √layers where a
  // matrix leads back into the residual stream.
  CausalRn(const Json& json, Ops& ops) : config_(json), ops_(ops) {
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
    check_length("causal_rn", input.length, config_.context);
    pass_ = {Mode::TRAINING, input.batch, 0, input.length, input.length, true};
    return run(input, saved_, nullptr, pass_);
  }

  // The tokens of a pass through the model; caches: in decoding, of each block. The logits (N,V), or null without
  // need_logits.
  const real* run(const Input& input, Saved& saved, std::vector<KvCache>* caches, const Pass& pass) {
    const int D = config_.width;
    const int64_t N = pass.rows();
    saved.resize(ops_, config_, pass);

    ops_.embedding(saved.x, token_embedding_->value, position_embedding_->value, input.tokens_for("causal_rn"),
                   pass.first, pass.batch, pass.count, D);
    for (size_t l = 0; l < blocks_.size(); ++l)
      block_forward(blocks_[l], saved.blocks[pass.is_training() ? l : 0], saved.x,
                    pass.is_training() ? nullptr : &(*caches)[l], pass);
    if (!pass.need_logits) return nullptr;
    ops_.normalize(saved.y, saved.y_inv_std, saved.x, N, D);  // y = norm(x)        (N,D)
    head_.forward(ops_, saved.logits, saved.y, N);            // logits = W_head y  (N,V)
    return saved.logits;
  }

  void block_forward(const Block& w, Saved::Block& s, real* x, KvCache* cache, const Pass& pass) {
    const int D = config_.width, H = config_.hidden;
    const int64_t N = pass.rows();

    ops_.normalize(s.r, s.r_inv_std, x, N, D);                           // r = norm(x)              (N,D)
    w.left.forward(ops_, s.p, s.r, N);                                   // p = W_left r             (N,H)
    w.right.forward(ops_, s.q, s.r, N);                                  // q = W_right r + b_right  (N,H)
    relation_forward(s, cache, pass);                                    // y = z                    (N,H)
    if (config_.post_norm) ops_.normalize(s.y, s.y_inv_std, s.y, N, H);  // y = norm(z)              (N,H)
    w.out.forward(ops_, x, s.y, N, Into::ADD);                           // x += W_out y + b_out     (N,D)
  }

  // z_j = 1/j Σ_{i≤j} ψ(norm(p_i + q_j)). In decoding j counts the new positions, i the earlier ones, too.
  void relation_forward(Saved::Block& s, KvCache* cache, const Pass& pass) {
    const int H = config_.hidden, heads = config_.heads;
    const int64_t N = pass.rows();
    if (config_.is_exact()) {  // the formulas of s_ij require p and q without their mean over a head's channels
      ops_.center(s.p, s.p, N * heads, H / heads);
      ops_.center(s.q, s.q, N * heads, H / heads);
    }
    if (config_.pre_norm == PreNorm::APPROXIMATE) {
      ops_.normalize(s.p, s.p_inv_std, s.p, N, H);
      ops_.normalize(s.q, s.q_inv_std, s.q, N, H);
    }
    const real* const all_p = cache ? append(*cache, s.p, pass) : s.p;  // (B,capacity,H)
    if (config_.is_exact()) ops_.relation_inv_std(s.s, all_p, s.q, shape(pass));
    if (config_.is_shifted()) ops_.relation_shift(s.shift, all_p, s.q, shape(pass));
    ops_.relation(s.y, s.s, s.shift, all_p, s.q, shape(pass));
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
    ops_.relation_backward(g.dp, g.dq, g.w, g.dz, s.s, s.shift, s.p, s.q, shape(pass_));              // z
    if (config_.pre_norm == PreNorm::APPROXIMATE) {
      ops_.normalize_backward(g.dp, g.dp, s.p, s.p_inv_std, N, H, Into::WRITE);
      ops_.normalize_backward(g.dq, g.dq, s.q, s.q_inv_std, N, H, Into::WRITE);
    }
    w.left.backward(ops_, g.dr, g.dp, s.r, N);                               // p = W_left r
    w.right.backward(ops_, g.dr, g.dq, s.r, N, Into::ADD);                   // q = W_right r + b_right
    ops_.normalize_backward(g.dx, g.dr, s.r, s.r_inv_std, N, D, Into::ADD);  // r = norm(x)
  }

  // ---- Decoding -----------------------------------------------------------------------------------------------------

  // Stores the newest p behind the earlier ones. Returns those of all positions so far.
  const real* append(KvCache& cache, const real* p, const Pass& pass) {
    const size_t row = static_cast<size_t>(config_.hidden) * sizeof(real);
    ops_.copy(cache.p.data() + static_cast<int64_t>(pass.first) * config_.hidden, row * pass.capacity, p,
              row * pass.count, row * pass.count, static_cast<size_t>(pass.batch));
    return cache.p.data();
  }

  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    if (!config_.causal) throw Error("causal_rn: a bidirectional model cannot decode token by token");
    check_length("causal_rn", capacity, config_.context);
    std::vector<KvCache> caches(blocks_.size());
    for (KvCache& cache : caches) cache.p.resize(ops_, {batch, capacity, config_.hidden});
    return make_model_decoder<Saved>("causal_rn", *this, std::move(caches), batch, capacity);
  }
};

}  // namespace petroglyph::causal_rn

std::unique_ptr<petroglyph::Model> petroglyph::make_causal_rn(const Json& config, Ops& ops) {
  return std::make_unique<causal_rn::CausalRn>(config, ops);
}
