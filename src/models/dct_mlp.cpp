// The DCT-MLP: a Transformer's blocks in which a fixed linear transform looks at the past, in place of attention: its lowest few
// frequencies, each with learned weights.
// "MLPs for NLP: Towards Discovering Inductive Bias from Scratch", section 5 and appendix C.2.
//
//   x   = token_embedding[token]                                            (B,T,D)   no positions
//   in each block:
//     x' = W_proj norm_1(x)                                                 (B,T,D)   heads of d channels
//     c_ij = s_j Σ_{m<t} x'_{i−t+1+m} cos(πj(2m+1)/(2t)),  j < k            (B,T,k,d) of each head, with its own t and k; eq. 1
//     o_i = Σ_{j<k} W_jᵀ c_ij                                               (B,T,D)
//     x  += gelu(norm_mix(W_out o + b_out))
//     x  += W_down gelu(W_up norm_2(x) + b_up) + b_down
//   logits = W_head final_norm(x)                                           (B,T,V)
// Ours, where appendix C.2 is silent: norm_1, gelu (its tanh form, as GPT-2's), the biases and the residual connections, "as in the
// transformer".
// c_i is the orthonormal DCT-II (section 4.3) of the last t inputs, s_0 = √(1/t) and s_j = √(2/t), without those before the start.
// Eq. 1 writes x_{T−t} … x_T, which are t + 1, and counts frequencies from 1; here the transform has length t, and j = 0 is √t
// times the mean.
//
// The neurons of mlp_lm.cpp learn either any function of the last few tokens or a smooth function of all of them. Both are a few
// low frequencies of some window: with t = k the transform is but a change of basis of the last k inputs; with t as long as the
// text k low frequencies are enough for a smooth function. And the number of weights does not depend on t.
//
// The transform costs what k frequencies cost, not what t positions do (sliding_dct.h), 8k multiply-adds a channel and position; products
// with W_j cost k·d: beside them c is cheap, and is not kept. The stream keeps, of each head, the inputs of the block of t positions
// that it is in, the k coefficients that the block before gives each place, and two running sums a frequency: (t(k+1) + 2k)·d
// numbers.
//
// The backward pass. With dz the gradient that has come through gelu and norm_mix:
//   dW_out = Σ dz ⊗ o     do = W_outᵀ dz     dW_j = Σ_i c_ij ⊗ do_i     dc_ij = W_j do_i
//   dx'_n = Σ_j s_j Σ_i dc_ij cos(πj(2m+1)/(2t)),  m = n − i + t − 1,  over the positions n ≤ i < n + t, whose windows have n
//   dW_proj = Σ dx' ⊗ norm_1(x)
// x passes on by the residual connections. Saved are the norms, x', o and the MLP's inner layer; c is formed once more.

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/models.h"
#include "models/parts.h"
#include "ops/dct_plan.h"

namespace petroglyph {

namespace dct_mlp {

struct Config {
  int vocab, width, hidden, layers, heads;
  std::vector<int64_t> frequencies, windows;  // k and t of each head

