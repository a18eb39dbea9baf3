// The linear Transformer: attention without its softmax, whose past is a matrix instead of a list.
// Katharopoulos, Vyas, Pappas and Fleuret 2020; fast weight programmers, Schmidhuber 1992; how the two are one: Irie,
// "Why Are Positional Encodings Nonessential for Deep Autoregressive Transformers?", section 4 and appendix A (equation
// numbers).
//
// B samples of T positions, N = B·T; D channels (width), in heads of d = D/heads; H hidden channels; V classes.
//
//   x = token_embedding[token] + position                                   (B,T,D)
//   in each block:
//     r       = norm_1(x)                                                   (B,T,D)
//     q, k, v = W_qkv r + b_qkv                                             (B,T,3D)   eq. 1
//     q, k    = φ(q), φ(k)                                                  (B,T,2D)   φ(x) = elu(x) + 1
//     y_t     = Σ_s (q_t·k_s) v_s / Σ_s q_t·k_s                             (B,T,D)    each head, of s ≤ t
//     x      += W_out y + b_out                                             (B,T,D)
//     r       = norm_2(x)                                                   (B,T,D)
//     x      += W_down gelu(W_up r + b_up) + b_down                         (B,T,D)    inside: (B,T,H)
//   logits = W_head final_norm(x) + b_head                                  (B,T,V)
//
// The divisor has no ε: where the sum of q_t·k_s over s is below 2⁻¹²⁸, its inverse is infinite, and training stops.
//
// Because nothing stands between q·k and v, the sum can be taken before q is known (eqs. 9 to 12):
//   Σ_s (q_t·k_s) v_s = (Σ_s v_s ⊗ k_s) q_t = W_t q_t,   W_t = W_{t−1} + v_t ⊗ k_t     recurrent form, eqs. 7 and 8
// and the divisor likewise, with 1 in the place of v: z_t·q_t, z_t = z_{t−1} + k_t. W is a memory of d² numbers,
// written by outer products and read by products, whatever the number of positions. It never forgets; it only overlays.
//
// Which form to compute. A position of the attention form costs 2 d multiplications for each position before it, one of
// the recurrent form 2 d² and a state that passes from position to position. So positions are cut into chunks of
// LinearAttentionShape::CHUNK: within a chunk, the attention form; from chunk to chunk, S = Wᵀ and z, one large product
// each. All of these are products of matrices, linear in T, and all chunks can be computed at the same time but for
// adding up S. Decoding keeps S, z, and k and v of its unfinished chunk, a state of fixed size, and makes the same sums
// in the same order.
//
// The backward pass. A residual connection passes dx on and its branch adds to it: dx += norm'(branch'(dx)). Linear
// layers have dx = dy W, dW = dyᵀ x, db = Σ dy. Attention: let sum_t be the divisor and u_t = sum_t y_t what it
// divides. Their gradients are
//   g_t = dy_t / sum_t   and   c_t = −dy_t·u_t / sum_t² = −g_t·y_t
// (not normalized: g = dy, c = 0). u and sum are both linear in the weights a_ts = q_t·k_s, with v_s and 1: so
//   da_ts = g_t·v_s + c_t     dv_s = Σ_{t≥s} a_ts g_t     dq_t = Σ_{s≤t} da_ts k_s     dk_s = Σ_{t≥s} da_ts q_t
// the attention form again, with the roles exchanged, and each has its recurrent form. Of the chunks before, dq_t needs
//   Σ_s (g_t·v_s + c_t) k_s = S g_t + c_t z
// and from the chunks after, with L = Σ_t q_t ⊗ g_t and h = Σ_t c_t q_t added up from the last chunk to the first,
//   dk_s = L v_s + h,    dv_s = Lᵀ k_s
// Saved are the norms, q, k, v, y, the divisors, S and z before each chunk, and the MLP's inner layer before gelu; a
// and da are formed again chunk by chunk. φ'(x) = min(φ(x), 1), so that φ(q) and φ(k) can take the place of q and k.
//
// Options. Without them the code reads as the formulas above.
//   feature_map    "elu1", or "identity": φ(x) = x; normalized false: without the division
//   position       learned, sinusoidal or none
//   causal         false: the sums run over all s; the state is that of all positions
//   norm           "plain", without ε, gain and bias; "affine", with all of them
//   gelu           "erf" or "tanh"
//   qkv_bias, out_bias, head_bias: whether there are these biases
//   embedding_scale     token_embedding[token] times that; embedding_deviation: of its initial values
//   embedding_norm      x = norm(x) before the first block
//   tied_head      W_head is the token embedding
//   readout        "last": logits (B,V) of the last position alone
//   patches        images: x = [W_patch patch_1, …, W_patch patch_N, cls_token] + position                (B,N+1,D)

