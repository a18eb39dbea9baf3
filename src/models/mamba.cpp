// Mamba: a recurrent network whose state is read, written and forgotten as a function of the current token.
// Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023 (its equation numbers).
//
//   x  = token_embedding[token]                                     (B,T,D)   no positions: the recurrence has an order
//   in each block (section 3.4, figure 3), with I = expand·D channels of S states:
//     r   = norm(x)                                                   (B,T,D)   root mean square norm with a gain
//     v   = W_v r,  z = W_z r                                         (B,T,I)   the two halves of in_proj
//     u   = silu(conv(v))                                             (B,T,I)   each channel's last K inputs
//     δ, B, C = W_x u                                                 (B,T,R), (B,T,S), (B,T,S)
//     Δ   = softplus(W_Δ δ + b_Δ),  A = −exp(A_log)                   (B,T,I), (I,S)   algorithm 2; A_log: their code
//     h_t = exp(Δ_t A) h_{t−1} + Δ_t u_t B_t                          (B,S,I)   eq. 2a, from h = 0
//     y_t = Σ_s h_{t,s} C_{t,s} + D u_t                               (B,T,I)   eq. 2b
//     x  += W_out (y ∘ silu(z))                                       (B,T,D)
//   logits = W_head norm(x)                                           (B,T,V)   tied_head: W_head is the embedding
// In shapes B is the batch and D the width. In formulas B_t (S numbers) is the direction in which the state is written,
// C_t that in which it is read, and D, one number for each channel, is the weight of the input that bypasses the state.
// exp(Δ A) is the zero-order hold of eq. 4; Δ B is its B̄ to first order in Δ, as in the authors' code.
//
// Why it is "selective": with constant Δ, B and C this is a linear filter, which weighs the past by its age alone. Here
// they are functions of the token. If Δ is large, the state forgets its past and stores the token; if Δ is small, it
// keeps its past and ignores the token. Why it cannot copy long strings: each block stores the whole past, however
// long, in I·(S + K − 1) numbers.
//
// The backward pass of the scan. Let dh_t be the gradient with respect to h_t from all that follows, a_t = exp(Δ_t A).
// h_t is used by y_t and by h_{t+1}, so that a second recurrence runs backward through time:
//   dh_t = dy_t C_t + a_{t+1} dh_{t+1}                                  for every channel and state
// h_t is a function of a_t, h_{t−1}, Δ_t u_t and B_t. The gradient of Δ_t A is e_t = dh_t h_{t−1} a_t, because exp is
// its own derivative, and so
//   d(Δu)_t = Σ_s dh_t B_t                  du_t = Δ_t d(Δu)_t + D dy_t
//   dΔ_t    = u_t d(Δu)_t + Σ_s e_t A       before softplus: dΔ_t σ(W_Δ δ + b_Δ)
//   dA      = Σ_t e_t Δ_t                   dA_log = A dA, since A = −exp(A_log) is its own derivative
//   dB_t    = Σ_channels dh_t Δ_t u_t       dC_t = Σ_channels dy_t h_t                    dD = Σ_t dy_t u_t
// It needs every h_{t−1}, which forward would have to store: S times the size of any other activation. Instead one h in
// 64 is saved, and the backward pass computes the 64 after it again. (Going back by h_{t−1} = (h_t − Δ_t u_t B_t)/a_t
// would divide by numbers near zero.)
//
// The rest: with g = W_outᵀ dx the gradient of the gated y, dy = g∘silu(z) and dz = g∘y∘silu'(z); the convolution is a
// sum over K shifted copies, so its gradients are sums over shifts the other way; linear layers and norms as
// everywhere. u, Δ, the gated y and r are computed again from v, δ, y and z, and x, which are saved.

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"

