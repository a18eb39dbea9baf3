// RegularGPT: a Transformer in which each layer combines C chunks of a string into one. Chi et al. 2023, "Transformer
// Working Memory Enables Regular Language Reasoning and Natural Language Length Extrapolation".
//
// For a finite automaton a string is a function from states to states, and the function of two strings in a row is the
// composition of their functions. So C chunks are combined into one, C of those into the next, and after ⌈log_C T⌉
// layers one vector describes all T symbols. Every layer computes the same composition, hence all layers share their
// weights, and a longer string passes through more layers of the same kind: so a model trained on 40 symbols can read
// 500.
//
// In layer l = 0 … L−1, L = ⌈log_C T⌉ and at least one, position m attends to itself and to the last position of each
// of the C − 1 chunks before its own:
//   score_mi = q_m·k_n / √d + relative_i,   n = m − i·C^l,   i = 0 … C−1,   d: a head's channels           (eq. 1)
//   a_mi = exp(score_mi) / Σ_i' exp(score_mi'),   y_m = Σ_i a_mi v_n
// After the layer, position m describes the C^(l+1) symbols up to m. `relative` (heads,C) is the only information about
// positions. Time and memory of a layer are O(T·C); nothing of size T² is ever stored.
//
// Two forms of it. B samples of T positions, N = B·T; D channels (width), in heads of d; H hidden channels; V classes.
//
// "dilated", the paper's: a GPT-2 with this attention at every position, without the terms n < 0. K blocks in a row
// ("thickness") are one layer of the above, K·L in total:
//     x = token_embedding[token]                                (B,T,D)
//     in each of K·L layers, the k-th with the weights of block k mod K:
//       r       = norm_1(x)                                     (B,T,D)
//       q, k, v = W_qkv r + b_qkv                               (B,T,3D)
//       y_m     = Σ_i a_mi v_n                                  (B,T,D)    eq. 1, above
//       x      += W_out y + b_out                               (B,T,D)
//       r       = norm_2(x)                                     (B,T,D)
//       x      += W_down gelu(W_up r + b_up) + b_down           (B,T,D)    inside: (B,T,H)
//     logits = W_head final_norm(x) + b_head                    (B,T,V), or of the last position (B,V)
//   With tied_head it reads out by the embedding's weights, as GPT-2 does.
//
// "chunked", the authors' code: only the positions that the last one depends on: the last of every C, then the last of
// every C of these …: T vectors become ⌈T/C⌉, then ⌈T/C²⌉ …, then one, which is read out. The time is O(T) in total.
// Missing vectors, before the first, are a learned one, `padding`, the same in every layer. The block is the original
// Transformer's. With R = B·⌈T/C⌉ rows:
//     x = √D · token_embedding[token]                           (B,T,D)
//     in each of L layers, all of them with the same weights, from T positions to ⌈T/C⌉:
//       k, v = W_kv x                                           (B,T,2D)
//       x    = the last of every C rows of x                    (R,D)
//       q    = W_q x                                            (R,D)
//       y_m  = Σ_i a_mi v_n                                     (R,D)
//       x    = norm_1(x + W_out y)                              (R,D)
//       x    = norm_2(x + W_down relu(W_up x + b_up) + b_down)  (R,D)      inside: (R,H)
//     logits = W_head x + b_head                                (B,V)
//
// The backward pass, beyond that of a Transformer:
//   da_mi = dy_m·v_n,   ds_mi = a_mi (da_mi − Σ_i' a_mi' da_mi')
//   dq_m = Σ_i ds_mi k_n / √d,   drelative_i = Σ_m ds_mi
//   dk_n = Σ_i ds_(n+i·C^l),i q_(n+i·C^l) / √d,   dv_n = Σ_i a_(n+i·C^l),i dy_(n+i·C^l)   ← one writer each
// In the chunked form keys and values are of all vectors and queries of the last ones alone: dx = W_kvᵀ [dk, dv]
// everywhere, and at the last of C also W_qᵀ dq and what the residual connection brings. The padding's part is
// dpadding = W_kvᵀ Σ [dk, dv]_before. Shared weights have the sum of all layers' gradients: the last layer's are added
// first, then those before it one by one.

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/parts.h"