#include "base/error.h"
#include "base/text.h"
#include "models/attention_map.h"
#include "models/config.h"
#include "models/parts.h"

namespace petroglyph::linear_transformer {

// ---- Configuration --------------------------------------------------------------------------------------------------

struct Config {
  ConfigReader reader;
  int width = reader.size("width", 1 << 16);    // D
  int hidden = reader.size("hidden", 1 << 20);  // H
  int layers = reader.size("layers", 1 << 10);
  int heads = reader.heads("width", width);
  bool causal = reader.boolean("causal");
  FeatureMap feature_map =  // φ
      reader.choice("feature_map", {"elu1", "identity"}) == "elu1" ? FeatureMap::ELU_PLUS_ONE : FeatureMap::IDENTITY;
  bool normalized = reader.boolean("normalized");                        // whether there is a division
  EmbeddingConfig embedding{reader, {"learned", "none", "sinusoidal"}};  // tokens or patches, and their positions
  ReadoutConfig readout = read_readout(reader, embedding);               // classes, and of which positions
  bool affine = reader.choice("norm", {"plain", "affine"}) == "affine";
  real norm_epsilon = affine ? static_cast<real>(reader.number("norm_epsilon", 0, 1, 1e-5)) : NORM_EPSILON;
  bool qkv_bias = reader.boolean("qkv_bias");
  bool out_bias = reader.boolean("out_bias");
  Pointwise gelu =  // of the MLP
      reader.choice("gelu", {"erf", "tanh"}) == "tanh" ? Pointwise::GELU_TANH : Pointwise::GELU;

  explicit Config(const Json& json) : reader("linear_transformer", json) {
    reader.finish();
    if (normalized && feature_map == FeatureMap::IDENTITY)
      reader.fail("normalized is true with feature_map \"identity\", whose sums may be zero");
  }
};

// ---- Parameters, activations, state ------------------------------------------------------------------------------

struct Block {
  Norm norm_1;
  Linear qkv, out;  // (3D,D), (D,D)
  Norm norm_2;
  Mlp mlp;
};

// A pass's activations. In training each block has its own, for the backward pass; in decoding one serves all blocks in
// turn. Norms and MLPs size what is theirs.
struct Saved {
  struct Block {
    Norm::Saved norm_1;  // (N,D), (N)
    Tensor qkv;          // (N,3D): φ(q), φ(k), v of a position side by side, each grouped by head
    Tensor inv_sum;      // (B,heads,count): the inverse of the divisor, normalized only
    Tensor states;       // (B,heads,states,state): S, z before each chunk but the first, or of all positions; training
    Tensor y;            // (N,D)
    Norm::Saved norm_2;  // (N,D), (N)
    Mlp::Saved mlp;      // (N,H)
  };
  std::vector<Block> blocks;
  Tensor x;                    // (N,D): the residual stream
  Tensor r, hidden;            // (N,D), (N,H): of the block at work, a norm's output and gelu's
  Embedding::Saved embedding;  // (N,D), (N): embedding_norm only
  Readout::Saved readout;      // (R,V) logits of R rows, N or B, and what leads to them

  void resize(Ops& ops, const Config& c, const Pass& pass, const Shape& states) {
    const int64_t N = pass.rows();
    blocks.resize(pass.is_training() ? static_cast<size_t>(c.layers) : 1);
    for (Block& a : blocks) {
      a.qkv.resize(ops, {N, 3 * c.width});
      if (c.normalized) a.inv_sum.resize(ops, {pass.batch, c.heads, pass.count});
      if (pass.is_training()) a.states.resize(ops, states);
      a.y.resize(ops, {N, c.width});
    }
    x.resize(ops, {N, c.width});
  }
};

// What decoding stores of one block's earlier positions, however many: S, z, and k and v of the unfinished chunk.
using State = Tensor;  // (B,heads,decoder_state_size())

// Gradients of the block at work, and what else its backward pass needs.
struct Gradients {
  Tensor dx, dr, dy;     // (N,D) each
  Tensor dqkv, dhidden;  // (N,3D), (N,H)
  Tensor later;          // (B,heads,states,state): L and h

