// What the Transformer, the linear Transformer and RegularGPT's dilated form share: everything but what happens between q, k, v
// and the attention's output (transformer.cpp, linear_transformer.cpp and regular_gpt.cpp, where to begin reading).
//
//   x   = embedding_scale · token_embedding[token] + position               (B,T,D)
//   in each block:
//     x += W_out attention(W_qkv norm_1(x) + b_qkv) + b_out
//     x += W_down f(W_up norm_2(x) + b_up) + b_down
//   logits = W_head final_norm(x) + b_head                                  (B,T,V), or (B,V) of the last position alone
//
// f is gelu, its tanh form or relu. With embedding_norm x is normalized before the first block. With tied_head W_head is the token
// embedding: one parameter, to whose gradient the head's part is added first and the embedding's last.
// Or, with norm_position "post": x = norm_1(x + attention(x)), x = norm_2(x + mlp(x)), and no final norm. Of images,
//   x   = [W_patch patch_1, …, W_patch patch_N, cls_token] + position       (B,N+1,D)
//
// Where a model has more layers than blocks, they take the blocks in turn, and a block's gradients are added layer by layer, the
// last one first.
//
// Backward, a residual connection passes dx on and its branch adds to it: pre, dx += norm'(branch'(dx)); post, the norm comes
// first, ds = norm'(dx), and then dx = ds + branch'(ds), where s is the sum that the norm reads. Saved are the norms, q, k, v, the
// attention's output and the MLP's inner layer before f: 10 D numbers a position and block with H = 4D. f(up) and the outputs of
// affine norms, 6 D more, are formed once more.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "math/positions.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"
#include "models/window_decoder.h"

namespace petroglyph {

struct TransformerConfig {
  bool images = false;
  int vocab = 0, context = 0;  // of images, context is N + 1
  int patches = 0, patch_size = 0;
  int classes = 0;  // V, of the readout
  int width = 0, hidden = 0, heads = 0;
  int blocks = 0;  // with weights of their own; RegularGPT's K
  bool causal = true;
  std::string position = "none";
  bool affine = true, post_norm = false, embedding_norm = false;
  real norm_epsilon = NORM_EPSILON;  // of affine norms
  bool published_slopes = false;     // alibi_bias()
  bool qkv_bias = true, out_bias = true, head_bias = false;
  Pointwise activation = Pointwise::GELU;
  bool tied_head = false;
  bool last = false;  // readout of the last position alone
  real embedding_scale = 1;
  real embedding_deviation = 1;  // of the initial values; PyTorch's default, as in the papers' code. GPT-2: 0.02

  TransformerConfig() = default;
  // positions: the model's schemes beside "learned", "none" and "sinusoidal"
  TransformerConfig(ConfigReader& reader, const std::vector<std::string>& positions) {
    images = reader.has("patches");
    width = static_cast<int>(reader.integer("width", 1, 1 << 16));
    hidden = static_cast<int>(reader.integer("hidden", 1, 1 << 20));
    blocks = static_cast<int>(reader.integer("layers", 1, 1 << 10));
    heads = static_cast<int>(reader.integer("heads", 1, 1 << 16));
    if (width % heads != 0) reader.fail(petroglyph::text("heads %d does not divide width %d", heads, width));
    causal = reader.boolean("causal");
    std::vector<std::string> schemes = {"learned", "none", "sinusoidal"};
    schemes.insert(schemes.end(), positions.begin(), positions.end());
    position = reader.choice("position", images ? std::vector<std::string>{"learned"} : schemes);
    if (!causal && (position == "alibi" || position == "t5" || position == "kerple"))
      reader.fail("position \"" + position + "\" knows distances to the past only, and causal is false");
    affine = reader.choice("norm", {"plain", "affine"}) == "affine";
    if (affine) norm_epsilon = static_cast<real>(reader.number("norm_epsilon", 0, 1, 1e-5));
    if (position == "alibi") published_slopes = reader.choice("slopes", {"even", "published"}, "even") == "published";
    qkv_bias = reader.boolean("qkv_bias");
    out_bias = reader.boolean("out_bias");
    activation = reader.choice("gelu", {"erf", "tanh"}) == "tanh" ? Pointwise::GELU_TANH : Pointwise::GELU;
    last = reader.choice("readout",
                         images ? std::vector<std::string>{"last"} : std::vector<std::string>{"all", "last"}) == "last";
    head_bias = reader.boolean("head_bias", false);
    if (images)
      read_image_keys(reader);
    else
      read_token_keys(reader);
  }