namespace petroglyph::regular_gpt {

// ---- What both forms need -------------------------------------------------------------------------------------------

struct Config {
  ConfigReader reader;
  bool chunked = reader.choice("form", {"dilated", "chunked"}, "dilated") == "chunked";
  int vocab = reader.size("vocab");
  int classes = reader.size("classes");         // V
  int width = reader.size("width", 1 << 16);    // D
  int hidden = reader.size("hidden", 1 << 20);  // H
  int heads = reader.heads("width", width);
  int chunk = static_cast<int>(reader.integer("chunk", 2, 1 << 16));  // C
  int thickness = reader.size("thickness", 1 << 10);                  // K
  bool last = reader.choice("readout", {"last", "all"}) == "last";
  std::string norm = reader.choice("norm", {"affine"});
  // Keys of the dilated form only.
  bool head_bias = chunked || reader.boolean("head_bias", true);
  bool tied_head = !chunked && reader.boolean("tied_head", false);
  real embedding_deviation = chunked ? 1 : static_cast<real>(reader.number("embedding_deviation", 0, 1e6, 1));

  explicit Config(const Json& json) : reader("regular_gpt", json) {
    reader.finish();
    if (int64_t{1} * heads * chunk > 1 << 24)
      reader.fail(text("heads %d times chunk %d is more than 16,777,216 weights a position", heads, chunk));
    if (chunked && thickness != 1) reader.fail("form \"chunked\" has thickness 1");
    if (chunked && !last) reader.fail("form \"chunked\" has logits of the last position only, readout \"last\"");
    if (tied_head && classes != vocab)
      reader.fail(text("tied_head: classes is %d, vocab %d, and one table serves both", classes, vocab));
  }

  // L, the smallest L ≥ 1 with C^L ≥ T, in whole numbers: a logarithm finds 4 for C = 5 and T = 125.
  size_t depth(int length) const {
    size_t layers = 1;
    for (int64_t reach = chunk; reach < length; reach *= chunk) ++layers;
    return layers;
  }
  // Layers of T positions: K·L.
  size_t layers(int length) const { return depth(length) * static_cast<size_t>(thickness); }
  // C^l, where a layer l of some sequence exists
  int power(size_t l) const {
    int result = 1;
    while (l-- > 0) result *= chunk;
    return result;
  }
};

// k and v of all positions so far, of one layer.
using KvCache = Tensor;  // (B,capacity,2D)

std::vector<KvCache> make_caches(Ops& ops, const Config& c, int batch, int capacity) {
  std::vector<KvCache> caches(c.layers(capacity));
  for (KvCache& cache : caches) cache.resize(ops, {batch, capacity, 2 * c.width});
  return caches;
}

// kv, rows `step` numbers apart of each new position, go into the cache.
void append(Ops& ops, KvCache& cache, const real* kv, int step, const Pass& pass, int D) {
  const size_t row = 2 * static_cast<size_t>(D) * sizeof(real);
  for (int b = 0; b < pass.batch; ++b)
    ops.copy(cache.data() + (static_cast<int64_t>(b) * pass.capacity + pass.first) * 2 * D, row,
             kv + static_cast<int64_t>(b) * pass.count * step, static_cast<size_t>(step) * sizeof(real), row,
             static_cast<size_t>(pass.count));
}

// Decoding reads out each position after as many layers as a sequence that ends there has, here `layers`: the rows of
// those positions of x (B,count,D) go to the same rows of `finished`.
void keep_finished(Ops& ops, Tensor& finished, const Tensor& x, size_t layers, const Config& c, const Pass& pass) {
  int begin = 0;
  while (begin < pass.count && c.layers(pass.first + begin + 1) < layers) ++begin;
  int end = begin;
  while (end < pass.count && c.layers(pass.first + end + 1) == layers) ++end;
  if (begin == end) return;
  const size_t row = static_cast<size_t>(c.width) * sizeof(real);
  const int64_t at = static_cast<int64_t>(begin) * c.width;
  ops.copy(finished.data() + at, row * pass.count, x.data() + at, row * pass.count, row * (end - begin), pass.batch);
}

// ---- Dilated --------------------------------------------------------------------------------------------------------

class DilatedGpt final : public Model {
  struct Block {
    Norm norm_1;
    Linear qkv;           // (3D,D), with a bias
    Parameter* relative;  // (heads,C)
    Linear out;           // (D,D), with a bias
    Norm norm_2;
    Mlp mlp;
  };