  explicit Config(const Json& json) {
    ConfigReader reader("dct_mlp", json);
    vocab = static_cast<int>(reader.integer("vocab", 1, 1 << 24));
    // Required, as in other models of language; no sequence is too long for this one.
    reader.integer("context", 1, 1 << 24);
    width = static_cast<int>(reader.integer("width", 1, 1 << 16));
    hidden = static_cast<int>(reader.integer("hidden", 1, 1 << 20));
    layers = static_cast<int>(reader.integer("layers", 1, 1 << 10));
    heads = static_cast<int>(reader.integer("heads", 1, (1 << 16) - 1));  // a GPU's grid has no more along y
    frequencies = reader.integers("frequencies", 1, 1 << 10);
    windows = reader.integers("windows", 1, 1 << 24);
    reader.finish();
    if (width % heads != 0) reader.fail(petroglyph::text("heads %d does not divide width %d", heads, width));
    for (const auto* list : {&frequencies, &windows})
      if (list->size() != static_cast<size_t>(heads))
        reader.fail(petroglyph::text("%s has %zu numbers, expected one for each of the %d heads",
                                     list == &windows ? "windows" : "frequencies", list->size(), heads));
    for (size_t h = 0; h < windows.size(); ++h)
      if (windows[h] < frequencies[h])
        reader.fail(petroglyph::text("windows[%zu] %lld is smaller than the head's %lld frequencies", h,
                                     static_cast<long long>(windows[h]), static_cast<long long>(frequencies[h])));
  }
  int head_width() const { return width / heads; }
  int64_t most() const { return *std::max_element(frequencies.begin(), frequencies.end()); }
};

struct Block {
  Norm norm_1, norm_mix, norm_2;
  Parameter *proj, *frequency;  // (D,D), (heads,most,d,d)
  Parameter *out, *out_bias;    // (D,D), (D)
  Mlp mlp;
};

// What one block computes and the backward pass wants to see again.
struct Activations {
  Norm::Saved norm_1, norm_mix, norm_2;
  Tensor projected, o;  // (N,D): x', o
  Mlp::Saved mlp;
};

// Of a batch, or of a stream's newest tokens.
struct State {
  DctShape shape{};
  std::vector<Tensor> past;         // (B,state) of each block, in a stream
  std::vector<Activations> blocks;  // one for all blocks in a stream
  Tensor x, r, z, hidden;           // (N,D) each, (N,H): of the block at work
  Tensor c;                         // shape.size()
  Norm::Saved final_norm;
  Tensor top, logits;  // (N,D), (N,V)
};

class DctMlp final : public Model {
 public:
  DctMlp(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    token_embedding_ = &parameters.add("token_embedding.weight", {c.vocab, c.width}, Init::normal(EMBEDDING_DEVIATION));
    for (int l = 0; l < c.layers; ++l) add_block("blocks." + std::to_string(l) + ".");
    final_norm_ = Norm(parameters, "final_norm", c.width, true);
    head_ = &parameters.add("head.weight", {c.vocab, c.width}, Init::normal(WEIGHT_DEVIATION));
    parameters.allocate(ops);
  }

  int classes() const override { return config_.vocab; }
  const real* forward(const Input& input) override;
  void backward(const Input& input, const real* dlogits) override;
  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override;

  // The newest tokens of each of the batch's sequences, which s.shape tells of.
  void run_blocks(State& s, const int32_t* tokens);
  // Their logits (B,positions,V).
  const real* read_out(State& s);
  DctPlan plan(int longest) { return {ops_, config_.windows, config_.frequencies, config_.head_width(), longest}; }
  void begin_decoding(State& s) {
    s.past.resize(blocks_.size());
    for (Tensor& past : s.past) past.resize(ops_, {s.shape.batch, s.shape.state_size});
  }

 private:
  static constexpr real EMBEDDING_DEVIATION = 1;

  void add_block(const std::string& name);
  void block_forward(const Block& block, Activations& a, Tensor* past, State& s);
  void block_backward(const Block& block, const Activations& a);
  void mix_backward(const Block& block, const Activations& a);