 private:
  void read_image_keys(ConfigReader& reader) {
    patches = static_cast<int>(reader.integer("patches", 1, 1 << 24));
    patch_size = static_cast<int>(reader.integer("patch_size", 1, 1 << 20));
    classes = static_cast<int>(reader.integer("classes", 1, 1 << 24));
    context = patches + 1;
    post_norm = false;
  }
  void read_token_keys(ConfigReader& reader) {
    vocab = static_cast<int>(reader.integer("vocab", 1, 1 << 24));
    context = static_cast<int>(reader.integer("context", 1, 1 << 24));
    classes = static_cast<int>(reader.integer("classes", 1, 1 << 24, vocab));
    post_norm = reader.choice("norm_position", {"pre", "post"}, "pre") == "post";
    if (reader.choice("mlp_activation", {"gelu", "relu"}, "gelu") == "relu") activation = Pointwise::RELU;
    embedding_scale = static_cast<real>(reader.number("embedding_scale", -1e6, 1e6, 1));
    embedding_deviation = static_cast<real>(reader.number("embedding_deviation", 0, 1e6, 1));
    embedding_norm = reader.boolean("embedding_norm", false);
    tied_head = reader.boolean("tied_head", false);
    if (tied_head && classes != vocab)
      reader.fail(petroglyph::text("tied_head: classes is %d, vocab %d, and one table serves both", classes, vocab));
  }
};

// `count` new positions of each of the batch's sequences, after `first` others.
struct Piece {
  int batch, first, count;
  int capacity;  // positions there will be at most; in training all there are
  bool stream;   // later pieces follow: what they need goes into a cache

