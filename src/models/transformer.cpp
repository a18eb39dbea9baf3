// The Transformer: in each block every position looks at earlier ones through softmax attention, then an MLP works on
// it alone. Vaswani et al. 2017; its form without positions and why that works: Irie, "Why Are Positional Encodings
// Nonessential for Deep Autoregressive Transformers?" (equation numbers). The order below, with the norm first, is
// GPT-2's.
//
// B samples of T positions, N = B·T; D channels (width), in heads of d = D/heads; H hidden channels; V classes.
//
//   x = token_embedding[token] + position                                   (B,T,D)
//   in each block:
//     r        = norm_1(x)                                                  (B,T,D)
//     q, k, v  = W_qkv r + b_qkv                                            (B,T,3D)   eq. 1
//     score_ts = q_t·k_s / √d                                               for each head, of positions s ≤ t
//     a_ts     = exp(score_ts) / Σ_s' exp(score_ts')                        for each head
//     y_t      = Σ_s a_ts v_s                                               (B,T,D)    eq. 4
//     x       += W_out y + b_out                                            (B,T,D)
//     r        = norm_2(x)                                                  (B,T,D)
//     x       += W_down gelu(W_up r + b_up) + b_down                        (B,T,D)    inside: (B,T,H)
//   logits = W_head final_norm(x) + b_head                                  (B,T,V)
//
// Decoding. Position t needs of an earlier one only k_s and v_s, which later tokens do not change: they go into a KV
// cache, and a new token costs one row of everything above. Its logits are bit-identical to those of the forward pass
// over the whole sequence.
//
// The backward pass. A residual connection passes dx on and its branch adds to it: dx += norm'(branch'(dx)). Linear
// layers have dx = dy W, dW = dyᵀ x, db = Σ dy. Attention: of (T,T) nothing is saved. From the largest score of a row
// and Σ exp, both saved, a_ts is formed again as exactly the number it was. With da_ts = dy_t·v_s the derivative of
// softmax, ∂a_s/∂score_s' = a_s (δ_ss' − a_s'), makes of it the gradient of score_ts,
//   ds_ts = a_ts (da_ts − Σ_s' a_ts' da_ts')      and Σ_s' a_ts' (dy_t·v_s') = dy_t·y_t      ← one number a row
//   dv_s = Σ_t a_ts dy_t     dq_t = Σ_s ds_ts k_s / √d     dk_s = Σ_t ds_ts q_t / √d
// Saved are the norms, q, k, v, y and the MLP's inner layer before gelu: 10 D numbers a position and block with H = 4D.
// The outputs of gelu and of affine norms, 6 D more, are formed again.
//
// Options, and the models that need them. Without them the code reads as the formulas above.
//   position       learned, sinusoidal, none: in the embedding. Two causal layers can learn the order from the mask
//                  alibi (MPT, BLOOM), t5, kerple, xl: in the scores. See positions.h
//   slopes         "published": alibi's as MPT and BLOOM have them for heads that are no power of two
//   causal         false: the sums run over all s (BERT, ViT)
//   norm           "plain", without ε, gain and bias; "affine", with all of them, as published models have it
//   norm_position  "post": x = norm_1(x + attention(x)), x = norm_2(x + mlp(x)), no final norm (the first Transformer,
//                  GPT-1, OPT-350m). Backward, the norm comes first: ds = norm'(dx), dx = ds + branch'(ds), where s is
//                  the sum that it normalized
//   gelu           "erf" or "tanh" (GPT-2); mlp_activation "relu" (OPT)
//   qkv_bias, out_bias, head_bias: whether there are these biases
//   embedding_scale     token_embedding[token] times that; embedding_deviation: of its initial values
//   embedding_norm      x = norm(x) before the first block (BLOOM)
//   tied_head      W_head is the token embedding (GPT-2, OPT, MPT, BLOOM)
//   readout        "last": logits (B,V) of the last position alone
//   patches        images (ViT): x = [W_patch patch_1, …, W_patch patch_N, cls_token] + position          (B,N+1,D)

#include "base/error.h"
#include "base/text.h"
#include "models/attention_map.h"
#include "models/config.h"
#include "models/parts.h"
#include "models/positions.h"

