// Mamba: a recurrent network whose state is read, written and forgotten as the current token says.
// Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State Spaces", 2023 (its equation numbers).
//
//   x  = token_embedding[token]                                       (B,T,D)   no positions: the recurrence knows them
//   in each block (section 3.4, figure 3), with I = expand·D channels of S states:
//     r   = norm(x)                                                   (B,T,D)   root mean square norm with a gain
//     v   = W_v r,  z = W_z r                                         (B,T,I)   the two halves of in_proj
//     u   = silu(conv(v))                                             (B,T,I)   each channel's last K inputs
//     δ, B, C = W_x u                                                 (B,T,R), (B,T,S), (B,T,S)
//     Δ   = softplus(W_Δ δ + b_Δ),  A = −exp(A_log)                   (B,T,I), (I,S)   algorithm 2; A_log: the authors' code
//     h_t = exp(Δ_t A) h_{t−1} + Δ_t u_t B_t                          (B,S,I)   eq. 2a, from h = 0
//     y_t = Σ_s h_{t,s} C_{t,s} + D u_t                               (B,T,I)   eq. 2b
//     x  += W_out (y ∘ silu(z))                                       (B,T,D)
//   logits = W_head norm(x)                                           (B,T,V)   tied_head: W_head is the embedding
// In shapes B is the batch and D the width. In formulas B_t, S numbers, says where to write, and D, one number a channel, weighs
// the input that goes past the state.
// exp(Δ A) is the zero-order hold of eq. 4; Δ B is its B̄ to first order in Δ, as in the authors' code.
//
// Why it is "selective": with constant Δ, B and C this is a linear filter, which weighs the past by its age alone. Here
// they are functions of the token. Where Δ is large the state forgets and takes the token in, where it is small it
// keeps what it has and ignores the token; B says where to write, C where to read. Why it cannot copy long strings:
// all of the past stands, in each block, in I·(S + K − 1) numbers, however long it is.
//
// The backward pass of the scan. Let dh_t be the gradient with respect to h_t from all that follows, a_t = exp(Δ_t A).
// h_t is used by y_t and by h_{t+1}, so that a second recurrence runs backward through time:
//   dh_t = dy_t C_t + a_{t+1} dh_{t+1}                                  for every channel and state
// Each h_t was made of a_t, h_{t−1}, Δ_t u_t and B_t. The gradient of Δ_t A is e_t = dh_t h_{t−1} a_t, because exp is
// its own slope, and so
//   d(Δu)_t = Σ_s dh_t B_t                  du_t = Δ_t d(Δu)_t + D dy_t
//   dΔ_t    = u_t d(Δu)_t + Σ_s e_t A       before softplus: dΔ_t σ(W_Δ δ + b_Δ)
//   dA      = Σ_t e_t Δ_t                   dA_log = A dA, since A = −exp(A_log) is its own slope
//   dB_t    = Σ_channels dh_t Δ_t u_t       dC_t = Σ_channels dy_t h_t                    dD = Σ_t dy_t u_t
// It needs every h_{t−1}, which forward would have to store: S times the size of any other activation. Instead one h in
// 64 is kept, and the backward pass computes the 64 after it again. (Going back by h_{t−1} = (h_t − Δ_t u_t B_t)/a_t
// would divide by numbers near zero.)
//
// The rest: with g = W_outᵀ dx the gradient of the gated y, dy = g∘silu(z) and dz = g∘y∘silu'(z); the convolution is a sum over K
// shifted copies, so its gradients are sums over shifts the other way; linear layers and norms as everywhere. u, Δ, the gated y
// and r are made again from v, δ, y and z, and x, which are stored.

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/models.h"
#include "models/parts.h"

namespace petroglyph {

namespace mamba {

struct Config {
  int vocab;  // V
  int width;  // D
  int layers;
  int state;    // S, numbers of memory of a channel
  int conv;     // K, taps of the convolution
  int inner;    // I = expand·D
  int dt_rank;  // R, the width that Δ is squeezed through
  real norm_epsilon;
  bool tied_head;

