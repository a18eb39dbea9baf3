// The Causal Relation Network: an all-MLP sequence model in which every position looks at every earlier one.
// Cui, Yan, Muhawenayo and Kerner, "An All-MLP Sequence Modeling Architecture That Excels at Copying" (equation numbers).
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
// "none" does nothing; post_reduction_norm; ψ = relu, elu or gelu instead of exp; H ≠ D (state expansion). Two more:
// heads, of which each has an inner norm of its own, and causal = false (eq. 6), where all positions are summed over.
//
// The backward pass of the pairs, with the inner norm over the n = H/heads channels of a head. Let p, q already have their
// mean over these channels removed (which changes no sum's norm) and
//   d_ij = p_i + q_j,   s_ij = 1/std(d_ij),   h_ij = s_ij d_ij
//   n/s_ij² = |p_i|² + |q_j|² + 2 p_i·q_j                               ← one product P Qᵀ gives all the s_ij
// ψ passes back g_ij = dz_j ∘ ψ'(h_ij) / j. The derivative of a norm, s (g − mean g − h mean(g∘h)), then gives, with
// w_ij = s_ij² mean(g_ij∘h_ij) · … written out as s_ij³ mean(g_ij∘d_ij):
//   dd_ij = s_ij g_ij − mean(s_ij g_ij) − w_ij d_ij
//   dp_i = Σ_j dd_ij = center(Σ_j s_ij g_ij) − p_i Σ_j w_ij − Σ_j w_ij q_j   ← the last sum is a product W Q
//   dq_j = Σ_i dd_ij = center(Σ_i s_ij g_ij) − q_j Σ_i w_ij − Σ_i w_ij p_i
// so one sweep over the pairs recomputes ψ', and nothing of size T²·H is ever stored: s and w are (B,heads,T,T).
// Removing a mean is its own transpose, so centering p and q needs nothing more: dp and dq come out centered.
//
// Everything else is linear layers (dx = dy W, dW = dyᵀ x, db = Σ dy) and plain norms (ops: normalize_backward).

#include <cmath>

#include "config.h"
#include "error.h"
#include "model.h"
#include "models/models.h"
#include "text.h"

namespace petroglyph {

namespace {

enum class PreNorm { EXACT, APPROXIMATE, NONE };

struct Config {
  int vocab;    // V
  int context;  // rows of the position embedding: the longest sequence
  int width;    // D, the papers' d_e
  int hidden;   // H, the papers' d_h
  int layers;
  int heads;
  Activation activation;
  PreNorm pre_norm;
  bool post_norm;
  bool causal;

  explicit Config(const Json& json) {
    ConfigReader reader("causal_rn", json);
    vocab = static_cast<int>(reader.integer("vocab", 1, 1 << 24));
    context = static_cast<int>(reader.integer("context", 1, 1 << 24));
    width = static_cast<int>(reader.integer("width", 1, 1 << 16));
    hidden = static_cast<int>(reader.integer("hidden", 1, 1 << 16));
    layers = static_cast<int>(reader.integer("layers", 1, 1 << 10));
    heads = static_cast<int>(reader.integer("heads", 1, hidden));
    if (hidden % heads != 0) reader.fail(text("heads %d does not divide hidden %d", heads, hidden));
    activation = activation_named(reader.choice("activation", {"exp", "relu", "elu", "gelu"}));
    const std::string norm = reader.choice("pre_activation_norm", {"exact", "approximate", "none"});
    pre_norm = norm == "exact" ? PreNorm::EXACT : norm == "none" ? PreNorm::NONE : PreNorm::APPROXIMATE;
    post_norm = reader.boolean("post_reduction_norm");
    causal = reader.boolean("causal");
    reader.finish();
  }