  void resize(Ops& ops, const Config& c, const Pass& pass, const Shape& states) {
    for (Tensor* t : {&dx, &dr, &dy}) t->resize(ops, {pass.rows(), c.width});
    dqkv.resize(ops, {pass.rows(), 3 * c.width});
    later.resize(ops, states);
  }
};

class LinearTransformer final : public Model {
  Config config_;
  Ops& ops_;
  Embedding embedding_;
  std::vector<Block> blocks_;
  Readout readout_;
  Saved saved_;  // of the last forward(), with
  Pass pass_{};
  Gradients gradients_;

 public:
  int classes() const override { return config_.readout.classes; }
  int vocab() const override { return config_.embedding.vocab; }
  int longest() const override {
    return config_.embedding.learns_positions() && window() == 0 ? config_.embedding.context : Model::longest();
  }
  // Without a mask the logits of a position are those of the window that ends there.
  int window() const override {
    return config_.readout.last && !config_.causal && !config_.embedding.images() ? config_.embedding.context : 0;
  }
  int64_t logit_rows(const Input& input) const override { return config_.readout.last ? input.batch : input.rows(); }
  bool has_fixed_state() const override { return config_.embedding.position == "none" && window() == 0; }

  LinearTransformer(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    const int D = c.width;
    const Init weight = Init::normal(WEIGHT_DEVIATION), out = Init::normal(output_deviation(2 * c.layers));
    const auto norm = [&](const std::string& name) { return Norm(parameters, name, D, c.affine, c.norm_epsilon); };
    embedding_ = Embedding(parameters, "linear_transformer", c.embedding, D, c.affine, c.norm_epsilon);
    for (int l = 0; l < c.layers; ++l) {
      const std::string prefix = "blocks." + std::to_string(l) + ".", attention = prefix + "attention.";
      Block& b = blocks_.emplace_back();
      b.norm_1 = norm(prefix + "norm_1");
      b.qkv = Linear(parameters, attention + "qkv", D, 3 * D, weight, c.qkv_bias);
      b.out = Linear(parameters, attention + "out", D, D, out, c.out_bias);
      b.norm_2 = norm(prefix + "norm_2");
      b.mlp = Mlp(parameters, prefix + "mlp", D, c.hidden, c.gelu, weight, out);
    }
    readout_ = Readout(parameters, c.readout, D, true, c.affine, c.norm_epsilon, embedding_.tokens());
    parameters.allocate(ops);
  }

  // ---- The model ----------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    embedding_.check_length(input.length);
    const int T = config_.embedding.images() ? config_.embedding.context : input.length;
    pass_ = {Mode::TRAINING, input.batch, 0, T, T, true};
    return run(input, saved_, nullptr, pass_);
  }

  // Both modes; states: of each block, in decoding. Returns the logits, or null where they are not needed.
  const real* run(const Input& input, Saved& s, std::vector<State>* states, const Pass& pass) {
    s.resize(ops_, config_, pass, states_shape(pass));
    embedding_.forward(ops_, s.embedding, s.x, input, pass.first, pass.count, pass.capacity);
    for (size_t l = 0; l < blocks_.size(); ++l)
      block_forward(blocks_[l], s.blocks[pass.is_training() ? l : 0], s, pass.is_training() ? nullptr : &(*states)[l],
                    pass);
    return pass.need_logits ? readout_.forward(ops_, s.readout, s.x, pass.batch, pass.count, pass.mode) : nullptr;
  }

  void backward(const Input& input, const real* dlogits) override {
    gradients_.resize(ops_, config_, pass_, states_shape(pass_));
    readout_.backward(ops_, gradients_.dx, saved_.readout, dlogits, saved_.x, pass_.batch, pass_.count);
    for (size_t l = blocks_.size(); l-- > 0;) block_backward(blocks_[l], saved_.blocks[l]);
    embedding_.backward(ops_, saved_.embedding, gradients_.dx, input, pass_.count);
  }

  // ---- The block ----------------------------------------------------------------------------------------------------