  explicit Config(const Json& json) {
    ConfigReader reader("mamba", json);
    vocab = static_cast<int>(reader.integer("vocab", 1, 1 << 24));
    // Required, as in other models of language; no sequence is too long for this one.
    reader.integer("context", 1, 1 << 24);
    width = static_cast<int>(reader.integer("width", 1, 1 << 16));
    layers = static_cast<int>(reader.integer("layers", 1, 1 << 10));
    state = static_cast<int>(reader.integer("state", 1, 1 << 10));
    conv = static_cast<int>(reader.integer("conv", 1, 1 << 10));
    inner = width * static_cast<int>(reader.integer("expand", 1, 64));
    dt_rank = static_cast<int>(reader.integer("dt_rank", 1, 1 << 16));
    norm_epsilon = static_cast<real>(reader.number("norm_epsilon", 0, 1, 1e-5));
    tied_head = reader.boolean("tied_head", false);
    reader.finish();
    if (int64_t{1} * inner * conv > 1 << 28)
      reader.fail(text("expand times width, %d channels, times conv %d is more than 268,435,456 taps", inner, conv));
  }
  int projected() const { return dt_rank + 2 * state; }
};

struct Block {
  Parameter* norm;               // (D)
  Parameter* in_proj;            // (2I,D)
  Parameter *conv, *conv_bias;   // (I,K), (I)
  Parameter* x_proj;             // (R+2S,I)
  Parameter *dt_proj, *dt_bias;  // (I,R), (I)
  Parameter *A_log, *skip;       // (I,S), (I): skip is the paper's D
  Parameter* out_proj;           // (D,I)
};

// What one block computes on the way forward and the backward pass wants to see again.
struct Activations {
  Tensor x;          // (N,D): the block's input; N = B·T
  Tensor v, z, y;    // (N,I)
  Tensor projected;  // (N,R+2S): δ, B and C
  Tensor kept;       // (B,segments,S,I): h at the start of each segment
};

// All that a block remembers of the past, in a stream.
struct Past {
  Tensor v;  // (B,K−1,I): the convolution's last inputs
  Tensor h;  // (B,S,I)
};

// Activations of a batch, or of a stream's newest tokens.
struct State {
  int batch;
  std::vector<Past> past;  // of each block, in a stream; empty for a batch, which starts from zeros
  std::vector<Activations> blocks;
  Tensor x, logits;                // (N,D), (N,V): after the last block
  Tensor r, inv_rms;               // (N,D), (N): a norm and its scale
  Tensor u, pre_step, gated, low;  // (N,I), (N,I), (N,I), (N,R): pre_step is W_Δ δ + b_Δ, low is δ by itself
};

// The usual beginning of Δ: softplus(bias) is log-uniform in [0.001, 0.1], as in the authors' code; section 3.6 says uniform.
// So the first state of a channel, where A = −1, begins with a memory between ten and a thousand tokens long. State s, where
// A = −s, forgets s times as fast.
real initial_dt_bias(int64_t, const Random4& random) {
  const float low = numerics::log(1e-3f), high = numerics::log(1e-1f);
  const float dt = numerics::exp(numerics::fma(uniform(random.word[0]), high - low, low));
  return numerics::log(numerics::expm1(dt));
}

class Mamba final : public Model {
 public:
  Mamba(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    const Init weight = Init::normal(WEIGHT_DEVIATION);
    token_embedding_ =
        &parameters.add("token_embedding.weight", {c.vocab, c.width}, c.tied_head ? weight : Init::normal(1));
    for (int l = 0; l < c.layers; ++l) add_block("blocks." + std::to_string(l) + ".");
    final_norm_ = &parameters.add("final_norm.weight", {c.width}, Init::ones());
    head_ = c.tied_head ? token_embedding_ : &parameters.add("head.weight", {c.vocab, c.width}, weight);
    parameters.allocate(ops);
  }

  int classes() const override { return config_.vocab; }
  bool has_fixed_state() const override { return true; }

  const real* forward(const Input& input) override {
    state_.batch = input.batch;
    run_blocks(state_, input.tokens_for("mamba"), input.length);
    return read_out(state_, input.length);
  }

  void backward(const Input& input, const real* dlogits) override;
  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override;

  // Appends n tokens to each of the batch's sequences.
  void run_blocks(State& s, const int32_t* tokens, int n);
  // Their logits (B,n,V).
  const real* read_out(State& s, int n);
  void begin_decoding(State& s, int batch);

 private:
  void add_block(const std::string& name);
  ScanShape scan_shape(int batch, int length) const {
    return {batch, length, config_.inner, config_.state, config_.projected()};
  }
  void block_forward(const Block& block, Activations& a, Past* past, State& s, int n);
  void block_backward(const Block& block, const Activations& a, const ScanShape& shape);
  void make_pre_step(const Block& block, const Activations& a, State& s, int64_t N);