namespace petroglyph::mamba {

struct Config {
  ConfigReader reader;
  int vocab = reader.size("vocab");           // V
  int context = reader.size("context");       // not used: the model reads sequences of any length
  int width = reader.size("width", 1 << 16);  // D
  int layers = reader.size("layers", 1 << 10);
  int state = reader.size("state", 1 << 10);      // S, numbers of memory of a channel
  int conv = reader.size("conv", 1 << 10);        // K, taps of the convolution
  int inner = width * reader.size("expand", 64);  // I = expand·D
  int dt_rank = reader.size("dt_rank", 1 << 16);  // R, the width that Δ is squeezed through
  real norm_epsilon = static_cast<real>(reader.number("norm_epsilon", 0, 1, 1e-5));
  bool tied_head = reader.boolean("tied_head", false);

  explicit Config(const Json& json) : reader("mamba", json) {
    reader.finish();
    if (int64_t{1} * inner * conv > 1 << 28)
      reader.fail(text("expand times width, %d channels, times conv %d is more than 268,435,456 taps", inner, conv));
  }
  int projected() const { return dt_rank + 2 * state; }
};

struct Block {
  Parameter* norm;              // (D)
  Linear v_proj, z_proj;        // (I,D) each: W_v, W_z, the halves of in_proj (2I,D)
  Parameter *conv, *conv_bias;  // (I,K), (I)
  Linear x_proj;                // (R+2S,I): W_x
  Linear dt_proj;               // (I,R), with a bias (I): W_Δ, b_Δ
  Parameter *A_log, *skip;      // (I,S), (I): skip is the paper's D
  Linear out_proj;              // (D,I): W_out
};

// The shape of a pass's scan. B and C are parts of the rows of `projected`.
ScanShape scan_shape(const Config& c, const Pass& pass) {
  return {pass.batch, pass.count, c.inner, c.state, c.projected()};
}

// A pass's activations. In training each block has its own, for the backward pass; in decoding one serves all blocks in
// turn.
struct Saved {
  struct Block {
    Tensor x;          // (N,D): the block's input
    Tensor v, z, y;    // (N,I) each
    Tensor projected;  // (N,R+2S): δ, B and C
    Tensor h;          // (B,segments,S,I): h at the start of each segment; training only
  };
  std::vector<Block> blocks;
  Tensor x, logits;                // (N,D), (N,V): after the last block
  Tensor r, inv_rms;               // (N,D), (N): the last norm and its scale
  Tensor u, pre_step, gated, low;  // (N,I), (N,I), (N,I), (N,R): of the block at work; W_Δ δ + b_Δ; δ by itself

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    const int64_t N = pass.rows();
    blocks.resize(pass.is_training() ? static_cast<size_t>(c.layers) : 1);
    for (Block& b : blocks) {
      b.x.resize(ops, {N, c.width});
      for (Tensor* t : {&b.v, &b.z, &b.y}) t->resize(ops, {N, c.inner});
      b.projected.resize(ops, {N, c.projected()});
      if (pass.is_training()) b.h.resize(ops, {pass.batch, scan_shape(c, pass).segments(), c.state, c.inner});
    }
    for (Tensor* t : {&x, &r}) t->resize(ops, {N, c.width});
    inv_rms.resize(ops, {N});
    for (Tensor* t : {&u, &pre_step, &gated}) t->resize(ops, {N, c.inner});
    low.resize(ops, {N, c.dt_rank});
    if (pass.need_logits) logits.resize(ops, {N, c.vocab});
  }
};

// What decoding stores of one block: its memory of all earlier tokens.
struct State {
  Tensor v;  // (B,K−1,I): the convolution's last inputs
  Tensor h;  // (B,S,I)
};

// Gradients of activations; those of the block at work, shared by all blocks.
struct Gradients {
  Tensor dx, dr;                 // (N,D) each
  Tensor dv, dz, du, dpre_step;  // (N,I) each
  Tensor dlow, dprojected;       // (N,R), (N,R+2S)
  Tensor partial;                // the scan's scratch

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    const int64_t N = pass.rows();
    for (Tensor* t : {&dx, &dr}) t->resize(ops, {N, c.width});
    for (Tensor* t : {&dv, &dz, &du, &dpre_step}) t->resize(ops, {N, c.inner});
    dlow.resize(ops, {N, c.dt_rank});
    dprojected.resize(ops, {N, c.projected()});
    partial.resize(ops, {scan_shape(c, pass).partial_size()});
  }
};