  void block_forward(const Block& w, Saved::Block& a, Saved& s, State* state, const Pass& pass) {
    const int64_t N = pass.rows();
    const real* r = w.norm_1.forward(ops_, a.norm_1, s.r, s.x, N);  // r = norm_1(x)                             (N,D)
    w.qkv.forward(ops_, a.qkv, r, N);                               // q, k, v = W_qkv r + b_qkv                 (N,3D)
    // q, k = φ(q), φ(k),  y_t = Σ_s (q_t·k_s) v_s / Σ_s q_t·k_s                                                (N,D)
    ops_.linear_attention(a.y, a.inv_sum, a.states, state ? state->data() : nullptr, a.qkv, shape(pass));
    w.out.forward(ops_, s.x, a.y, N, Into::ADD);        // x += W_out y + b_out                      (N,D)
    r = w.norm_2.forward(ops_, a.norm_2, s.r, s.x, N);  // r = norm_2(x)                             (N,D)
    w.mlp.forward(ops_, a.mlp, s.x, r, s.hidden, N);    // x += W_down gelu(W_up r + b_up) + b_down  (N,D)
  }

  // dx, the gradient of the block's output, becomes that of its input: the residual connections pass it on, and the two
  // branches add their parts.
  void block_backward(const Block& w, Saved::Block& a) {
    Gradients& g = gradients_;
    const int64_t N = pass_.rows();
    const real* r = w.norm_2.output(ops_, a.norm_2, saved_.r, N);                          // r = norm_2(x), again
    w.mlp.backward(ops_, g.dr, Into::WRITE, g.dx, a.mlp, r, saved_.hidden, g.dhidden, N);  // x += W_down gelu(W_up r …
    w.norm_2.backward(ops_, g.dx, g.dr, a.norm_2, N, Into::ADD);                           // r = norm_2(x)
    w.out.backward(ops_, g.dy, g.dx, a.y, N);                                              // x += W_out y + b_out
    // y; dy becomes g and inv_sum c
    ops_.linear_attention_backward(g.dqkv, g.later, g.dy, a.y, a.inv_sum, a.states, a.qkv, shape(pass_));
    r = w.norm_1.output(ops_, a.norm_1, saved_.r, N);             // r = norm_1(x), again
    w.qkv.backward(ops_, g.dr, g.dqkv, r, N);                     // q, k, v = W_qkv r + b_qkv
    w.norm_1.backward(ops_, g.dx, g.dr, a.norm_1, N, Into::ADD);  // r = norm_1(x)
  }

  LinearAttentionShape shape(const Pass& pass) const {
    const Config& c = config_;
    return {pass.batch, pass.count, c.heads, c.width / c.heads, c.causal, c.normalized, c.feature_map, pass.first};
  }

  Shape states_shape(const Pass& pass) const {
    const LinearAttentionShape s = shape(pass);
    return {pass.batch, s.heads, s.states(), s.state_size()};
  }

  // ---- Decoding -----------------------------------------------------------------------------------------------------

  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    if (config_.embedding.images()) throw Error("linear_transformer: images are not read token by token");
    if (window() > 0) return make_window_decoder(*this, ops_, "linear_transformer", window(), batch, capacity);
    if (!config_.causal) throw Error("linear_transformer: a bidirectional model cannot read one token at a time");
    embedding_.check_length(capacity);
    const LinearAttentionShape s = shape({Mode::DECODING, batch, 0, 1, capacity, false});
    std::vector<State> states(blocks_.size());
    for (State& state : states) state.resize(ops_, {batch, s.heads, s.decoder_state_size()});
    return make_model_decoder<Saved>("linear_transformer", *this, std::move(states), batch, capacity);
  }

  // ---- What ./inspect draws -----------------------------------------------------------------------------------------

  std::vector<real> attention_map(size_t l, int sample) override {
    const Pass& pass = pass_;
    LinearAttentionShape s = shape(pass);
    s.feature_map = FeatureMap::IDENTITY;  // qkv has φ(q) and φ(k)
    Tensor inv_sum, states(ops_, states_shape(pass));
    if (config_.normalized) inv_sum.resize(ops_, {pass.batch, s.heads, pass.count});
    const auto attend = [&](real* y, real* qkv) { ops_.linear_attention(y, inv_sum, states, nullptr, qkv, s); };
    return attention_weights(ops_, saved_.blocks.at(l).qkv, pass.batch, pass.count, config_.width, s.heads, sample,
                             attend);
  }
};

}  // namespace petroglyph::linear_transformer

std::unique_ptr<petroglyph::Model> petroglyph::make_linear_transformer(const Json& config, Ops& ops) {
  return std::make_unique<linear_transformer::LinearTransformer>(config, ops);
}