  Config config_;
  Ops& ops_;
  Parameter *token_embedding_, *final_norm_, *head_;  // (V,D), (D), (V,D)
  std::vector<Block> blocks_;
  State state_{};
  // Of the backward pass, shared by all blocks.
  Tensor dx_, dr_;                   // (N,D) each
  Tensor dv_, dz_, du_, dpre_step_;  // (N,I) each
  Tensor dlow_, dprojected_;         // (N,R), (N,R+2S)
  Tensor partial_;                   // the scan's scratch
};

// Projections begin as the linear-time paper's appendix B says (the workshop paper's D): N(0, 0.02²), divided by √(residual
// connections) where they lead back into the residual stream. The rest is the usual beginning of Mamba: A = −1, −2, …, −S, the
// skip D = 1, W_Δ uniform within ±1/√R, as in the authors' code (its output has a third of its input's variance), b_Δ as above; the
// convolution is uniform within ±1/√K, the field's default for K inputs.
void Mamba::add_block(const std::string& name) {
  const Config& c = config_;
  const int I = c.inner, S = c.state;
  const Init taps = Init::uniform(1 / numerics::sqrt(static_cast<real>(c.conv)));
  Block b;
  b.norm = &parameters.add(name + "norm.weight", {c.width}, Init::ones());
  b.in_proj = &parameters.add(name + "in_proj.weight", {2 * I, c.width}, Init::normal(WEIGHT_DEVIATION));
  b.conv = &parameters.add(name + "conv.weight", {I, c.conv}, taps);
  b.conv_bias = &parameters.add(name + "conv.bias", {I}, taps);
  b.x_proj = &parameters.add(name + "x_proj.weight", {c.projected(), I}, Init::normal(WEIGHT_DEVIATION));
  b.dt_proj = &parameters.add(name + "dt_proj.weight", {I, c.dt_rank},
                              Init::uniform(1 / numerics::sqrt(static_cast<real>(c.dt_rank))));
  b.dt_bias = &parameters.add(name + "dt_proj.bias", {I}, Init::function(initial_dt_bias));
  b.A_log = &parameters.add(name + "A_log", {I, S}, Init::function([S](int64_t index, const Random4&) {
                              return numerics::log(static_cast<float>(index % S + 1));
                            }));
  b.skip = &parameters.add(name + "D", {I}, Init::ones());
  b.out_proj = &parameters.add(name + "out_proj.weight", {c.width, I}, Init::normal(output_deviation(c.layers)));
  blocks_.push_back(b);
}

// ---- Forward ------------------------------------------------------------------------------------------------------

void Mamba::run_blocks(State& s, const int32_t* tokens, int n) {
  const Config& c = config_;
  const int64_t N = static_cast<int64_t>(s.batch) * n;
  const bool streaming = !s.past.empty();  // one block's activations then serve all blocks in turn
  s.blocks.resize(streaming ? 1 : blocks_.size());
  s.x.resize(ops_, {N, c.width});
  s.r.resize(ops_, {N, c.width});
  s.inv_rms.resize(ops_, {N});
  s.low.resize(ops_, {N, c.dt_rank});
  for (Tensor* t : {&s.u, &s.pre_step, &s.gated}) t->resize(ops_, {N, c.inner});

  ops_.embedding(s.x.data(), token_embedding_->value, nullptr, tokens, 0, s.batch, n, c.width);
  for (size_t l = 0; l < blocks_.size(); ++l)
    block_forward(blocks_[l], s.blocks[streaming ? 0 : l], streaming ? &s.past[l] : nullptr, s, n);
}

const real* Mamba::read_out(State& s, int n) {
  const Config& c = config_;
  const int64_t N = static_cast<int64_t>(s.batch) * n;
  s.logits.resize(ops_, {N, c.vocab});
  ops_.rms_norm(s.r.data(), s.inv_rms.data(), s.x.data(), final_norm_->value, c.norm_epsilon, N, c.width);
  ops_.linear(s.logits.data(), s.r.data(), head_->value, nullptr, N, c.width, c.vocab, Into::WRITE);
  return s.logits.data();
}

// s.x += the block's output
void Mamba::block_forward(const Block& block, Activations& a, Past* past, State& s, int n) {
  const int D = config_.width, I = config_.inner, S = config_.state, P = config_.projected();
  const int64_t N = static_cast<int64_t>(s.batch) * n;
  const ScanShape shape = scan_shape(s.batch, n);
  a.x.resize(ops_, {N, D});
  for (Tensor* t : {&a.v, &a.z, &a.y}) t->resize(ops_, {N, I});
  a.projected.resize(ops_, {N, P});
  if (!past) a.kept.resize(ops_, {s.batch, shape.segments(), S, I});

  ops_.copy(a.x.data(), 0, s.x.data(), 0, s.x.bytes(), 1);
  ops_.rms_norm(s.r.data(), s.inv_rms.data(), a.x.data(), block.norm->value, config_.norm_epsilon, N, D);
  const real *W_v = block.in_proj->value, *W_z = W_v + static_cast<int64_t>(I) * D;
  ops_.linear(a.v.data(), s.r.data(), W_v, nullptr, N, D, I, Into::WRITE);
  ops_.linear(a.z.data(), s.r.data(), W_z, nullptr, N, D, I, Into::WRITE);
  ops_.causal_convolution(s.u.data(), past ? past->v.data() : nullptr, a.v.data(), block.conv->value,
                          block.conv_bias->value, s.batch, n, I, config_.conv);
  ops_.linear(a.projected.data(), s.u.data(), block.x_proj->value, nullptr, N, I, P, Into::WRITE);
  make_pre_step(block, a, s, N);
  const real *B = a.projected.data() + config_.dt_rank, *C = B + S;
  ops_.selective_scan(a.y.data(), past ? past->h.data() : nullptr, past ? nullptr : a.kept.data(), s.u.data(),
                      s.pre_step.data(), block.A_log->value, B, C, block.skip->value, shape);
  ops_.silu_gate(s.gated.data(), a.y.data(), a.z.data(), N * I);
  ops_.linear(s.x.data(), s.gated.data(), block.out_proj->value, nullptr, N, I, D, Into::ADD);
}

// s.pre_step = W_Δ δ + b_Δ, whose softplus is Δ
void Mamba::make_pre_step(const Block& block, const Activations& a, State& s, int64_t N) {
  const int R = config_.dt_rank, P = config_.projected();
  ops_.copy(s.low.data(), R * sizeof(real), a.projected.data(), P * sizeof(real), R * sizeof(real),
            static_cast<size_t>(N));
  ops_.linear(s.pre_step.data(), s.low.data(), block.dt_proj->value, block.dt_bias->value, N, R, config_.inner,
              Into::WRITE);
}

// ---- Backward -----------------------------------------------------------------------------------------------------

void Mamba::backward(const Input& input, const real* dlogits) {
  const Config& c = config_;
  const State& s = state_;
  const int64_t N = input.rows();
  const ScanShape shape = scan_shape(input.batch, input.length);
  dx_.resize(ops_, {N, c.width});
  dr_.resize(ops_, {N, c.width});
  for (Tensor* t : {&dv_, &dz_, &du_, &dpre_step_}) t->resize(ops_, {N, c.inner});
  dlow_.resize(ops_, {N, c.dt_rank});
  dprojected_.resize(ops_, {N, c.projected()});
  partial_.resize(ops_, {shape.partial_size()});

  ops_.linear_backward_weight(head_->gradient, nullptr, dlogits, s.r.data(), N, c.width, c.vocab);
  ops_.linear_backward_input(dr_.data(), dlogits, head_->value, N, c.width, c.vocab, Into::WRITE);
  ops_.rms_norm_backward(dx_.data(), final_norm_->gradient, dr_.data(), s.x.data(), s.inv_rms.data(),
                         final_norm_->value, N, c.width, Into::WRITE);
  for (size_t l = blocks_.size(); l-- > 0;) block_backward(blocks_[l], s.blocks[l], shape);
  ops_.embedding_backward(token_embedding_->gradient, nullptr, dx_.data(), input.tokens, input.batch, input.length,
                          c.width, c.vocab);
}

// dx_ is the gradient of the block's output when it comes and of its input when it goes: the residual passes it on, the
// block adds its part.
void Mamba::block_backward(const Block& block, const Activations& a, const ScanShape& shape) {
  const int D = config_.width, I = config_.inner, S = config_.state, R = config_.dt_rank, P = config_.projected();
  const int B = shape.batch, T = shape.length;
  const int64_t N = shape.rows();
  State& s = state_;
  real *dx = dx_.data(), *dr = dr_.data(), *dv = dv_.data(), *dz = dz_.data(), *du = du_.data(),
       *dpre_step = dpre_step_.data();
  real *dprojected = dprojected_.data(), *dB = dprojected + R, *dC = dB + S;
  real* const dy = dv;  // gone before dv comes

  ops_.linear_backward_input(dy, dx, block.out_proj->value, N, I, D, Into::WRITE);
  ops_.silu_gate_backward(dy, dz, s.gated.data(), dy, a.y.data(), a.z.data(), N * I);
  ops_.linear_backward_weight(block.out_proj->gradient, nullptr, dx, s.gated.data(), N, I, D);

  const real *stored_B = a.projected.data() + R, *stored_C = stored_B + S;
  ops_.causal_convolution(s.u.data(), nullptr, a.v.data(), block.conv->value, block.conv_bias->value, B, T, I,
                          config_.conv);
  make_pre_step(block, a, s, N);
  ops_.selective_scan_backward(du, dpre_step, block.A_log->gradient, dB, dC, block.skip->gradient, partial_.data(), dy,
                               a.kept.data(), s.u.data(), s.pre_step.data(), block.A_log->value, stored_B, stored_C,
                               block.skip->value, shape);
  ops_.linear_backward_weight(block.dt_proj->gradient, block.dt_bias->gradient, dpre_step, s.low.data(), N, R, I);
  ops_.linear_backward_input(dlow_.data(), dpre_step, block.dt_proj->value, N, R, I, Into::WRITE);
  ops_.copy(dprojected, P * sizeof(real), dlow_.data(), R * sizeof(real), R * sizeof(real), static_cast<size_t>(N));
  ops_.linear_backward_weight(block.x_proj->gradient, nullptr, dprojected, s.u.data(), N, I, P);
  ops_.linear_backward_input(du, dprojected, block.x_proj->value, N, I, P, Into::ADD);
  ops_.causal_convolution_backward(dv, block.conv->gradient, block.conv_bias->gradient, du, a.v.data(),
                                   block.conv->value, block.conv_bias->value, B, T, I, config_.conv);

  const int64_t half = static_cast<int64_t>(I) * D;
  ops_.rms_norm(s.r.data(), s.inv_rms.data(), a.x.data(), block.norm->value, config_.norm_epsilon, N, D);
  ops_.linear_backward_weight(block.in_proj->gradient, nullptr, dv, s.r.data(), N, D, I);
  ops_.linear_backward_weight(block.in_proj->gradient + half, nullptr, dz, s.r.data(), N, D, I);
  ops_.linear_backward_input(dr, dv, block.in_proj->value, N, D, I, Into::WRITE);
  ops_.linear_backward_input(dr, dz, block.in_proj->value + half, N, D, I, Into::ADD);
  ops_.rms_norm_backward(dx, block.norm->gradient, dr, a.x.data(), s.inv_rms.data(), block.norm->value, N, D,
                         Into::ADD);
}

// ---- Decoder -------------------------------------------------------------------------------------------------------

class MambaDecoder final : public Decoder {
 public:
  MambaDecoder(Mamba& model, int batch, int capacity) : Decoder("mamba", capacity), model_(model) {
    model.begin_decoding(state_, batch);
  }

 private:
  const real* advance(const int32_t* tokens, int n, bool need_logits) override {
    model_.run_blocks(state_, tokens, n);
    return need_logits ? model_.read_out(state_, n) : nullptr;
  }

  Mamba& model_;
  State state_{};
};

void Mamba::begin_decoding(State& s, int batch) {
  s.batch = batch;
  s.past.resize(blocks_.size());
  for (Past& past : s.past) {
    past.v.resize(ops_, {batch, config_.conv - 1, config_.inner});
    past.h.resize(ops_, {batch, config_.state, config_.inner});
    past.v.zero();
    past.h.zero();
  }
}

std::unique_ptr<Decoder> Mamba::make_decoder(int batch, int capacity) {
  return std::make_unique<MambaDecoder>(*this, batch, capacity);
}

}  // namespace mamba

std::unique_ptr<Model> make_mamba(const Json& config, Ops& ops) { return std::make_unique<mamba::Mamba>(config, ops); }

}  // namespace petroglyph