  static Activation activation_named(const std::string& name) {
    return name == "exp"    ? Activation::EXP
           : name == "relu" ? Activation::RELU
           : name == "elu"  ? Activation::ELU
                            : Activation::GELU;
  }
};

struct Block {
  Parameter *left;               // (H,D)
  Parameter *right, *right_bias;  // (H,D), (H)
  Parameter *out, *out_bias;     // (D,H), (D)
};

// What one block computes on the way forward and the backward pass wants to see again.
struct Activations {
  Tensor r, r_inv_std;            // (N,D), (N)
  Tensor q;                       // (N,H)
  Tensor p_inv_std, q_inv_std;    // (N) each: approximate only
  Tensor pair_inv_std;            // (B,heads,Q,T): exact only
  Tensor shift;                   // (N): where exp needs a guard against overflow
  Tensor y, y_inv_std;            // (N,H), (N): norm(z)
};

// Activations of a batch, or of a stream's newest tokens with the keys of all tokens so far.
struct State {
  int batch, capacity;
  int length = 0;                 // positions whose keys are there
  std::vector<Tensor> keys;       // p of each block (B,capacity,H)
  std::vector<Activations> blocks;
  Tensor x, y, y_inv_std, logits;  // (N,D), (N,D), (N), (N,V)
  Tensor new_keys;                // (N,H), stream only
};

class CausalRn final : public Model {
 public:
  CausalRn(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    token_embedding_ = &parameters.add("token_embedding.weight", {c.vocab, c.width}, Init::normal(1));
    position_embedding_ = &parameters.add("position_embedding.weight", {c.context, c.width}, Init::normal(1));
    const real deviation = real(0.02);
    for (int l = 0; l < c.layers; ++l) {
      const std::string name = "blocks." + std::to_string(l) + ".";
      Block b;
      b.left = &parameters.add(name + "left.weight", {c.hidden, c.width}, Init::normal(deviation));
      b.right = &parameters.add(name + "right.weight", {c.hidden, c.width}, Init::normal(deviation));
      b.right_bias = &parameters.add(name + "right.bias", {c.hidden}, Init::zeros());
      b.out = &parameters.add(name + "out.weight", {c.width, c.hidden},
                              Init::normal(deviation / numerics::sqrt(static_cast<real>(c.layers))));
      b.out_bias = &parameters.add(name + "out.bias", {c.width}, Init::zeros());
      blocks_.push_back(b);
    }
    head_ = &parameters.add("head.weight", {c.vocab, c.width}, Init::normal(deviation));
    parameters.allocate(ops);
  }

  int classes() const override { return config_.vocab; }

  const real* forward(const Input& input) override {
    if (input.length > config_.context)
      throw Error(text("causal_rn: a sequence of %d tokens is longer than the context of %d", input.length, config_.context));
    state_.batch = input.batch;
    state_.capacity = input.length;
    state_.length = 0;
    return run(state_, input.tokens, input.length);
  }

  void backward(const Input& input, const real* dlogits) override;
  std::unique_ptr<Stream> stream(int batch, int capacity) override;

  // Appends n tokens to each of the batch's sequences; returns their logits.
  const real* run(State& s, const int32_t* tokens, int n);

 private:
  RelationShape relation_shape(const State& s, int n) const {
    return {s.batch, n, s.length + n, s.capacity, config_.hidden, config_.heads, config_.causal, config_.activation};
  }
  // exp(p + q) may overflow where nothing bounds the sum; a norm that follows lets us rescale it.
  bool shifted() const {
    return config_.activation == Activation::EXP && config_.pre_norm != PreNorm::EXACT && config_.post_norm;
  }
  void block_forward(const Block& block, Activations& a, Tensor& keys, State& s, int n);
  void block_backward(const Block& block, const Activations& a, const Tensor& keys, const RelationShape& shape);