  int64_t rows() const { return static_cast<int64_t>(batch) * count; }
};

// Those rows of x (B,count,D) to the same rows of `finished` that have come through all their layers: a stream reads out each
// position after as many as a sequence that ends there has, layers_of(positions), and x has come through `layers`.
template <class LayersOf>
void keep_finished(Ops& ops, Tensor& finished, const Tensor& x, size_t layers, LayersOf layers_of, const Piece& p,
                   int D) {
  finished.resize(ops, {p.rows(), D});
  int begin = 0;
  while (begin < p.count && layers_of(p.first + begin + 1) < layers) ++begin;
  int end = begin;
  while (end < p.count && layers_of(p.first + end + 1) == layers) ++end;
  if (begin == end) return;
  const size_t row = static_cast<size_t>(D) * sizeof(real);
  const int64_t at = static_cast<int64_t>(begin) * D;
  ops.copy(finished.data() + at, row * p.count, x.data() + at, row * p.count, row * (end - begin), p.batch);
}

// The weights of a layer of one sample, (heads,T,T): attention over values that are columns of the identity, as many at a time
// as a head has channels. again(y, qkv): the layer's forward pass from qkv as it was left, of other v
template <class Again>
std::vector<real> map_over_identity(Ops& ops, const TransformerConfig& config, const real* qkv, const Piece& p,
                                    int sample, Again again) {
  const size_t D = config.width, T = p.count, heads = config.heads, n = D / heads;
  std::vector<real> kept(static_cast<size_t>(p.rows()) * 3 * D), map(heads * T * T);
  ops.download(kept.data(), qkv, kept.size() * sizeof(real));
  Tensor changed(ops, {p.rows(), config.width * 3}), y(ops, {p.rows(), config.width});
  for (size_t first = 0; first < T; first += n) {
    const size_t count = std::min(n, T - first);
    std::vector<real> values = kept;
    for (size_t s = 0; s < T; ++s)
      for (size_t c = 0; c < D; ++c) values[((sample * T + s) * 3 + 2) * D + c] = s == first + c % n ? 1 : 0;
    changed.upload(values);
    again(y.data(), changed.data());
    const std::vector<real> taken = y.download();
    for (size_t h = 0; h < heads; ++h)
      for (size_t t = 0; t < T; ++t)
        for (size_t c = 0; c < count; ++c) map[(h * T + t) * T + first + c] = taken[(sample * T + t) * D + h * n + c];
  }
  return map;
}

// Attention is a class with
//   static TransformerConfig config(ConfigReader&);
//   Attention(ConfigReader&, const TransformerConfig&, Parameters&, Ops&);
//   void add_block(const std::string& prefix);              declares the parameters of the next block
//   static constexpr bool FIXED_STATE;                      whether a Cache is as large after any number of positions
//   size_t layers(int positions) const;                     of a sequence as long as that; they take the blocks in turn
//   struct Saved;  struct Cache;                             of one layer: for the backward pass; for later pieces
//   void prepare(const Piece&);                             once before the layers
//   void forward(real* y, real* qkv, Saved&, Cache*, size_t layer, const Piece&);    qkv may be changed; no cache: no stream
//   void begin_backward(const Piece&);
//   void backward(real* dqkv, real* dy, const real* y, const real* qkv, Saved&, size_t layer, const Piece&);
//   void end_backward(const Piece&);
//   std::vector<real> map(const real* qkv, Saved&, size_t layer, const Piece&, int sample);     see Model::attention_map
// y, dy (B,count,D); qkv, dqkv (B,count,3D): q, k, v of a position side by side, each grouped by head.
template <class Attention>
class TransformerModel final : public Model {
 public:
  TransformerModel(ConfigReader reader, Ops& ops)
      : name_(reader.owner()),
        config_(Attention::config(reader)),
        ops_(ops),
        attention_(reader, config_, parameters, ops) {
    reader.finish();
    declare();
    parameters.allocate(ops);
  }

  int classes() const override { return config_.classes; }
  int vocab() const override { return config_.vocab; }
  int longest() const override { return position_embedding_ && window() == 0 ? config_.context : Model::longest(); }
  bool has_fixed_state() const override {
    return Attention::FIXED_STATE && config_.position == "none" && window() == 0;
  }
  bool deepens() const override { return attention_.layers(1 << 20) > attention_.layers(1); }
  // Without a mask a token's answer is that of a window which ends there.
  int window() const override { return config_.last && !config_.causal && !config_.images ? config_.context : 0; }
  int64_t logit_rows(const Input& input) const override { return config_.last ? input.batch : input.rows(); }
  const real* forward(const Input& input) override;
  void backward(const Input& input, const real* dlogits) override;
  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override;
  bool has_attention_maps() const override { return true; }
  std::vector<real> attention_map(size_t layer, int sample) override {
    Activations& a = state_.layers.at(layer);
    return attention_.map(a.qkv.data(), a.attention, layer, state_.piece, sample);
  }

 private:
  struct Block {
    Norm norm_1, norm_2;
    Parameter *qkv, *qkv_bias, *out, *out_bias;  // (3D,D), (3D), (D,D), (D); biases may be null
    Mlp mlp;
  };
  // What one layer computes and the backward pass wants to see again.
  struct Activations {
    Norm::Saved norm_1, norm_2;
    Tensor qkv, y;  // (N,3D), (N,D)
    typename Attention::Saved attention;
    Mlp::Saved mlp;
  };
  struct State {
    Piece piece{};
    std::vector<Activations> layers;                // of the longest sequence so far; one for all layers in a stream
    std::vector<typename Attention::Cache> caches;  // stream only
    Tensor finished;  // (N,D): x after each position's own last layer, stream with readout "last"
    Tensor x;         // (N,D)
    Norm::Saved embedding_norm;
    Tensor embedded;   // (N,D): x before the layers, where the first one reads it unnormalized
    Tensor r, hidden;  // (N,D), (N,H): of the layer at work
    Tensor last;       // (B,D): x at the last position
    Norm::Saved final_norm;
    Tensor normed, logits;  // (R,D), (R,V), with R the rows that are read out: N or B
  };
  class TokenDecoder;