  // A pass's activations. In training each layer has its own, for the backward pass; in decoding one serves all layers
  // in turn.
  struct Saved {
    struct Layer {
      Norm::Saved norm_1;  // (N,D), (N)
      Tensor qkv;          // (N,3D): q, k, v of a position side by side, each grouped by head
      Tensor weights;      // (N,heads,C): a
      Tensor y;            // (N,D)
      Norm::Saved norm_2;  // (N,D), (N)
      Mlp::Saved mlp;      // (N,H)
    };
    std::vector<Layer> layers;
    Tensor x;                // (N,D): the residual stream
    Tensor r, hidden;        // (N,D), (N,H): of the layer at work, a norm's output and gelu's
    Tensor finished;         // (N,D): x after each position's own last layer, decoding with readout "last" only
    Readout::Saved readout;  // (R,V) logits of R rows, N or B, and what leads to them

    void resize(Ops& ops, const Config& c, const Pass& pass) {
      const int64_t N = pass.rows();
      const bool training = pass.is_training();
      const size_t needed = training ? c.layers(pass.count) : 1;
      if (layers.size() < needed) layers.resize(needed);  // never fewer: the memory stays
      for (size_t l = 0; l < needed; ++l) {
        layers[l].qkv.resize(ops, {N, 3 * c.width});
        layers[l].weights.resize(ops, {N, c.heads, c.chunk});
        layers[l].y.resize(ops, {N, c.width});
      }
      x.resize(ops, {N, c.width});
      if (!training && c.last) finished.resize(ops, {N, c.width});
    }
  };

  Config config_;
  Ops& ops_;
  Parameter* token_embedding_;  // (vocab,D)
  std::vector<Block> blocks_;   // K
  Readout readout_;
  Saved saved_;  // of the last forward(), with
  Pass pass_{};
  // Gradients of the layer at work.
  Tensor dx_, dr_, dy_;    // (N,D) each
  Tensor dqkv_, dhidden_;  // (N,3D), (N,H)
  Tensor dscores_;         // (N,heads,C)

 public:
  int classes() const override { return config_.classes; }
  int vocab() const override { return config_.vocab; }
  bool deepens() const override { return true; }
  int64_t logit_rows(const Input& input) const override { return config_.last ? input.batch : input.rows(); }

  const real* forward(const Input& input) override {
    pass_ = {Mode::TRAINING, input.batch, 0, input.length, input.length, true};
    return run(input, saved_, nullptr, pass_);
  }
  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    return make_model_decoder<Saved>("regular_gpt", *this, make_caches(ops_, config_, batch, capacity), batch,
                                     capacity);
  }

  const Block& block(size_t l) const { return blocks_[l % blocks_.size()]; }

  DilatedGpt(const Config& config, Ops& ops) : config_(config), ops_(ops) {
    const Config& c = config_;
    const int D = c.width;
    const Init weight = Init::normal(WEIGHT_DEVIATION), out = Init::normal(output_deviation(2 * c.thickness));
    token_embedding_ = &parameters.add("token_embedding.weight", {c.vocab, D}, Init::normal(c.embedding_deviation));
    for (int k = 0; k < c.thickness; ++k) {
      const std::string prefix = "blocks." + std::to_string(k) + ".", attention = prefix + "attention.";
      Block& b = blocks_.emplace_back();
      b.norm_1 = Norm(parameters, prefix + "norm_1", D, true);
      b.qkv = Linear(parameters, attention + "qkv", D, 3 * D, weight, true);
      b.out = Linear(parameters, attention + "out", D, D, out, true);
      b.relative = &parameters.add(attention + "relative", {c.heads, c.chunk}, weight);
      b.norm_2 = Norm(parameters, prefix + "norm_2", D, true);
      b.mlp = Mlp(parameters, prefix + "mlp", D, c.hidden, Pointwise::GELU_TANH, weight, out);
    }
    const ReadoutConfig readout = {c.classes, c.last, c.head_bias, c.tied_head};
    readout_ = Readout(parameters, readout, D, true, true, NORM_EPSILON, token_embedding_);
    parameters.allocate(ops);
  }