// The usual initial Δ: softplus(bias) is log-uniform in [0.001, 0.1], as in the authors' code; section 3.6 has uniform.
// So at the start the first state of a channel, where A = −1, remembers ten to a thousand tokens. State s, where A =
// −s, forgets s times as fast.
real initial_dt_bias(int64_t, const Random4& random) {
  const float low = numerics::log(1e-3f), high = numerics::log(1e-1f);
  const float dt = numerics::exp(numerics::fma(uniform(random.word[0]), high - low, low));
  return numerics::log(numerics::expm1(dt));
}

class Mamba final : public Model {
  Config config_;
  Ops& ops_;
  Parameter *token_embedding_, *final_norm_;  // (V,D), (D)
  std::vector<Block> blocks_;
  Linear head_;  // (V,D)
  Pass pass_{};  // the last forward()
  Saved saved_;  // its activations
  Gradients gradients_;

 public:
  Mamba(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    const Init weight = Init::normal(WEIGHT_DEVIATION);
    token_embedding_ =
        &parameters.add("token_embedding.weight", {c.vocab, c.width}, c.tied_head ? weight : Init::normal(1));
    for (int l = 0; l < c.layers; ++l) add_block("blocks." + std::to_string(l) + ".");
    final_norm_ = &parameters.add("final_norm.weight", {c.width}, Init::ones());
    head_ = c.tied_head ? Linear(token_embedding_) : Linear(parameters, "head", c.width, c.vocab, weight);
    parameters.allocate(ops);
  }

  int classes() const override { return config_.vocab; }
  bool has_fixed_state() const override { return true; }

  // Initial values of projections as in the linear-time paper's appendix B (the workshop paper's D): N(0, 0.02²),
  // divided by √(residual connections) where they lead back into the residual stream. The others are the usual ones of
  // Mamba: A = −1, −2, …, −S, the skip D = 1, W_Δ uniform within ±1/√R, as in the authors' code (its output has a third
  // of its input's variance), b_Δ as above; the convolution is uniform within ±1/√K, the field's default for K inputs.
  void add_block(const std::string& name) {
    const Config& c = config_;
    const int I = c.inner, S = c.state;
    const Init taps = Init::uniform(1 / numerics::sqrt(static_cast<real>(c.conv)));
    Block& b = blocks_.emplace_back();
    b.norm = &parameters.add(name + "norm.weight", {c.width}, Init::ones());
    Parameter* in_proj = &parameters.add(name + "in_proj.weight", {2 * I, c.width}, Init::normal(WEIGHT_DEVIATION));
    b.v_proj = Linear(in_proj, 0, I);
    b.z_proj = Linear(in_proj, I, I);
    b.conv = &parameters.add(name + "conv.weight", {I, c.conv}, taps);
    b.conv_bias = &parameters.add(name + "conv.bias", {I}, taps);
    b.x_proj = Linear(parameters, name + "x_proj", I, c.projected(), Init::normal(WEIGHT_DEVIATION));
    b.dt_proj = Linear(parameters, name + "dt_proj", c.dt_rank, I,
                       Init::uniform(1 / numerics::sqrt(static_cast<real>(c.dt_rank))));
    b.dt_proj.bias = &parameters.add(name + "dt_proj.bias", {I}, Init::function(initial_dt_bias));
    b.A_log = &parameters.add(name + "A_log", {I, S}, Init::function([S](int64_t index, const Random4&) {
                                return numerics::log(static_cast<float>(index % S + 1));
                              }));
    b.skip = &parameters.add(name + "D", {I}, Init::ones());
    b.out_proj = Linear(parameters, name + "out_proj", I, c.width, Init::normal(output_deviation(c.layers)));
  }