namespace petroglyph::transformer {

// ---- Configuration --------------------------------------------------------------------------------------------------

struct Config {
  ConfigReader reader;
  int width = reader.size("width", 1 << 16);    // D
  int hidden = reader.size("hidden", 1 << 20);  // H
  int layers = reader.size("layers", 1 << 10);
  int heads = reader.heads("width", width);
  bool causal = reader.boolean("causal");
  // Tokens or patches, and their positions.
  EmbeddingConfig embedding{reader, {"learned", "none", "sinusoidal", "alibi", "t5", "kerple", "xl"}};
  ReadoutConfig readout = read_readout(reader, embedding);  // classes, and of which positions
  bool affine = reader.choice("norm", {"plain", "affine"}) == "affine";
  real norm_epsilon = affine ? static_cast<real>(reader.number("norm_epsilon", 0, 1, 1e-5)) : NORM_EPSILON;
  bool qkv_bias = reader.boolean("qkv_bias");
  bool out_bias = reader.boolean("out_bias");
  Pointwise activation =  // of the MLP
      reader.choice("gelu", {"erf", "tanh"}) == "tanh" ? Pointwise::GELU_TANH : Pointwise::GELU;
  bool published_slopes = false;
  bool post_norm = false;  // norm_position

  explicit Config(const Json& json) : reader("transformer", json) {
    const std::string& position = embedding.position;
    if (!causal && (position == "alibi" || position == "t5" || position == "kerple"))
      reader.fail("position \"" + position + "\" has distances to the past only, and causal is false");
    if (position == "alibi") published_slopes = reader.choice("slopes", {"even", "published"}, "even") == "published";
    if (!embedding.images()) {
      post_norm = reader.choice("norm_position", {"pre", "post"}, "pre") == "post";
      if (reader.choice("mlp_activation", {"gelu", "relu"}, "gelu") == "relu") activation = Pointwise::RELU;
    }
    reader.finish();
  }
};

// ---- Parameters, activations, KV cache ------------------------------------------------------------------------------

struct Block {
  Norm norm_1;
  Linear qkv, out;    // (3D,D), (D,D)
  RelativeScores xl;  // position "xl" only
  Norm norm_2;
  Mlp mlp;
};

// A pass's activations. In training each block has its own, for the backward pass; in decoding one serves all blocks in
// turn. Norms and MLPs size what is theirs.
struct Saved {
  struct Block {
    Norm::Saved norm_1;   // (N,D), (N)
    Tensor qkv;           // (N,3D): q, k, v of a position side by side, each grouped by head
    Tensor top, inv_sum;  // (B,heads,count) each: a row's largest score, 1/Σ exp
    Tensor projected;     // (distances,D): P of position "xl"
    Tensor y;             // (N,D)
    Norm::Saved norm_2;   // (N,D), (N)
    Mlp::Saved mlp;       // (N,H)
  };
  std::vector<Block> blocks;
  Tensor x;                    // (N,D): the residual stream
  Tensor r, hidden;            // (N,D), (N,H): of the block at work, a norm's output and gelu's
  Embedding::Saved embedding;  // (N,D), (N): embedding_norm only
  Tensor embedded;             // (N,D): x before the first block, norm_position "post" only
  Readout::Saved readout;      // (R,V) logits of R rows, N or B, and what leads to them

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    const int64_t N = pass.rows();
    blocks.resize(pass.is_training() ? static_cast<size_t>(c.layers) : 1);
    for (Block& a : blocks) {
      a.qkv.resize(ops, {N, 3 * c.width});
      a.top.resize(ops, {pass.batch, c.heads, pass.count});
      a.inv_sum.resize(ops, {pass.batch, c.heads, pass.count});
      a.y.resize(ops, {N, c.width});
    }
    x.resize(ops, {N, c.width});
    if (pass.is_training() && c.post_norm) embedded.resize(ops, {N, c.width});
  }
};

// What decoding stores of one block's earlier positions.
struct KvCache {
  Tensor keys_values;  // (B,2,heads,capacity,d): k and v, one head after the other, as a new token reads them
  Tensor projected;    // (capacity,D): P of position "xl"
};

// Gradients of the block at work, and what else its backward pass needs.
struct Gradients {
  Tensor dx, dr, dy;     // (N,D) each
  Tensor dqkv, dhidden;  // (N,3D), (N,H)
  real* dbias;           // (T,heads), of all blocks, or null
  Tensor partial;        // attention's scratch: (B,distances,D) of position "xl", (B,T,heads) of a learned bias

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    for (Tensor* t : {&dx, &dr, &dy}) t->resize(ops, {pass.rows(), c.width});
    dqkv.resize(ops, {pass.rows(), 3 * c.width});
    if (c.embedding.position == "xl")
      partial.resize(ops, {pass.batch, c.causal ? pass.count : 2 * pass.count - 1, c.width});
    if (c.embedding.position == "t5" || c.embedding.position == "kerple")
      partial.resize(ops, {pass.batch, pass.count, c.heads});
  }
};