  // Both modes; caches: of each layer, in decoding. Returns the logits, or null where they are not needed.
  const real* run(const Input& input, Saved& s, std::vector<KvCache>* caches, const Pass& pass) {
    const bool training = pass.is_training(), each_finishes = !training && config_.last;
    const int D = config_.width;
    s.resize(ops_, config_, pass);
    // x = token_embedding[token]                                                                            (N,D)
    ops_.embedding(s.x, token_embedding_->value, nullptr, input.tokens_for("regular_gpt"), 0, pass.batch, pass.count,
                   D);
    for (size_t l = 0; l < config_.layers(pass.capacity); ++l) {
      layer_forward(l, s, training ? nullptr : &(*caches)[l], pass);
      if (each_finishes) keep_finished(ops_, s.finished, s.x, l + 1, config_, pass);
      if (training && after_layer) after_layer(l, s.x, pass.count, config_.width);
    }
    if (!pass.need_logits) return nullptr;
    const Tensor& x = each_finishes ? s.finished : s.x;
    return readout_.forward(ops_, s.readout, x, pass.batch, pass.count, pass.mode);
  }

  void backward(const Input& input, const real* dlogits) override {
    const Pass& pass = pass_;
    for (Tensor* t : {&dx_, &dr_, &dy_}) t->resize(ops_, {pass.rows(), config_.width});
    dqkv_.resize(ops_, {pass.rows(), 3 * config_.width});
    dscores_.resize(ops_, {pass.rows(), config_.heads, config_.chunk});
    readout_.backward(ops_, dx_, saved_.readout, dlogits, saved_.x, pass.batch, pass.count);
    for (size_t l = config_.layers(pass.count); l-- > 0;) layer_backward(l);
    ops_.embedding_backward(token_embedding_->gradient, nullptr, dx_, input.tokens, pass.batch, pass.count,
                            config_.width, config_.vocab);
  }

  void layer_forward(size_t l, Saved& s, KvCache* cache, const Pass& pass) {
    const Block& w = block(l);
    const bool decoding = !pass.is_training();
    Saved::Layer& a = s.layers[decoding ? 0 : l];
    const int D = config_.width;
    const int64_t N = pass.rows();
    const real* r = w.norm_1.forward(ops_, a.norm_1, s.r, s.x, N);  // r = norm_1(x)   (N,D)
    w.qkv.forward(ops_, a.qkv, r, N);                               // q, k, v         (N,3D)
    if (decoding) append(ops_, *cache, a.qkv + D, 3 * D, pass, D);
    const real* const k = decoding ? cache->data() : a.qkv + D;
    const DilatedInput in{a.qkv, k, k + D, nullptr, nullptr, w.relative->value};
    ops_.dilated_attention(a.y, a.weights, in, shape(l, pass));  // y = Σ_i a_mi v_n (N,D)
    w.out.forward(ops_, s.x, a.y, N, Into::ADD);                 // x += W_out y + b_out
    r = w.norm_2.forward(ops_, a.norm_2, s.r, s.x, N);           // r = norm_2(x)   (N,D)
    w.mlp.forward(ops_, a.mlp, s.x, r, s.hidden, N);             // x += W_down gelu(W_up r + …
  }

  // dx is the gradient of the layer's output before, and of its input after.
  void layer_backward(size_t l) {
    const Block& w = block(l);
    Saved& s = saved_;
    const Saved::Layer& a = s.layers[l];
    const int D = config_.width;
    const int64_t N = pass_.rows();
    const real* r = w.norm_2.output(ops_, a.norm_2, s.r, N);
    w.mlp.backward(ops_, dr_, Into::WRITE, dx_, a.mlp, r, s.hidden, dhidden_, N);
    w.norm_2.backward(ops_, dx_, dr_, a.norm_2, N, Into::ADD);
    w.out.backward(ops_, dy_, dx_, a.y, N);
    const DilatedGradient out{dqkv_, dqkv_ + D, dqkv_ + 2 * D, nullptr, nullptr, dscores_.data()};
    const DilatedInput in{a.qkv, a.qkv + D, a.qkv + 2 * D, nullptr, nullptr, w.relative->value};
    ops_.dilated_attention_backward(out, dy_, a.weights, in, shape(l, pass_));
    ops_.add_row_backward(w.relative->gradient, dscores_, N, config_.heads * config_.chunk);
    r = w.norm_1.output(ops_, a.norm_1, s.r, N);
    w.qkv.backward(ops_, dr_, dqkv_, r, N);
    w.norm_1.backward(ops_, dx_, dr_, a.norm_1, N, Into::ADD);
  }

  DilatedShape shape(size_t l, const Pass& pass) const {
    const Config& c = config_;
    const int D = c.width, d = D / c.heads, dilation = c.power(l / blocks_.size()), end = pass.first + pass.count;
    const int key_step = !pass.is_training() ? 2 * D : 3 * D;
    return {pass.batch, pass.count, end, pass.capacity, c.heads, d, c.chunk, dilation, pass.first, 1, 3 * D, key_step};
  }
};

