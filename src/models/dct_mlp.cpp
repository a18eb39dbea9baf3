// The DCT-MLP: a Transformer's blocks in which a fixed linear transform looks at the past, in place of attention: its
// lowest few frequencies, each with learned weights.
// "MLPs for NLP: Towards Discovering Inductive Bias from Scratch", section 5 and appendix C.2.
//
//   x   = token_embedding[token]                                            (B,T,D)   no positions
//   in each block:
//     x' = W_proj norm_1(x)                                                 (B,T,D)   heads of d channels
//     c_ij = s_j Σ_{m<t} x'_{i−t+1+m} cos(πj(2m+1)/(2t)),  j < k            (B,T,k,d) of each head; eq. 1
//     o_i = Σ_{j<k} W_jᵀ c_ij                                               (B,T,D)
//     x  += gelu(norm_mix(W_out o + b_out))
//     x  += W_down gelu(W_up norm_2(x) + b_up) + b_down
//   logits = W_head final_norm(x)                                           (B,T,V)
// Not in appendix C.2, chosen here "as in the transformer": norm_1, gelu (its tanh form, as GPT-2's), the biases and
// the residual connections.
// c_i is the orthonormal DCT-II (section 4.3) of the last t inputs, s_0 = √(1/t) and s_j = √(2/t), without those before
// the start. Eq. 1 writes x_{T−t} … x_T, which are t + 1, and counts frequencies from 1; here the transform has length
// t, and j = 0 is √t times the mean.
//
// The neurons of mlp_lm.cpp learn either any function of the last few tokens or a smooth function of all of them. Both
// are a few low frequencies of some window: with t = k the transform is but a change of basis of the last k inputs;
// with t as long as the text k low frequencies are enough for a smooth function. And the number of weights does not
// depend on t.
//
// The transform costs what k frequencies cost, not what t positions do (sliding_dct.h), 8k multiply-adds a channel and
// position; products with W_j cost k·d: beside them c is cheap, and is not saved. Decoding stores, of each head, the
// inputs of the block of t positions that it is in, the k coefficients that the block before gives each place, and two
// running sums a frequency: (t(k+1) + 2k)·d numbers.
//
// The backward pass. With dz the gradient that has come through gelu and norm_mix:
//   dW_out = Σ dz ⊗ o     do = W_outᵀ dz     dW_j = Σ_i c_ij ⊗ do_i     dc_ij = W_j do_i
//   dx'_n = Σ_j s_j Σ_i dc_ij cos(πj(2m+1)/(2t)),  m = n − i + t − 1,  over n ≤ i < n + t, whose windows have n
//   dW_proj = Σ dx' ⊗ norm_1(x)
// x passes on by the residual connections. Saved are the norms, x', o and the MLP's inner layer; c is computed again.

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"
#include "ops/dct_plan.h"

namespace petroglyph::dct_mlp {

struct Config {
  ConfigReader reader;
  int vocab = reader.size("vocab");             // V
  int context = reader.size("context");         // not used: the model reads sequences of any length
  int width = reader.size("width", 1 << 16);    // D
  int hidden = reader.size("hidden", 1 << 20);  // H
  int layers = reader.size("layers", 1 << 10);
  int heads = reader.heads("width", width, (1 << 16) - 1);                        // a GPU's grid has no more along y
  std::vector<int64_t> frequencies = reader.integers("frequencies", 1, 1 << 10);  // k of each head
  std::vector<int64_t> windows = reader.integers("windows", 1, 1 << 24);          // t of each head

  explicit Config(const Json& json) : reader("dct_mlp", json) {
    reader.finish();
    for (const auto* list : {&frequencies, &windows})
      if (list->size() != static_cast<size_t>(heads))
        reader.fail(text("%s has %zu numbers, expected one for each of the %d heads",
                         list == &windows ? "windows" : "frequencies", list->size(), heads));
    for (size_t h = 0; h < windows.size(); ++h)
      if (windows[h] < frequencies[h])
        reader.fail(text("windows[%zu] %lld is smaller than the head's %lld frequencies", h,
                         static_cast<long long>(windows[h]), static_cast<long long>(frequencies[h])));
  }
  int head_width() const { return width / heads; }
  int64_t most() const { return *std::max_element(frequencies.begin(), frequencies.end()); }
};

struct Block {
  Norm norm_1;
  Linear proj;           // (D,D): W_proj
  Parameter* frequency;  // (heads,most,d,d): W_j
  Linear out;            // (D,D), with a bias
  Norm norm_mix, norm_2;
  Mlp mlp;
};

// A pass's activations. In training each block has its own, for the backward pass; in decoding one serves all blocks in
// turn. Norms and MLPs size what is theirs.
struct Saved {
  struct Block {
    Norm::Saved norm_1, norm_mix, norm_2;
    Tensor projected, o;  // (N,D): x', o
    Mlp::Saved mlp;
  };
  std::vector<Block> blocks;
  Tensor x, r, z, hidden;  // (N,D) each, (N,H): of the block at work
  Tensor c;                // shape.size()
  Norm::Saved final_norm;
  Tensor top, logits;  // (N,D), (N,V)