  void declare();
  void check_length(int length) const;
  void run_layers(State& s, const Input& input);
  void embed(State& s, const Input& input);
  void layer_forward(size_t l, State& s);
  const real* read_out(State& s);
  void readout_backward(const real* dlogits);
  void layer_backward(size_t l);
  void attention_backward(size_t l, real* dr, Into into);
  void embed_backward(const Input& input);
  // What the first product of layer l read.
  const real* layer_input(size_t l);
  const Block& block(size_t l) const { return blocks_[l % blocks_.size()]; }
  // The table that is added to the embedding, or null.
  const real* position_table(int length);

  std::string name_;
  TransformerConfig config_;
  Ops& ops_;
  Attention attention_;
  Parameter *token_embedding_ = nullptr, *position_embedding_ = nullptr;  // (vocab,D), (context,D)
  PatchEmbedding patch_embedding_;                                        // images only
  Parameter *head_, *head_bias_ = nullptr;                                // (V,D), (V)
  std::vector<Block> blocks_;
  Norm embedding_norm_, final_norm_;
  Tensor sinusoids_;  // (at least as many as were asked for, D)
  State state_;
  // Of the backward pass, shared by all layers.
  Tensor dx_, dr_, dy_;    // (N,D) each
  Tensor dqkv_, dhidden_;  // (N,3D), (N,H)
  Tensor dlast_;           // (B,D)
};

// ---- Parameters -----------------------------------------------------------------------------------------------------

template <class Attention>
void TransformerModel<Attention>::declare() {
  const TransformerConfig& c = config_;
  const Init weight = Init::normal(WEIGHT_DEVIATION);
  const auto norm = [&](const std::string& name) { return Norm(parameters, name, c.width, c.affine, c.norm_epsilon); };
  if (c.images)
    patch_embedding_ = PatchEmbedding(parameters, name_, c.patches, c.patch_size, c.width);
  else
    token_embedding_ =
        &parameters.add("token_embedding.weight", {c.vocab, c.width}, Init::normal(c.embedding_deviation));
  if (c.position == "learned" && !c.images)
    position_embedding_ =
        &parameters.add("position_embedding.weight", {c.context, c.width}, Init::normal(c.embedding_deviation));
  if (c.embedding_norm) embedding_norm_ = norm("embedding_norm");
  const Init out = Init::normal(output_deviation(2 * c.blocks));
  const auto bias = [&](bool wanted, const std::string& name, int size) {
    return wanted ? &parameters.add(name, {size}, Init::zeros()) : nullptr;
  };
  for (int l = 0; l < c.blocks; ++l) {
    const std::string prefix = "blocks." + std::to_string(l) + ".", attention = prefix + "attention.";
    Block b;
    b.norm_1 = norm(prefix + "norm_1");
    b.qkv = &parameters.add(attention + "qkv.weight", {3 * c.width, c.width}, weight);
    b.qkv_bias = bias(c.qkv_bias, attention + "qkv.bias", 3 * c.width);
    b.out = &parameters.add(attention + "out.weight", {c.width, c.width}, out);
    b.out_bias = bias(c.out_bias, attention + "out.bias", c.width);
    attention_.add_block(attention);
    b.norm_2 = norm(prefix + "norm_2");
    b.mlp = Mlp(parameters, prefix + "mlp", c.width, c.hidden, c.activation, weight, out);
    blocks_.push_back(b);
  }
  if (!c.post_norm) final_norm_ = norm("final_norm");
  head_ = c.tied_head ? token_embedding_ : &parameters.add("head.weight", {c.classes, c.width}, weight);
  head_bias_ = bias(c.head_bias, "head.bias", c.classes);
}

// ---- Forward --------------------------------------------------------------------------------------------------------

template <class Attention>
void TransformerModel<Attention>::check_length(int length) const {
  if (position_embedding_ && length > config_.context)
    throw Error(
        text("%s: a sequence of %d tokens is longer than the context of %d", name_.c_str(), length, config_.context));
}

template <class Attention>
const real* TransformerModel<Attention>::forward(const Input& input) {
  check_length(input.length);
  const int T = config_.images ? input.length + 1 : input.length;
  state_.piece = {input.batch, 0, T, T, false};
  run_layers(state_, input);
  return read_out(state_);
}

template <class Attention>
void TransformerModel<Attention>::run_layers(State& s, const Input& input) {
  const Piece& p = s.piece;
  const size_t layers = attention_.layers(p.capacity);
  const auto layers_of = [this](int positions) { return attention_.layers(positions); };
  if (s.layers.size() < layers) s.layers.resize(p.stream ? 1 : layers);  // never fewer: the memory stays
  if (p.stream) s.caches.resize(layers);
  embed(s, input);
  attention_.prepare(p);
  for (size_t l = 0; l < layers; ++l) {
    layer_forward(l, s);
    if (p.stream && config_.last) keep_finished(ops_, s.finished, s.x, l + 1, layers_of, p, config_.width);
    if (!p.stream && after_layer) after_layer(l, s.x.data(), p.count, config_.width);
  }
}

template <class Attention>
const real* TransformerModel<Attention>::position_table(int length) {
  if (position_embedding_) return position_embedding_->value;
  if (config_.position != "sinusoidal") return nullptr;
  if (sinusoids_.size() < static_cast<int64_t>(length) * config_.width) {
    sinusoids_.resize(ops_, {length, config_.width});
    sinusoids_.upload(sinusoids(0, length, config_.width));
  }
  return sinusoids_.data();
}

template <class Attention>
void TransformerModel<Attention>::embed(State& s, const Input& input) {
  const Piece& p = s.piece;
  const int B = p.batch, D = config_.width;
  const real* const positions = position_table(p.capacity);
  s.x.resize(ops_, {p.rows(), D});
  const int32_t* const tokens = config_.images ? nullptr : input.tokens_for(name_);
  if (config_.images) {
    patch_embedding_.forward(ops_, s.x.data(), input);
  } else if (config_.embedding_scale == 1) {
    ops_.embedding(s.x.data(), token_embedding_->value, positions, tokens, p.first, B, p.count, D);
  } else {
    ops_.embedding(s.x.data(), token_embedding_->value, nullptr, tokens, p.first, B, p.count, D);
    ops_.scale(s.x.data(), s.x.data(), config_.embedding_scale, p.rows() * D);
    if (positions) ops_.add_positions(s.x.data(), positions, p.first, B, p.count, D);
  }
  if (config_.embedding_norm) embedding_norm_.in_place(ops_, s.embedding_norm, s.x.data(), p.rows());
  if (!config_.post_norm || p.stream) return;
  s.embedded.resize(ops_, {p.rows(), D});
  ops_.copy(s.embedded.data(), 0, s.x.data(), 0, s.x.bytes(), 1);
}

template <class Attention>
void TransformerModel<Attention>::layer_forward(size_t l, State& s) {
  const Piece& p = s.piece;
  const int D = config_.width;
  const int64_t N = p.rows();
  const Block& block = this->block(l);
  Activations& a = s.layers[p.stream ? 0 : l];
  real* const x = s.x.data();
  a.qkv.resize(ops_, {N, 3 * D});
  a.y.resize(ops_, {N, D});

  const real* r = config_.post_norm ? x : block.norm_1.forward(ops_, a.norm_1, s.r, x, N);
  ops_.linear(a.qkv.data(), r, block.qkv->value, value_or_null(block.qkv_bias), N, D, 3 * D, Into::WRITE);
  attention_.forward(a.y.data(), a.qkv.data(), a.attention, p.stream ? &s.caches[l] : nullptr, l, p);
  ops_.linear(x, a.y.data(), block.out->value, value_or_null(block.out_bias), N, D, D, Into::ADD);
  if (config_.post_norm) block.norm_1.in_place(ops_, a.norm_1, x, N);

  r = config_.post_norm ? x : block.norm_2.forward(ops_, a.norm_2, s.r, x, N);
  block.mlp.forward(ops_, a.mlp, x, r, s.hidden, N);
  if (config_.post_norm) block.norm_2.in_place(ops_, a.norm_2, x, N);
}

// A stream reads out every position: each is the last one of the tokens so far.
template <class Attention>
const real* TransformerModel<Attention>::read_out(State& s) {
  const int D = config_.width, V = config_.classes;
  const Piece& p = s.piece;
  const bool last = config_.last && !p.stream;
  const int64_t rows = last ? p.batch : p.rows();
  const real* x = config_.last && p.stream ? s.finished.data() : s.x.data();
  if (last) {
    take_last(ops_, s.last, x, p.batch, p.count, D);
    x = s.last.data();
  }
  if (!config_.post_norm) x = final_norm_.forward(ops_, s.final_norm, s.normed, x, rows);
  s.logits.resize(ops_, {rows, V});
  ops_.linear(s.logits.data(), x, head_->value, value_or_null(head_bias_), rows, D, V, Into::WRITE);
  return s.logits.data();
}

// ---- Backward -------------------------------------------------------------------------------------------------------

template <class Attention>
void TransformerModel<Attention>::backward(const Input& input, const real* dlogits) {
  const Piece& p = state_.piece;
  const int64_t N = p.rows();
  dx_.resize(ops_, {p.batch, p.count, config_.width});
  dr_.resize(ops_, {N, config_.width});
  dy_.resize(ops_, {N, config_.width});
  dqkv_.resize(ops_, {N, 3 * config_.width});
  readout_backward(dlogits);
  attention_.begin_backward(p);
  for (size_t l = attention_.layers(p.capacity); l-- > 0;) layer_backward(l);
  attention_.end_backward(p);
  embed_backward(input);
}

template <class Attention>
void TransformerModel<Attention>::readout_backward(const real* dlogits) {
  const int D = config_.width, V = config_.classes;
  State& s = state_;
  const Piece& p = s.piece;
  const int64_t rows = config_.last ? p.batch : p.rows();
  if (config_.last) dlast_.resize(ops_, {rows, D});
  real* const dx = config_.last ? dlast_.data() : dx_.data();
  const real* x = config_.last ? s.last.data() : s.x.data();
  if (!config_.post_norm) x = final_norm_.output(ops_, s.final_norm, s.normed, rows);
  ops_.linear_backward_weight(head_->gradient, gradient_or_null(head_bias_), dlogits, x, rows, D, V);
  ops_.linear_backward_input(dx, dlogits, head_->value, rows, D, V, Into::WRITE);
  if (!config_.post_norm) final_norm_.backward(ops_, dx, dx, s.final_norm, rows, Into::WRITE);
  if (config_.last) put_last(ops_, dx_, dx, p.batch, p.count, D);
}

// dx_ is the gradient of the layer's output when it comes and of its input when it goes.
template <class Attention>
void TransformerModel<Attention>::layer_backward(size_t l) {
  State& s = state_;
  const int64_t N = s.piece.rows();
  const Block& block = this->block(l);
  const Activations& a = s.layers[l];
  real *const dx = dx_.data(), *const dr = dr_.data();
  if (config_.post_norm) {
    block.norm_2.backward(ops_, dx, dx, a.norm_2, N, Into::WRITE);
    const real* r = block.norm_1.output(ops_, a.norm_1, s.r, N);
    block.mlp.backward(ops_, dx, Into::ADD, dx, a.mlp, r, s.hidden, dhidden_, N);
    block.norm_1.backward(ops_, dx, dx, a.norm_1, N, Into::WRITE);
    attention_backward(l, dx, Into::ADD);
    return;
  }
  const real* r = block.norm_2.output(ops_, a.norm_2, s.r, N);
  block.mlp.backward(ops_, dr, Into::WRITE, dx, a.mlp, r, s.hidden, dhidden_, N);
  block.norm_2.backward(ops_, dx, dr, a.norm_2, N, Into::ADD);
  attention_backward(l, dr, Into::WRITE);
  block.norm_1.backward(ops_, dx, dr, a.norm_1, N, Into::ADD);
}

template <class Attention>
void TransformerModel<Attention>::attention_backward(size_t l, real* dr, Into into) {
  const int D = config_.width;
  const int64_t N = state_.piece.rows();
  const Block& block = this->block(l);
  Activations& a = state_.layers[l];
  real *const dx = dx_.data(), *const dy = dy_.data(), *const dqkv = dqkv_.data();
  ops_.linear_backward_weight(block.out->gradient, gradient_or_null(block.out_bias), dx, a.y.data(), N, D, D);
  ops_.linear_backward_input(dy, dx, block.out->value, N, D, D, Into::WRITE);
  attention_.backward(dqkv, dy, a.y.data(), a.qkv.data(), a.attention, l, state_.piece);
  ops_.linear_backward_weight(block.qkv->gradient, gradient_or_null(block.qkv_bias), dqkv, layer_input(l), N, D, 3 * D);
  ops_.linear_backward_input(dr, dqkv, block.qkv->value, N, D, 3 * D, into);
}

template <class Attention>
const real* TransformerModel<Attention>::layer_input(size_t l) {
  State& s = state_;
  const int64_t N = s.piece.rows();
  if (!config_.post_norm) return block(l).norm_1.output(ops_, s.layers[l].norm_1, s.r, N);
  return l == 0 ? s.embedded.data() : block(l - 1).norm_2.output(ops_, s.layers[l - 1].norm_2, s.r, N);
}

template <class Attention>
void TransformerModel<Attention>::embed_backward(const Input& input) {
  const Piece& p = state_.piece;
  const int B = p.batch, D = config_.width;
  real* const dx = dx_.data();
  real* const dposition = gradient_or_null(position_embedding_);
  if (config_.embedding_norm) embedding_norm_.backward(ops_, dx, dx, state_.embedding_norm, p.rows(), Into::WRITE);
  if (config_.images) {
    patch_embedding_.backward(ops_, dx, input);
  } else if (config_.embedding_scale == 1) {
    ops_.embedding_backward(token_embedding_->gradient, dposition, dx, input.tokens, B, p.count, D, config_.vocab);
  } else {
    if (dposition) ops_.add_positions_backward(dposition, dx, B, p.count, D);
    ops_.scale(dx, dx, config_.embedding_scale, p.rows() * D);
    ops_.embedding_backward(token_embedding_->gradient, nullptr, dx, input.tokens, B, p.count, D, config_.vocab);
  }
}

// ---- Decoder ---------------------------------------------------------------------------------------------------------

template <class Attention>
class TransformerModel<Attention>::TokenDecoder final : public Decoder {
 public:
  TokenDecoder(TransformerModel& model, int batch, int capacity) : Decoder(model.name_, capacity), model_(model) {
    state_.piece = {batch, 0, 0, capacity, true};
  }

 private:
  const real* advance(const int32_t* tokens, int n, bool need_logits) override {
    state_.piece.first = length();
    state_.piece.count = n;
    model_.run_layers(state_, {tokens, state_.piece.batch, n});
    return need_logits ? model_.read_out(state_) : nullptr;
  }

  TransformerModel& model_;
  State state_;
};

template <class Attention>
std::unique_ptr<Decoder> TransformerModel<Attention>::make_decoder(int batch, int capacity) {
  if (config_.images) throw Error(name_ + ": images are not read token by token");
  if (window() > 0) return make_window_decoder(*this, ops_, name_, window(), batch, capacity);
  if (!config_.causal) throw Error(name_ + ": a bidirectional model cannot read one token at a time");
  check_length(capacity);
  return std::make_unique<TokenDecoder>(*this, batch, capacity);
}

}  // namespace petroglyph