// ---- Chunked --------------------------------------------------------------------------------------------------------

class ChunkedGpt final : public Model {
  // A pass's activations. In training layer l has N rows of x and makes R = B·⌈length/C⌉ of them; in decoding N = R =
  // B·count.
  struct Saved {
    struct Layer {
      int length, made;    // positions of x, and how many of them are the last of C
      Tensor x;            // (N,D): the layer's input; of the last one, what is read out
      Tensor kv;           // (N,2D)
      Tensor q, y;         // (R,D) each
      Tensor weights;      // (R,heads,C): a
      Norm::Saved norm_1;  // (R,D), (R)
      Mlp::Saved mlp;      // (R,H)
      Norm::Saved norm_2;  // (R,D), (R)
    };
    std::vector<Layer> layers;  // one more than the layers
    Tensor kv_before;           // (2D): k and v of the padding
    Tensor hidden;              // (R,H): of the layer at work, relu's output
    Tensor finished;            // (N,D): the vectors to be read out, decoding only
    Tensor logits;              // (B,V), or (N,V) in decoding

    void resize(Ops& ops, const Config& c, const Pass& pass) {
      const bool training = pass.is_training();
      const size_t needed = c.layers(pass.capacity) + 1;
      if (layers.size() < needed) layers.resize(needed);  // never fewer: the memory stays
      int length = pass.count;
      for (size_t l = 0; l < needed; ++l) {
        Layer& a = layers[l];
        a.length = length;
        a.made = training ? (length + c.chunk - 1) / c.chunk : length;
        const int64_t N = static_cast<int64_t>(pass.batch) * a.length, R = static_cast<int64_t>(pass.batch) * a.made;
        a.x.resize(ops, {N, c.width});
        length = a.made;
        if (l + 1 == needed) break;
        a.kv.resize(ops, {N, 2 * c.width});
        for (Tensor* t : {&a.q, &a.y}) t->resize(ops, {R, c.width});
        a.weights.resize(ops, {R, c.heads, c.chunk});
      }
      kv_before.resize(ops, {2 * c.width});
      if (!training) finished.resize(ops, {pass.rows(), c.width});
      if (pass.need_logits) logits.resize(ops, {training ? pass.batch : pass.rows(), c.classes});
    }
  };

  using Layer = Saved::Layer;

  Config config_;
  Ops& ops_;
  Parameter* token_embedding_;  // (vocab,D)
  Parameter* padding_;          // (D)
  Linear q_, kv_;               // (D,D), (2D,D): W_q, W_kv, one parameter (3D,D)
  Parameter* relative_;         // (heads,C)
  Linear out_;                  // (D,D)
  Norm norm_1_, norm_2_;
  Mlp mlp_;
  Linear head_;  // (V,D), with a bias
  Saved saved_;  // of the last forward(), with
  Pass pass_{};
  // Gradients of the layer at work: dx of what it made, dlower of what it read.
  Tensor dx_, dlower_;            // (R,D), (N,D)
  Tensor dq_, dkv_, dkv_before_;  // (R,D), (N,2D), (2D)
  Tensor dy_, dscores_;           // (R,D), (R,heads,C)
  Tensor r_, dhidden_;            // (R,D), (R,H)