  Config config_;
  Ops& ops_;
  Parameter *token_embedding_, *position_embedding_, *head_;
  std::vector<Block> blocks_;
  State state_{};
  Tensor dx_, dr_, dp_, dq_, dz_, pair_weight_;  // of the backward pass, shared by all blocks
};

// ---- Forward ------------------------------------------------------------------------------------------------------

const real* CausalRn::run(State& s, const int32_t* tokens, int n) {
  const Config& c = config_;
  const int64_t N = static_cast<int64_t>(s.batch) * n;
  const bool whole = n == s.capacity;  // otherwise a stream: temporaries serve all blocks in turn
  s.keys.resize(blocks_.size());
  s.blocks.resize(whole ? blocks_.size() : 1);
  s.x.resize(ops_, {N, c.width});
  ops_.embedding(s.x.data(), token_embedding_->value, position_embedding_->value, tokens, s.length, s.batch, n, c.width);
  for (size_t l = 0; l < blocks_.size(); ++l) block_forward(blocks_[l], s.blocks[whole ? l : 0], s.keys[l], s, n);
  s.length += n;

  s.y.resize(ops_, {N, c.width});
  s.y_inv_std.resize(ops_, {N});
  s.logits.resize(ops_, {N, c.vocab});
  ops_.normalize(s.y.data(), s.y_inv_std.data(), s.x.data(), N, c.width);
  ops_.linear(s.logits.data(), s.y.data(), head_->value, nullptr, N, c.width, c.vocab, Into::WRITE);
  return s.logits.data();
}

// s.x += the block's output
void CausalRn::block_forward(const Block& block, Activations& a, Tensor& keys, State& s, int n) {
  const int D = config_.width, H = config_.hidden;
  const int64_t N = static_cast<int64_t>(s.batch) * n;
  const RelationShape shape = relation_shape(s, n);
  const bool whole = n == s.capacity;
  a.r.resize(ops_, {N, D});
  a.r_inv_std.resize(ops_, {N});
  a.q.resize(ops_, {N, H});
  a.y.resize(ops_, {N, H});
  a.y_inv_std.resize(ops_, {N});
  keys.resize(ops_, {s.batch, s.capacity, H});
  if (!whole) s.new_keys.resize(ops_, {N, H});
  real* const p = whole ? keys.data() : s.new_keys.data();
  real *const q = a.q.data(), *const y = a.y.data();

  ops_.normalize(a.r.data(), a.r_inv_std.data(), s.x.data(), N, D);
  ops_.linear(p, a.r.data(), block.left->value, nullptr, N, D, H, Into::WRITE);
  ops_.linear(q, a.r.data(), block.right->value, block.right_bias->value, N, D, H, Into::WRITE);
  if (config_.pre_norm == PreNorm::EXACT) {
    ops_.center(p, p, N * config_.heads, shape.head_width());
    ops_.center(q, q, N * config_.heads, shape.head_width());
  } else if (config_.pre_norm == PreNorm::APPROXIMATE) {
    a.p_inv_std.resize(ops_, {N});
    a.q_inv_std.resize(ops_, {N});
    ops_.normalize(p, a.p_inv_std.data(), p, N, H);
    ops_.normalize(q, a.q_inv_std.data(), q, N, H);
  }
  if (!whole) {
    const size_t row = static_cast<size_t>(H) * sizeof(real);
    ops_.copy(keys.data() + static_cast<int64_t>(s.length) * H, static_cast<size_t>(s.capacity) * row, p,
              static_cast<size_t>(n) * row, static_cast<size_t>(n) * row, static_cast<size_t>(s.batch));
  }
  if (config_.pre_norm == PreNorm::EXACT) {
    a.pair_inv_std.resize(ops_, {s.batch, config_.heads, n, s.capacity});
    ops_.relation_inv_std(a.pair_inv_std.data(), keys.data(), q, shape);
  }
  if (shifted()) {
    a.shift.resize(ops_, {N});
    ops_.relation_shift(a.shift.data(), keys.data(), q, shape);
  }
  ops_.relation(y, a.pair_inv_std.data(), a.shift.data(), keys.data(), q, shape);
  if (config_.post_norm) ops_.normalize(y, a.y_inv_std.data(), y, N, H);
  ops_.linear(s.x.data(), y, block.out->value, block.out_bias->value, N, H, D, Into::ADD);
}

// ---- Backward -----------------------------------------------------------------------------------------------------

void CausalRn::backward(const Input& input, const real* dlogits) {
  const Config& c = config_;
  const State& s = state_;
  const int64_t N = input.rows();
  dx_.resize(ops_, {N, c.width});
  dr_.resize(ops_, {N, c.width});
  dp_.resize(ops_, {N, c.hidden});
  dq_.resize(ops_, {N, c.hidden});
  dz_.resize(ops_, {N, c.hidden});

  ops_.linear_backward_weight(head_->gradient, nullptr, dlogits, s.y.data(), N, c.width, c.vocab);
  ops_.linear_backward_input(dx_.data(), dlogits, head_->value, N, c.width, c.vocab, Into::WRITE);
  ops_.normalize_backward(dx_.data(), dx_.data(), s.y.data(), s.y_inv_std.data(), N, c.width, Into::WRITE);
  const RelationShape shape{s.batch, s.length, s.length, s.capacity, c.hidden, c.heads, c.causal, c.activation};
  for (size_t l = blocks_.size(); l-- > 0;) block_backward(blocks_[l], s.blocks[l], s.keys[l], shape);
  ops_.embedding_backward(token_embedding_->gradient, position_embedding_->gradient, dx_.data(), input.tokens, input.batch,
                          input.length, c.width, c.vocab);
}

// dx_ is the gradient of the block's output when it comes and of its input when it goes: the residual passes it on, the
// block adds its part.
void CausalRn::block_backward(const Block& block, const Activations& a, const Tensor& keys, const RelationShape& shape) {
  const int D = config_.width, H = config_.hidden;
  const int64_t N = static_cast<int64_t>(shape.batch) * shape.keys;
  const real *p = keys.data(), *q = a.q.data(), *y = a.y.data(), *r = a.r.data();
  real *dx = dx_.data(), *dz = dz_.data(), *dp = dp_.data(), *dq = dq_.data(), *dr = dr_.data();

  ops_.linear_backward_weight(block.out->gradient, block.out_bias->gradient, dx, y, N, H, D);
  ops_.linear_backward_input(dz, dx, block.out->value, N, H, D, Into::WRITE);
  if (config_.post_norm) ops_.normalize_backward(dz, dz, y, a.y_inv_std.data(), N, H, Into::WRITE);

  if (config_.pre_norm == PreNorm::EXACT) pair_weight_.resize(ops_, a.pair_inv_std.shape());
  ops_.relation_backward(dp, dq, pair_weight_.data(), dz, a.pair_inv_std.data(), a.shift.data(), p, q, shape);
  if (config_.pre_norm == PreNorm::APPROXIMATE) {
    ops_.normalize_backward(dp, dp, p, a.p_inv_std.data(), N, H, Into::WRITE);
    ops_.normalize_backward(dq, dq, q, a.q_inv_std.data(), N, H, Into::WRITE);
  }

  ops_.linear_backward_weight(block.left->gradient, nullptr, dp, r, N, D, H);
  ops_.linear_backward_weight(block.right->gradient, block.right_bias->gradient, dq, r, N, D, H);
  ops_.linear_backward_input(dr, dp, block.left->value, N, D, H, Into::WRITE);
  ops_.linear_backward_input(dr, dq, block.right->value, N, D, H, Into::ADD);
  ops_.normalize_backward(dx, dr, r, a.r_inv_std.data(), N, D, Into::ADD);
}

// ---- Stream -------------------------------------------------------------------------------------------------------

class CausalRnStream final : public Stream {
 public:
  CausalRnStream(CausalRn& model, int batch, int capacity) : model_(model) {
    state_.batch = batch;
    state_.capacity = capacity;
  }
  const real* append(const int32_t* tokens, int n) override {
    if (n > state_.capacity - state_.length)
      throw Error(text("causal_rn: %d tokens are more than the stream's %d", state_.length + n, state_.capacity));
    return model_.run(state_, tokens, n);
  }
  int length() const override { return state_.length; }

 private:
  CausalRn& model_;
  State state_{};
};

std::unique_ptr<Stream> CausalRn::stream(int batch, int capacity) {
  if (!config_.causal) throw Error("causal_rn: a bidirectional model cannot read one token at a time");
  if (capacity > config_.context)
    throw Error(text("causal_rn: a stream of %d tokens is longer than the context of %d", capacity, config_.context));
  return std::make_unique<CausalRnStream>(*this, batch, capacity);
}

}  // namespace

std::unique_ptr<Model> make_causal_rn(const Json& config, Ops& ops) { return std::make_unique<CausalRn>(config, ops); }

}  // namespace petroglyph