class Transformer final : public Model {
  Config config_;
  Ops& ops_;
  DistanceBias bias_;  // position "alibi", "t5" or "kerple"
  Embedding embedding_;
  std::vector<Block> blocks_;
  Readout readout_;
  RelativeScores::Scratch xl_scratch_;
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

  bool xl() const { return config_.embedding.position == "xl"; }

  Transformer(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    const int D = c.width;
    const Init weight = Init::normal(WEIGHT_DEVIATION), out = Init::normal(output_deviation(2 * c.layers));
    const auto norm = [&](const std::string& name) { return Norm(parameters, name, D, c.affine, c.norm_epsilon); };
    bias_ = DistanceBias(parameters, D, c.heads, c.embedding.position, c.published_slopes);
    embedding_ = Embedding(parameters, "transformer", c.embedding, D, c.affine, c.norm_epsilon);
    for (int l = 0; l < c.layers; ++l) {
      const std::string prefix = "blocks." + std::to_string(l) + ".", attention = prefix + "attention.";
      Block& b = blocks_.emplace_back();
      b.norm_1 = norm(prefix + "norm_1");
      b.qkv = Linear(parameters, attention + "qkv", D, 3 * D, weight, c.qkv_bias);
      b.out = Linear(parameters, attention + "out", D, D, out, c.out_bias);
      if (xl()) b.xl = RelativeScores(parameters, attention, D, c.heads, c.causal);
      b.norm_2 = norm(prefix + "norm_2");
      b.mlp = Mlp(parameters, prefix + "mlp", D, c.hidden, c.activation, weight, out);
    }
    readout_ = Readout(parameters, c.readout, D, !c.post_norm, c.affine, c.norm_epsilon, embedding_.tokens());
    parameters.allocate(ops);
  }