  void resize(Ops& ops, const Config& config, const DctShape& shape, const Pass& pass) {
    const int64_t N = pass.rows();
    blocks.resize(pass.is_training() ? static_cast<size_t>(config.layers) : 1);
    for (Block& b : blocks)
      for (Tensor* t : {&b.projected, &b.o}) t->resize(ops, {N, config.width});
    for (Tensor* t : {&x, &z}) t->resize(ops, {N, config.width});
    c.resize(ops, {shape.size()});
    if (pass.need_logits) logits.resize(ops, {N, config.vocab});
  }
};

// What decoding stores.
struct State {
  DctPlan plan;                // for the decoder's capacity
  std::vector<Tensor> blocks;  // (B,state) of each block
};

// Gradients of activations, shared by all blocks.
struct Gradients {
  Tensor dx, dr, dz, dhidden;  // (N,D), (N,D), (N,D), (N,H)

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    for (Tensor* t : {&dx, &dr, &dz}) t->resize(ops, {pass.rows(), c.width});
  }
};

class DctMlp final : public Model {
  Config config_;
  Ops& ops_;
  Parameter* token_embedding_;  // (V,D)
  std::vector<Block> blocks_;
  Norm final_norm_;
  Linear head_;   // (V,D)
  DctPlan plan_;  // for the longest sequence so far
  Pass pass_{};   // the last forward()
  DctShape shape_{};
  Saved saved_;  // its activations
  Gradients gradients_;

 public:
  DctMlp(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    token_embedding_ = &parameters.add("token_embedding.weight", {c.vocab, c.width}, Init::normal(1));
    for (int l = 0; l < c.layers; ++l) add_block("blocks." + std::to_string(l) + ".");
    final_norm_ = Norm(parameters, "final_norm", c.width, true);
    head_ = Linear(parameters, "head", c.width, c.vocab, Init::normal(WEIGHT_DEVIATION));
    parameters.allocate(ops);
  }

  int classes() const override { return config_.vocab; }

  DctPlan plan(int longest) { return {ops_, config_.windows, config_.frequencies, config_.head_width(), longest}; }

  // The paper does not give initial values. They are GPT-2's: N(0, 0.02²), divided by √(residual connections) in layers
  // that lead into the residual stream. W_out is not divided, because a norm follows. Embeddings are N(0, 1), as in the
  // other models: train_text's default reached a validation loss of 0.390 after 300 steps with 1, and 0.402 with 0.02.
  void add_block(const std::string& name) {
    const Config& c = config_;
    const int D = c.width, d = c.head_width();
    const Init weight = Init::normal(WEIGHT_DEVIATION);
    Block& b = blocks_.emplace_back();
    b.norm_1 = Norm(parameters, name + "norm_1", D, true);
    b.proj = Linear(parameters, name + "mix.proj", D, D, weight);
    b.frequency = &parameters.add(name + "mix.frequency.weight", {c.heads, c.most(), d, d}, weight);
    b.out = Linear(parameters, name + "mix.out", D, D, weight, true);
    b.norm_mix = Norm(parameters, name + "mix.norm", D, true);
    b.norm_2 = Norm(parameters, name + "norm_2", D, true);
    b.mlp = Mlp(parameters, name + "mlp", D, c.hidden, Pointwise::GELU_TANH, weight,
                Init::normal(output_deviation(2 * c.layers)));
  }