  // ---- Forward ------------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    pass_ = {Mode::TRAINING, input.batch, 0, input.length, input.length, true};
    return run(input, saved_, nullptr, pass_);
  }

  // The tokens of a pass through the model; states: in decoding, of each block. The logits (N,V), or null without
  // need_logits.
  const real* run(const Input& input, Saved& s, std::vector<State>* states, const Pass& pass) {
    const Config& c = config_;
    const int64_t N = pass.rows();
    s.resize(ops_, c, pass);

    ops_.embedding(s.x, token_embedding_->value, nullptr, input.tokens_for("mamba"), 0, pass.batch, pass.count,
                   c.width);
    for (size_t l = 0; l < blocks_.size(); ++l)
      block_forward(blocks_[l], s.blocks[pass.is_training() ? l : 0], s, pass.is_training() ? nullptr : &(*states)[l],
                    pass);
    if (!pass.need_logits) return nullptr;
    ops_.rms_norm(s.r, s.inv_rms, s.x, final_norm_->value, c.norm_epsilon, N, c.width);  // r = norm(x)        (N,D)
    head_.forward(ops_, s.logits, s.r, N);                                               // logits = W_head r  (N,V)
    return s.logits;
  }

  // Convolution and scan start from zeros; with `state` they continue after the earlier positions.
  void block_forward(const Block& w, Saved::Block& a, Saved& s, State* state, const Pass& pass) {
    const int D = config_.width, I = config_.inner, S = config_.state;
    const int64_t N = pass.rows();
    const real *const B = a.projected + config_.dt_rank, *const C = B + S;

    ops_.copy(a.x, 0, s.x, 0, s.x.bytes(), 1);
    ops_.rms_norm(s.r, s.inv_rms, a.x, w.norm->value, config_.norm_epsilon, N, D);  // r = norm(x)    (N,D)
    w.v_proj.forward(ops_, a.v, s.r, N);                                            // v = W_v r      (N,I)
    w.z_proj.forward(ops_, a.z, s.r, N);                                            // z = W_z r      (N,I)
    // u = silu(conv(v))                                                                                          (N,I)
    ops_.causal_convolution(s.u, state ? state->v.data() : nullptr, a.v, w.conv->value, w.conv_bias->value, pass.batch,
                            pass.count, I, config_.conv);
    w.x_proj.forward(ops_, a.projected, s.u, N);  // δ, B, C        (N,P)
    make_pre_step(w, a, s, N);                    // Δ              (N,I)
    // h_t = exp(Δ_t A) h_{t−1} + Δ_t u_t B_t,  y_t = Σ_s h_{t,s} C_{t,s} + D u_t                                   (N,I)
    ops_.selective_scan(a.y, state ? state->h.data() : nullptr, state ? nullptr : a.h.data(), s.u, s.pre_step,
                        w.A_log->value, B, C, w.skip->value, scan_shape(config_, pass));
    ops_.silu_gate(s.gated, a.y, a.z, N * I);              // y ∘ silu(z)    (N,I)
    w.out_proj.forward(ops_, s.x, s.gated, N, Into::ADD);  // x += W_out …   (N,D)
  }

  // s.pre_step = W_Δ δ + b_Δ, whose softplus is Δ
  void make_pre_step(const Block& w, const Saved::Block& a, Saved& s, int64_t N) {
    const int R = config_.dt_rank, P = config_.projected();
    ops_.copy(s.low, R * sizeof(real), a.projected, P * sizeof(real), R * sizeof(real), static_cast<size_t>(N));
    w.dt_proj.forward(ops_, s.pre_step, s.low, N);
  }

  // ---- Backward -----------------------------------------------------------------------------------------------------

  void backward(const Input& input, const real* dlogits) override {
    const Config& c = config_;
    const int64_t N = pass_.rows();
    const Saved& s = saved_;
    gradients_.resize(ops_, c, pass_);

    head_.backward(ops_, gradients_.dr, dlogits, s.r, N);
    ops_.rms_norm_backward(gradients_.dx, final_norm_->gradient, gradients_.dr, s.x, s.inv_rms, final_norm_->value, N,
                           c.width, Into::WRITE);
    for (size_t l = blocks_.size(); l-- > 0;) block_backward(blocks_[l], s.blocks[l]);
    ops_.embedding_backward(token_embedding_->gradient, nullptr, gradients_.dx, input.tokens, input.batch, input.length,
                            c.width, c.vocab);
  }

  // dx, the gradient of the block's output, becomes that of its input: the residual connection passes it on, and the
  // block adds its part.
  void block_backward(const Block& w, const Saved::Block& a) {
    const int D = config_.width, I = config_.inner, S = config_.state, R = config_.dt_rank, P = config_.projected();
    const int batch = pass_.batch, T = pass_.count;
    const int64_t N = pass_.rows();
    Saved& s = saved_;
    Gradients& g = gradients_;
    real *const dB = g.dprojected + R, *const dC = dB + S;
    real* const dy = g.dv;  // read for the last time before dv is written
    const real *const B = a.projected.data() + R, *const C = B + S;

    w.out_proj.backward_input(ops_, dy, g.dx, N);                     // x += W_out gated
    ops_.silu_gate_backward(dy, g.dz, s.gated, dy, a.y, a.z, N * I);  // gated = y ∘ silu(z), again
    w.out_proj.backward_weight(ops_, g.dx, s.gated, N);
    const real *const taps = w.conv->value, *const bias = w.conv_bias->value;
    ops_.causal_convolution(s.u, nullptr, a.v, taps, bias, batch, T, I, config_.conv);  // u again
    make_pre_step(w, a, s, N);                                                          // Δ again
    // y and h, with Δ = softplus(pre_step) and A = −exp(A_log)
    ops_.selective_scan_backward(g.du, g.dpre_step, w.A_log->gradient, dB, dC, w.skip->gradient, g.partial, dy, a.h,
                                 s.u, s.pre_step, w.A_log->value, B, C, w.skip->value, scan_shape(config_, pass_));
    w.dt_proj.backward(ops_, g.dlow, g.dpre_step, s.low, N);  // Δ from δ
    ops_.copy(g.dprojected, P * sizeof(real), g.dlow, R * sizeof(real), R * sizeof(real), static_cast<size_t>(N));
    w.x_proj.backward(ops_, g.du, g.dprojected, s.u, N, Into::ADD);  // δ, B, C from u
    // u = silu(conv(v))
    ops_.causal_convolution_backward(g.dv, w.conv->gradient, w.conv_bias->gradient, g.du, a.v, taps, bias, batch, T, I,
                                     config_.conv);
    ops_.rms_norm(s.r, s.inv_rms, a.x, w.norm->value, config_.norm_epsilon, N, D);  // r again
    w.v_proj.backward(ops_, g.dr, g.dv, s.r, N);                                    // v = W_v r
    w.z_proj.backward(ops_, g.dr, g.dz, s.r, N, Into::ADD);                         // z = W_z r
    ops_.rms_norm_backward(g.dx, w.norm->gradient, g.dr, a.x, s.inv_rms, w.norm->value, N, D, Into::ADD);
  }

  // ---- Decoding -----------------------------------------------------------------------------------------------------

  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    std::vector<State> states(blocks_.size());
    for (State& state : states) {
      state.v.resize(ops_, {batch, config_.conv - 1, config_.inner});
      state.h.resize(ops_, {batch, config_.state, config_.inner});
      state.v.zero();
      state.h.zero();
    }
    return make_model_decoder<Saved>("mamba", *this, std::move(states), batch, capacity);
  }
};

}  // namespace petroglyph::mamba

std::unique_ptr<petroglyph::Model> petroglyph::make_mamba(const Json& config, Ops& ops) {
  return std::make_unique<mamba::Mamba>(config, ops);
}