 public:
  int classes() const override { return config_.classes; }
  int vocab() const override { return config_.vocab; }
  bool deepens() const override { return true; }
  int64_t logit_rows(const Input& input) const override { return input.batch; }
  const real* forward(const Input& input) override {
    pass_ = {Mode::TRAINING, input.batch, 0, input.length, input.length, true};
    return run(input, saved_, nullptr, pass_);
  }
  // If a string grows by one token, all its chunks begin one token later, so none of its earlier chunks can be used
  // again. But the chunk that ends at a position is the same for all strings that reach this position: a new token adds
  // one chunk in each layer.
  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    return make_model_decoder<Saved>("regular_gpt", *this, make_caches(ops_, config_, batch, capacity), batch,
                                     capacity);
  }

  // Where the first of the last ones of C stands.
  int first_end(const Layer& a) const { return a.length - 1 - (a.made - 1) * config_.chunk; }

  ChunkedGpt(const Config& config, Ops& ops) : config_(config), ops_(ops) {
    const Config& c = config_;
    const int D = c.width;
    // The authors' code: N(0, 0.02²) for embedding, padding and relative; the rest is its library's default, N(0,
    // 1/inputs). Theirs, of embedding and matrices, are cut off at two deviations, which these are not.
    const auto inputs = [](int n) { return Init::normal(1 / numerics::sqrt(static_cast<real>(n))); };
    const Init small = Init::normal(WEIGHT_DEVIATION);
    const std::string attention = "blocks.0.attention.";
    token_embedding_ = &parameters.add("token_embedding.weight", {c.vocab, D}, small);
    padding_ = &parameters.add("padding", {D}, small);
    Parameter* qkv = &parameters.add(attention + "qkv.weight", {3 * D, D}, inputs(D));
    q_ = Linear(qkv, 0, D);
    kv_ = Linear(qkv, D, 2 * D);
    relative_ = &parameters.add(attention + "relative", {c.heads, c.chunk}, small);
    out_ = Linear(parameters, attention + "out", D, D, inputs(D));
    norm_1_ = Norm(parameters, "blocks.0.norm_1", D, true);
    mlp_ = Mlp(parameters, "blocks.0.mlp", D, c.hidden, Pointwise::RELU, inputs(D), inputs(c.hidden));
    norm_2_ = Norm(parameters, "blocks.0.norm_2", D, true);
    head_ = Linear(parameters, "head", D, c.classes, inputs(D), true);
    parameters.allocate(ops);
  }

  // Both modes; caches: of each layer, in decoding. Returns the logits, or null where they are not needed.
  const real* run(const Input& input, Saved& s, std::vector<KvCache>* caches, const Pass& pass) {
    const bool training = pass.is_training();
    const int D = config_.width;
    const size_t layers = config_.layers(pass.capacity);
    s.resize(ops_, config_, pass);
    // x = √D · token_embedding[token]                                                                       (N,D)
    ops_.embedding(s.layers[0].x, token_embedding_->value, nullptr, input.tokens_for("regular_gpt"), 0, pass.batch,
                   pass.count, D);
    ops_.scale(s.layers[0].x, s.layers[0].x, numerics::sqrt(static_cast<real>(D)), pass.rows() * D);
    kv_.forward(ops_, s.kv_before, padding_->value, 1);
    for (size_t l = 0; l < layers; ++l) {
      layer_forward(l, s, training ? nullptr : &(*caches)[l], pass);
      const Layer& next = s.layers[l + 1];
      if (!training) keep_finished(ops_, s.finished, next.x, l + 1, config_, pass);
      if (training && after_layer) after_layer(l, next.x, next.length, D);
    }
    if (!pass.need_logits) return nullptr;
    const Tensor& last = training ? s.layers[layers].x : s.finished;
    head_.forward(ops_, s.logits, last, training ? pass.batch : pass.rows());
    return s.logits;
  }

  void backward(const Input& input, const real* dlogits) override {
    const int B = input.batch, D = config_.width;
    const size_t layers = config_.layers(input.length);
    dx_.resize(ops_, {B, D});
    head_.backward(ops_, dx_, dlogits, saved_.layers[layers].x, B);
    for (size_t l = layers; l-- > 0;) {
      layer_backward(l);
      std::swap(dx_, dlower_);
    }
    ops_.scale(dx_, dx_, numerics::sqrt(static_cast<real>(D)), input.rows() * D);
    ops_.embedding_backward(token_embedding_->gradient, nullptr, dx_, input.tokens, B, input.length, D, config_.vocab);
  }

  // From x of layer l to that of layer l + 1: in training the last of every C positions; in decoding all positions,
  // because each is the last one of some string.
  void layer_forward(size_t l, Saved& s, KvCache* cache, const Pass& pass) {
    const bool decoding = !pass.is_training();
    const int B = pass.batch, D = config_.width;
    Layer& a = s.layers[l];
    const int64_t N = static_cast<int64_t>(B) * a.length, R = static_cast<int64_t>(B) * a.made;
    real* const x = s.layers[l + 1].x.data();
    kv_.forward(ops_, a.kv, a.x, N);  // k, v = W_kv x, of all (N,2D)
    if (decoding) append(ops_, *cache, a.kv, 2 * D, pass, D);
    if (decoding)
      ops_.copy(x, 0, a.x, 0, a.x.bytes(), 1);
    else
      ops_.take_rows(x, a.x, B, a.length, first_end(a), config_.chunk, a.made, D);  // x of the last (R,D)
    q_.forward(ops_, a.q, x, R);                                                    // q = W_q x     (R,D)
    ops_.dilated_attention(a.y, a.weights, attention_input(a, s, decoding ? cache->data() : a.kv), shape(l, s, pass));
    out_.forward(ops_, x, a.y, R, Into::ADD);      // x += W_out y
    norm_1_.in_place(ops_, a.norm_1, x, R);        // x = norm_1(x)
    mlp_.forward(ops_, a.mlp, x, x, s.hidden, R);  // x += W_down relu(…
    norm_2_.in_place(ops_, a.norm_2, x, R);        // x = norm_2(x)
  }

  // From dx_, of what the layer made, to dlower_, of what it read.
  void layer_backward(size_t l) {
    const int B = pass_.batch, D = config_.width;
    const Layer& a = saved_.layers[l];
    const int64_t N = static_cast<int64_t>(B) * a.length, R = static_cast<int64_t>(B) * a.made;
    norm_2_.backward(ops_, dx_, dx_, a.norm_2, R, Into::WRITE);
    const real* r = norm_1_.output(ops_, a.norm_1, r_, R);
    mlp_.backward(ops_, dx_, Into::ADD, dx_, a.mlp, r, saved_.hidden, dhidden_, R);
    norm_1_.backward(ops_, dx_, dx_, a.norm_1, R, Into::WRITE);
    attention_backward(l);

    dlower_.resize(ops_, {N, D});
    ops_.take_rows(r_, a.x, B, a.length, first_end(a), config_.chunk, a.made, D);
    q_.backward(ops_, dx_, dq_, r_, R, Into::ADD);
    kv_.backward(ops_, dlower_, dkv_, a.x, N);
    kv_.backward(ops_, padding_->gradient, dkv_before_, padding_->value, 1, Into::ADD);
    ops_.add_to_rows(dlower_, dx_, B, a.length, first_end(a), config_.chunk, a.made, D);
  }

  // dq_, dkv_ and dkv_before_ from dx_, the gradient of x + W_out y
  void attention_backward(size_t l) {
    const int B = pass_.batch, D = config_.width, scores = config_.heads * config_.chunk;
    const Layer& a = saved_.layers[l];
    const int64_t R = static_cast<int64_t>(B) * a.made;
    dy_.resize(ops_, {R, D});
    dq_.resize(ops_, {R, D});
    dkv_.resize(ops_, {static_cast<int64_t>(B) * a.length, 2 * D});
    dkv_before_.resize(ops_, {2 * D});
    dscores_.resize(ops_, {R, scores});
    out_.backward(ops_, dy_, dx_, a.y, R);
    const DilatedGradient out{dq_, dkv_, dkv_ + D, dkv_before_, dkv_before_ + D, dscores_.data()};
    const DilatedInput in = attention_input(a, saved_, a.kv);
    ops_.dilated_attention_backward(out, dy_, a.weights, in, shape(l, saved_, pass_));
    ops_.add_row_backward(relative_->gradient, dscores_, R, scores);
  }

  DilatedInput attention_input(const Layer& a, const Saved& s, const real* kv) const {
    const int D = config_.width;
    return {a.q, kv, kv + D, s.kv_before, s.kv_before + D, relative_->value};
  }

  // In training the last of every C vectors has a query, and these C vectors are its keys. In decoding every new position
  // has a query, and its keys are C^l positions apart.
  DilatedShape shape(size_t l, const Saved& s, const Pass& pass) const {
    const int D = config_.width, C = config_.chunk, heads = config_.heads, d = D / heads;
    if (!pass.is_training())
      return {pass.batch, pass.count, pass.first + pass.count, pass.capacity, heads,
              d,          C,          config_.power(l),        pass.first,    1,
              D,          2 * D};
    const Layer& a = s.layers[l];
    return {pass.batch, a.made, a.length, a.length, heads, d, C, 1, first_end(a), C, D, 2 * D};
  }
};

}  // namespace petroglyph::regular_gpt

std::unique_ptr<petroglyph::Model> petroglyph::make_regular_gpt(const Json& json, Ops& ops) {
  ConfigReader reader("regular_gpt", json);
  const regular_gpt::Config config(json);
  if (config.chunked) return std::make_unique<regular_gpt::ChunkedGpt>(config, ops);
  return std::make_unique<regular_gpt::DilatedGpt>(config, ops);
}