  Config config_;
  Ops& ops_;
  Parameter *token_embedding_, *head_;  // (V,D) each
  std::vector<Block> blocks_;
  Norm final_norm_;
  DctPlan plan_;  // for the longest sequence so far
  State state_;
  Tensor dx_, dr_, dz_, dhidden_;  // (N,D), (N,D), (N,D), (N,H): of the backward pass, shared by all blocks
};

// The paper leaves the initial weights open. They begin as GPT-2's: N(0, 0.02²), what leads into the residual stream divided by
// √(residual connections); W_out is not, because a norm stands behind it, and so embeddings are N(0, 1) as those of the other
// models: with 0.02, train_text's default was at a validation loss of 0.402 after 300 steps, with 1 at 0.390.
void DctMlp::add_block(const std::string& name) {
  const Config& c = config_;
  const int D = c.width, d = c.head_width();
  const Init weight = Init::normal(WEIGHT_DEVIATION);
  Block b;
  b.norm_1 = Norm(parameters, name + "norm_1", D, true);
  b.proj = &parameters.add(name + "mix.proj.weight", {D, D}, weight);
  b.frequency = &parameters.add(name + "mix.frequency.weight", {c.heads, c.most(), d, d}, weight);
  b.out = &parameters.add(name + "mix.out.weight", {D, D}, weight);
  b.out_bias = &parameters.add(name + "mix.out.bias", {D}, Init::zeros());
  b.norm_mix = Norm(parameters, name + "mix.norm", D, true);
  b.norm_2 = Norm(parameters, name + "norm_2", D, true);
  b.mlp = Mlp(parameters, name + "mlp", D, c.hidden, Pointwise::GELU_TANH, weight,
              Init::normal(output_deviation(2 * c.layers)));
  blocks_.push_back(b);
}

// ---- Forward ------------------------------------------------------------------------------------------------------

const real* DctMlp::forward(const Input& input) {
  const int32_t* tokens = input.tokens_for("dct_mlp");
  if (input.length > plan_.longest()) plan_ = plan(input.length);
  state_.shape = plan_.shape(input.batch, input.length);
  run_blocks(state_, tokens);
  return read_out(state_);
}

void DctMlp::run_blocks(State& s, const int32_t* tokens) {
  const Config& c = config_;
  const int64_t N = s.shape.rows();
  const bool streaming = !s.past.empty();
  s.blocks.resize(streaming ? 1 : blocks_.size());
  s.x.resize(ops_, {N, c.width});
  s.z.resize(ops_, {N, c.width});
  s.c.resize(ops_, {s.shape.size()});

  ops_.embedding(s.x.data(), token_embedding_->value, nullptr, tokens, 0, s.shape.batch, s.shape.positions, c.width);
  for (size_t l = 0; l < blocks_.size(); ++l)
    block_forward(blocks_[l], s.blocks[streaming ? 0 : l], streaming ? &s.past[l] : nullptr, s);
}

const real* DctMlp::read_out(State& s) {
  const int64_t N = s.shape.rows();
  s.logits.resize(ops_, {N, config_.vocab});
  const real* top = final_norm_.forward(ops_, s.final_norm, s.top, s.x.data(), N);
  ops_.linear(s.logits.data(), top, head_->value, nullptr, N, config_.width, config_.vocab, Into::WRITE);
  return s.logits.data();
}

// s.x += both branches
void DctMlp::block_forward(const Block& block, Activations& a, Tensor* past, State& s) {
  const int D = config_.width;
  const int64_t N = s.shape.rows();
  real *const x = s.x.data(), *const z = s.z.data();
  a.projected.resize(ops_, {N, D});
  a.o.resize(ops_, {N, D});

  const real* r = block.norm_1.forward(ops_, a.norm_1, s.r, x, N);
  ops_.linear(a.projected.data(), r, block.proj->value, nullptr, N, D, D, Into::WRITE);
  ops_.sliding_dct(s.c.data(), past ? past->data() : nullptr, a.projected.data(), s.shape);
  ops_.mix_frequencies(a.o.data(), s.c.data(), block.frequency->value, s.shape);
  ops_.linear(z, a.o.data(), block.out->value, block.out_bias->value, N, D, D, Into::WRITE);
  block.norm_mix.in_place(ops_, a.norm_mix, z, N);
  ops_.pointwise(z, z, Pointwise::GELU_TANH, N * D);
  ops_.add(x, D, x, z, N, D);

  r = block.norm_2.forward(ops_, a.norm_2, s.r, x, N);
  block.mlp.forward(ops_, a.mlp, x, r, s.hidden, N);
}

// ---- Backward -----------------------------------------------------------------------------------------------------

void DctMlp::backward(const Input& input, const real* dlogits) {
  const Config& c = config_;
  State& s = state_;
  const int64_t N = input.rows();
  dx_.resize(ops_, {N, c.width});
  dr_.resize(ops_, {N, c.width});
  dz_.resize(ops_, {N, c.width});
  real* const dx = dx_.data();

  const real* top = final_norm_.output(ops_, s.final_norm, s.top, N);
  ops_.linear_backward_weight(head_->gradient, nullptr, dlogits, top, N, c.width, c.vocab);
  ops_.linear_backward_input(dx, dlogits, head_->value, N, c.width, c.vocab, Into::WRITE);
  final_norm_.backward(ops_, dx, dx, s.final_norm, N, Into::WRITE);
  for (size_t l = blocks_.size(); l-- > 0;) block_backward(blocks_[l], s.blocks[l]);
  ops_.embedding_backward(token_embedding_->gradient, nullptr, dx, input.tokens, input.batch, input.length, c.width,
                          c.vocab);
}

// dx_ is the gradient of the block's output when it comes and of its input when it goes.
void DctMlp::block_backward(const Block& block, const Activations& a) {
  State& s = state_;
  const int64_t N = s.shape.rows();
  real *const dx = dx_.data(), *const dr = dr_.data();
  const real* r = block.norm_2.output(ops_, a.norm_2, s.r, N);
  block.mlp.backward(ops_, dr, Into::WRITE, dx, a.mlp, r, s.hidden, dhidden_, N);
  block.norm_2.backward(ops_, dx, dr, a.norm_2, N, Into::ADD);
  mix_backward(block, a);
  block.norm_1.backward(ops_, dx, dr, a.norm_1, N, Into::ADD);
}

// dr_ becomes the gradient of norm_1(x).
void DctMlp::mix_backward(const Block& block, const Activations& a) {
  State& s = state_;
  const int D = config_.width;
  const int64_t N = s.shape.rows();
  real *const dr = dr_.data(), *const dz = dz_.data(), *const c = s.c.data();
  const real* n = block.norm_mix.output(ops_, a.norm_mix, s.z, N);
  ops_.pointwise_backward(dz, nullptr, dx_.data(), n, Pointwise::GELU_TANH, N * D);
  block.norm_mix.backward(ops_, dz, dz, a.norm_mix, N, Into::WRITE);
  ops_.linear_backward_weight(block.out->gradient, block.out_bias->gradient, dz, a.o.data(), N, D, D);

  real* const d_o = dr;
  ops_.linear_backward_input(d_o, dz, block.out->value, N, D, D, Into::WRITE);
  ops_.sliding_dct(c, nullptr, a.projected.data(), s.shape);
  ops_.mix_frequencies_backward(c, block.frequency->gradient, d_o, c, block.frequency->value, s.shape);
  real* const dprojected = dz;
  ops_.sliding_dct_backward(dprojected, c, s.shape);

  const real* r = block.norm_1.output(ops_, a.norm_1, s.r, N);
  ops_.linear_backward_weight(block.proj->gradient, nullptr, dprojected, r, N, D, D);
  ops_.linear_backward_input(dr, dprojected, block.proj->value, N, D, D, Into::WRITE);
}

// ---- Decoder -------------------------------------------------------------------------------------------------------

class DctDecoder final : public Decoder {
 public:
  DctDecoder(DctMlp& model, int batch, int capacity)
      : Decoder("dct_mlp", capacity), model_(model), plan_(model.plan(std::max(capacity, 1))), batch_(batch) {
    state_.shape = plan_.shape(batch, 0);
    model.begin_decoding(state_);
  }

 private:
  const real* advance(const int32_t* tokens, int n, bool need_logits) override {
    state_.shape = plan_.shape(batch_, n, length());
    model_.run_blocks(state_, tokens);
    return need_logits ? model_.read_out(state_) : nullptr;
  }

  DctMlp& model_;
  DctPlan plan_;
  int batch_;
  State state_;
};

std::unique_ptr<Decoder> DctMlp::make_decoder(int batch, int capacity) {
  return std::make_unique<DctDecoder>(*this, batch, capacity);
}

}  // namespace dct_mlp

std::unique_ptr<Model> make_dct_mlp(const Json& config, Ops& ops) {
  return std::make_unique<dct_mlp::DctMlp>(config, ops);
}

}  // namespace petroglyph