  // ---- The model ----------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    embedding_.check_length(input.length);
    const int T = config_.embedding.images() ? config_.embedding.context : input.length;
    pass_ = {Mode::TRAINING, input.batch, 0, T, T, true};
    return run(input, saved_, nullptr, pass_);
  }

  // Both modes; caches: of each block, in decoding. Returns the logits, or null where they are not needed.
  const real* run(const Input& input, Saved& s, std::vector<KvCache>* caches, const Pass& pass) {
    s.resize(ops_, config_, pass);
    embedding_.forward(ops_, s.embedding, s.x, input, pass.first, pass.count, pass.capacity);
    bias_.forward(ops_, pass.capacity);
    for (size_t l = 0; l < blocks_.size(); ++l) {
      KvCache* const cache = pass.is_training() ? nullptr : &(*caches)[l];
      config_.post_norm ? post_norm_block_forward(l, s, cache, pass) : block_forward(l, s, cache, pass);
      if (pass.is_training() && after_layer) after_layer(l, s.x, pass.count, config_.width);
    }
    return pass.need_logits ? readout_.forward(ops_, s.readout, s.x, pass.batch, pass.count, pass.mode) : nullptr;
  }

  void backward(const Input& input, const real* dlogits) override {
    const Pass& pass = pass_;
    gradients_.resize(ops_, config_, pass);
    gradients_.dbias = bias_.zero_gradient(ops_, pass.count);
    readout_.backward(ops_, gradients_.dx, saved_.readout, dlogits, saved_.x, pass_.batch, pass_.count);
    for (size_t l = blocks_.size(); l-- > 0;) config_.post_norm ? post_norm_block_backward(l) : block_backward(l);
    bias_.backward(ops_, pass.count);
    embedding_.backward(ops_, saved_.embedding, gradients_.dx, input, pass_.count);
  }

  // ---- The block ----------------------------------------------------------------------------------------------------

  void block_forward(size_t l, Saved& s, KvCache* cache, const Pass& pass) {
    const Block& w = blocks_[l];
    Saved::Block& a = s.blocks[pass.is_training() ? l : 0];
    const int64_t N = pass.rows();
    const real* r = w.norm_1.forward(ops_, a.norm_1, s.r, s.x, N);  // r = norm_1(x)                               (N,D)
    attention_forward(l, r, s, cache, pass);                        // x += W_out attention(W_qkv r + b_qkv) + b_out
    r = w.norm_2.forward(ops_, a.norm_2, s.r, s.x, N);              // r = norm_2(x)                               (N,D)
    w.mlp.forward(ops_, a.mlp, s.x, r, s.hidden, N);                // x += W_down gelu(W_up r + b_up) + b_down    (N,D)
  }

  // dx is the gradient of the block's output before, and of its input after.
  void block_backward(size_t l) {
    const Block& w = blocks_[l];
    const Saved::Block& a = saved_.blocks[l];
    Gradients& g = gradients_;
    const int64_t N = pass_.rows();
    const real* r = w.norm_2.output(ops_, a.norm_2, saved_.r, N);                          // again: r = norm_2(x)
    w.mlp.backward(ops_, g.dr, Into::WRITE, g.dx, a.mlp, r, saved_.hidden, g.dhidden, N);  // dr from dx, by the MLP
    w.norm_2.backward(ops_, g.dx, g.dr, a.norm_2, N, Into::ADD);                           // dx += norm_2'(dr)
    r = w.norm_1.output(ops_, a.norm_1, saved_.r, N);                                      // again: r = norm_1(x)
    attention_backward(l, g.dr, Into::WRITE, r);                                           // dr from dx, by attention
    w.norm_1.backward(ops_, g.dx, g.dr, a.norm_1, N, Into::ADD);                           // dx += norm_1'(dr)
  }

  // ---- Attention ----------------------------------------------------------------------------------------------------

  // x += W_out attention(W_qkv r + b_qkv) + b_out
  void attention_forward(size_t l, const real* r, Saved& s, KvCache* cache, const Pass& pass) {
    const Block& w = blocks_[l];
    Saved::Block& a = s.blocks[pass.is_training() ? l : 0];
    const int D = config_.width;
    const int64_t N = pass.rows();
    w.qkv.forward(ops_, a.qkv, r, N);  // q, k, v         (N,3D)
    if (xl() && !cache) w.xl.project(ops_, a.projected, xl_scratch_, pass.capacity);
    AttentionInput in = attention_input(a.qkv, l, cache ? cache->projected : a.projected, pass);
    if (cache) {
      append(*cache, a.qkv, pass);
      in.k = cache->keys_values.data();
      in.v = in.k + static_cast<int64_t>(pass.capacity) * D;
    }
    ops_.attention(a.y, a.top, a.inv_sum, in, shape(pass));  // y = Σ_s a_ts v_s (N,D)
    w.out.forward(ops_, s.x, a.y, N, Into::ADD);             // x += W_out y + b_out
  }

  // dr and the parameters' gradients from dx
  void attention_backward(size_t l, real* dr, Into into, const real* r) {
    const Block& w = blocks_[l];
    const Saved::Block& a = saved_.blocks[l];
    const Pass& pass = pass_;
    Gradients& g = gradients_;
    const int D = config_.width;
    const int64_t N = pass.rows();
    w.out.backward(ops_, g.dy, g.dx, a.y, N);  // x += W_out y + b_out
    AttentionGradient out{g.dqkv, g.dqkv + D, g.dqkv + 2 * D, g.dbias, nullptr, nullptr, g.partial.data()};
    const AttentionInput in = attention_input(a.qkv, l, a.projected, pass);
    if (xl()) w.xl.attach(ops_, out, xl_scratch_, N, pass.count);
    ops_.attention_backward(out, g.dy, a.y, a.top, a.inv_sum, in, shape(pass));
    if (xl()) w.xl.backward(ops_, g.dqkv, xl_scratch_, N, pass.count);
    w.qkv.backward(ops_, dr, g.dqkv, r, N, into);  // q, k, v = W_qkv r + b_qkv
  }

  AttentionShape shape(const Pass& pass) const {
    const int D = config_.width, d = D / config_.heads;
    const bool cached = !pass.is_training();
    return {pass.batch, pass.count,     pass.first + pass.count, pass.capacity,      config_.heads,
            d,          config_.causal, xl() ? D : 3 * D,        cached ? d : 3 * D, cached};
  }

  // q, k and v as they lie in qkv, and what positions add to the scores.
  AttentionInput attention_input(const real* qkv, size_t l, const Tensor& projected, const Pass& pass) {
    const int D = config_.width;
    AttentionInput in{qkv, qkv + D, qkv + 2 * D, bias_.table(), nullptr, nullptr};
    if (xl()) blocks_[l].xl.forward(ops_, in, projected, xl_scratch_, pass.rows());
    return in;
  }

  // ---- Decoding -----------------------------------------------------------------------------------------------------

  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    if (config_.embedding.images()) throw Error("transformer: images are not read token by token");
    if (window() > 0) return make_window_decoder(*this, ops_, "transformer", window(), batch, capacity);
    if (!config_.causal) throw Error("transformer: a bidirectional model cannot read one token at a time");
    embedding_.check_length(capacity);
    std::vector<KvCache> caches(blocks_.size());
    for (size_t l = 0; l < caches.size(); ++l) {
      caches[l].keys_values.resize(ops_, {batch, 2 * config_.heads, capacity, config_.width / config_.heads});
      if (xl()) blocks_[l].xl.project(ops_, caches[l].projected, xl_scratch_, capacity);
    }
    return make_model_decoder<Saved>("transformer", *this, std::move(caches), batch, capacity);
  }

  // Copies k and v of the new positions into the cache, position by position or head by head, whichever takes fewer
  // copies.
  void append(KvCache& cache, const real* qkv, const Pass& pass) {
    const int D = config_.width, heads = 2 * config_.heads, d = D / config_.heads;  // k's heads, then v's
    const size_t row = d * sizeof(real), position = 3 * D * sizeof(real), head = row * pass.capacity;
    for (int b = 0; b < pass.batch; ++b) {
      real* to = cache.keys_values.data() + (static_cast<int64_t>(b) * heads * pass.capacity + pass.first) * d;
      const real* from = qkv + static_cast<int64_t>(b) * pass.count * 3 * D + D;
      if (pass.count < heads)
        for (int64_t t = 0; t < pass.count; ++t) ops_.copy(to + t * d, head, from + t * 3 * D, row, row, heads);
      else
        for (int64_t h = 0; h < heads; ++h)
          ops_.copy(to + h * pass.capacity * d, row, from + h * d, position, row, pass.count);
    }
  }

  // ---- Option: norm_position "post" ---------------------------------------------------------------------------------

  // x = norm_1(x + attention(x)), x = norm_2(x + mlp(x))
  void post_norm_block_forward(size_t l, Saved& s, KvCache* cache, const Pass& pass) {
    const Block& w = blocks_[l];
    Saved::Block& a = s.blocks[pass.is_training() ? l : 0];
    const int64_t N = pass.rows();
    if (pass.is_training() && l == 0) ops_.copy(s.embedded, 0, s.x, 0, s.x.bytes(), 1);
    attention_forward(l, s.x, s, cache, pass);          // x += W_out attention(W_qkv x + b_qkv) + b_out      (N,D)
    w.norm_1.in_place(ops_, a.norm_1, s.x, N);          // x = norm_1(x)                                      (N,D)
    w.mlp.forward(ops_, a.mlp, s.x, s.x, s.hidden, N);  // x += W_down gelu(W_up x + b_up) + b_down           (N,D)
    w.norm_2.in_place(ops_, a.norm_2, s.x, N);          // x = norm_2(x)                                      (N,D)
  }

  void post_norm_block_backward(size_t l) {
    const Block& w = blocks_[l];
    Saved& s = saved_;
    const Saved::Block& a = s.blocks[l];
    const int64_t N = pass_.rows();
    w.norm_2.backward(ops_, gradients_.dx, gradients_.dx, a.norm_2, N, Into::WRITE);
    const real* r = w.norm_1.output(ops_, a.norm_1, s.r, N);
    w.mlp.backward(ops_, gradients_.dx, Into::ADD, gradients_.dx, a.mlp, r, s.hidden, gradients_.dhidden, N);
    w.norm_1.backward(ops_, gradients_.dx, gradients_.dx, a.norm_1, N, Into::WRITE);
    r = l == 0 ? s.embedded.data() : blocks_[l - 1].norm_2.output(ops_, s.blocks[l - 1].norm_2, s.r, N);
    attention_backward(l, gradients_.dx, Into::ADD, r);
  }

  // ---- What ./inspect draws -----------------------------------------------------------------------------------------

  std::vector<real> attention_map(size_t l, int sample) override {
    Saved::Block& a = saved_.blocks.at(l);
    const Pass& pass = pass_;
    const auto attend = [&](real* y, real* qkv) {
      const AttentionInput in = attention_input(qkv, l, a.projected, pass);
      ops_.attention(y, a.top, a.inv_sum, in, shape(pass));
    };
    return attention_weights(ops_, a.qkv, pass.batch, pass.count, config_.width, config_.heads, sample, attend);
  }
};

}  // namespace petroglyph::transformer

std::unique_ptr<petroglyph::Model> petroglyph::make_transformer(const Json& config, Ops& ops) {
  return std::make_unique<transformer::Transformer>(config, ops);
}