  // ---- Forward ------------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    if (input.length > plan_.longest()) plan_ = plan(input.length);
    pass_ = {Mode::TRAINING, input.batch, 0, input.length, input.length, true};
    shape_ = plan_.shape(input.batch, input.length);
    return run(input, saved_, nullptr, pass_);
  }

  // The tokens of a pass through the model; state: in decoding. The logits (N,V), or null without need_logits.
  const real* run(const Input& input, Saved& s, State* state, const Pass& pass) {
    const bool training = pass.is_training();
    const int D = config_.width;
    const int64_t N = pass.rows();
    const DctShape shape = training ? shape_ : state->plan.shape(pass.batch, pass.count, pass.first);
    s.resize(ops_, config_, shape, pass);

    ops_.embedding(s.x, token_embedding_->value, nullptr, input.tokens_for("dct_mlp"), 0, pass.batch, pass.count, D);
    for (size_t l = 0; l < blocks_.size(); ++l)
      block_forward(blocks_[l], s.blocks[training ? l : 0], s, training ? nullptr : &state->blocks[l], shape);
    if (!pass.need_logits) return nullptr;
    const real* const top = final_norm_.forward(ops_, s.final_norm, s.top, s.x, N);
    head_.forward(ops_, s.logits, top, N);
    return s.logits;
  }

  void block_forward(const Block& w, Saved::Block& a, Saved& s, Tensor* state, const DctShape& shape) {
    const int D = config_.width;
    const int64_t N = shape.rows();

    const real* r = w.norm_1.forward(ops_, a.norm_1, s.r, s.x, N);               // r = norm_1(x)           (N,D)
    w.proj.forward(ops_, a.projected, r, N);                                     // x' = W_proj r           (N,D)
    ops_.sliding_dct(s.c, state ? state->data() : nullptr, a.projected, shape);  // c_ij                    (N,k,d)
    ops_.mix_frequencies(a.o, s.c, w.frequency->value, shape);                   // o_i = Σ_j W_jᵀ c_ij     (N,D)
    w.out.forward(ops_, s.z, a.o, N);                                            // z = W_out o + b_out     (N,D)
    w.norm_mix.in_place(ops_, a.norm_mix, s.z, N);                               // z = norm_mix(z)         (N,D)
    ops_.pointwise(s.z, s.z, Pointwise::GELU_TANH, N * D);                       // z = gelu(z)             (N,D)
    ops_.add(s.x, D, s.x, s.z, N, D);                                            // x += z                  (N,D)

    r = w.norm_2.forward(ops_, a.norm_2, s.r, s.x, N);  // r = norm_2(x)           (N,D)
    w.mlp.forward(ops_, a.mlp, s.x, r, s.hidden, N);    // x += W_down gelu(W_up r)
  }

  // ---- Backward -----------------------------------------------------------------------------------------------------

  void backward(const Input& input, const real* dlogits) override {
    const Config& c = config_;
    Saved& s = saved_;
    const int64_t N = pass_.rows();
    gradients_.resize(ops_, c, pass_);

    const real* top = final_norm_.output(ops_, s.final_norm, s.top, N);
    head_.backward(ops_, gradients_.dx, dlogits, top, N);
    final_norm_.backward(ops_, gradients_.dx, gradients_.dx, s.final_norm, N, Into::WRITE);
    for (size_t l = blocks_.size(); l-- > 0;) block_backward(blocks_[l], s.blocks[l]);
    ops_.embedding_backward(token_embedding_->gradient, nullptr, gradients_.dx, input.tokens, input.batch, input.length,
                            c.width, c.vocab);
  }

  // dx, the gradient of the block's output, becomes that of its input.
  void block_backward(const Block& w, const Saved::Block& a) {
    Saved& s = saved_;
    const int64_t N = pass_.rows();
    const real* r = w.norm_2.output(ops_, a.norm_2, s.r, N);
    w.mlp.backward(ops_, gradients_.dr, Into::WRITE, gradients_.dx, a.mlp, r, s.hidden, gradients_.dhidden, N);
    w.norm_2.backward(ops_, gradients_.dx, gradients_.dr, a.norm_2, N, Into::ADD);
    mix_backward(w, a);
    w.norm_1.backward(ops_, gradients_.dx, gradients_.dr, a.norm_1, N, Into::ADD);
  }

  // dr becomes the gradient of norm_1(x).
  void mix_backward(const Block& w, const Saved::Block& a) {
    Saved& s = saved_;
    const int D = config_.width;
    const int64_t N = pass_.rows();
    const real* n = w.norm_mix.output(ops_, a.norm_mix, s.z, N);
    ops_.pointwise_backward(gradients_.dz, nullptr, gradients_.dx, n, Pointwise::GELU_TANH, N * D);
    w.norm_mix.backward(ops_, gradients_.dz, gradients_.dz, a.norm_mix, N, Into::WRITE);
    real* const d_o = gradients_.dr;
    w.out.backward(ops_, d_o, gradients_.dz, a.o, N);
    ops_.sliding_dct(s.c, nullptr, a.projected, shape_);
    ops_.mix_frequencies_backward(s.c, w.frequency->gradient, d_o, s.c, w.frequency->value, shape_);
    real* const dprojected = gradients_.dz;
    ops_.sliding_dct_backward(dprojected, s.c, shape_);

    const real* r = w.norm_1.output(ops_, a.norm_1, s.r, N);
    w.proj.backward(ops_, gradients_.dr, dprojected, r, N);
  }

  // ---- Decoding -----------------------------------------------------------------------------------------------------

  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    State state{plan(std::max(capacity, 1)), std::vector<Tensor>(blocks_.size())};
    for (Tensor& block : state.blocks) block.resize(ops_, {batch, state.plan.shape(batch, 0).state_size});
    return make_model_decoder<Saved>("dct_mlp", *this, std::move(state), batch, capacity);
  }
};

}  // namespace petroglyph::dct_mlp

std::unique_ptr<petroglyph::Model> petroglyph::make_dct_mlp(const Json& config, Ops& ops) {
  return std::make_unique<dct_mlp::DctMlp>(config, ops);
}
