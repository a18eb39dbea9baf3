// RegularGPT: a Transformer whose every layer combines C pieces of its problem into one. Chi et al. 2023, "Transformer Working
// Memory Enables Regular Language Reasoning and Natural Language Length Extrapolation".
//
// A finite automaton maps a string to what it does to the states, and what two strings do one after the other follows from what
// each of them does. So C pieces are combined into one, C of those into the next, and after ⌈log_C T⌉ layers one vector speaks of
// all T symbols. Every layer does the same, hence all share their weights, and a longer string takes more layers of the same kind:
// that is why a model that has seen 40 symbols can read 500.
//
// In layer l = 0 … L−1, L = ⌈log_C T⌉ and at least one, position m attends to itself and to the last position of each of the C − 1
// pieces before its own:
//   score_mi = q_m·k_n / √d + relative_i,   n = m − i·C^l,   i = 0 … C−1,   d: a head's channels           (eq. 1)
//   a_mi = exp(score_mi) / Σ_i' exp(score_mi'),   y_m = Σ_i a_mi v_n
// which after the layer speaks of the C^(l+1) symbols up to m. `relative` (heads,C) is all that tells positions. Work and memory
// are O(T·C) in a layer; nothing of size T² is ever there.
//
// Two forms of it:
//   "dilated"   The paper's, a GPT-2 (transformer_body.h) that does so at every position, with n < 0 left out. K blocks in a row
//               are one layer of the above, K·L in all. With tied_head it reads out by the embedding's weights, as GPT-2 does.
//   "chunked"   The authors' code: only the positions that the last one needs, which are the last of every C, then of every C of
//               these …: T vectors become ⌈T/C⌉, then ⌈T/C²⌉ …, then one, which is read out. O(T) in all. Where the
//               oldest of C vectors are missing there stands for each a learned one, `padding`, in every layer the same. The
//               block is the original Transformer's: a = norm_1(x + W_out y),
//               x' = norm_2(a + W_down relu(W_up a + b_up) + b_down), after x = √D · embedding.
//
// The backward pass, beyond that of a Transformer:
//   da_mi = dy_m·v_n,   ds_mi = a_mi (da_mi − Σ_i' a_mi' da_mi')
//   dq_m = Σ_i ds_mi k_n / √d,   drelative_i = Σ_m ds_mi
//   dk_n = Σ_i ds_(n+i·C^l),i q_(n+i·C^l) / √d,   dv_n = Σ_i a_(n+i·C^l),i dy_(n+i·C^l)   ← gathered: each has one writer
// In the chunked form keys and values are of all vectors and queries of the last ones alone: dx = W_kvᵀ [dk, dv] everywhere, and at
// the last of C also W_qᵀ dq and what the residual connection brings. The padding's part is dpadding = W_kvᵀ Σ [dk, dv]_before.
// Shared weights have the sum of all layers' gradients: the last layer's are added first, then those before it one by one.

#include "models/config.h"
#include "models/models.h"
#include "models/transformer_body.h"

namespace petroglyph {

namespace regular_gpt {

// The smallest L ≥ 1 with C^L ≥ T, in whole numbers: a logarithm finds 4 for C = 5 and T = 125.
size_t depth(int chunk, int length) {
  size_t layers = 1;
  for (int64_t reach = chunk; reach < length; reach *= chunk) ++layers;
  return layers;
}

// C^l, where a layer l of some sequence exists
int power(int chunk, size_t l) {
  int result = 1;
  while (l-- > 0) result *= chunk;
  return result;
}

// C: each head has a number for each place of a chunk, and each position a weight.
int chunk_of(ConfigReader& reader, int heads) {
  const int chunk = static_cast<int>(reader.integer("chunk", 2, 1 << 16));
  if (int64_t{1} * heads * chunk > 1 << 24)
    reader.fail(text("heads %d times chunk %d is more than 16,777,216 weights a position", heads, chunk));
  return chunk;
}

// ---- Dilated --------------------------------------------------------------------------------------------------------

class DilatedAttention {
 public:
  static constexpr bool FIXED_STATE = false;
  struct Saved {
    Tensor weights;  // (B,T,heads,C)
  };
  struct Cache {
    Tensor keys;  // (B,capacity,2D): k and v of all positions so far
  };

  static TransformerConfig config(ConfigReader& reader);

  DilatedAttention(ConfigReader& reader, const TransformerConfig& config, Parameters& parameters, Ops& ops)
      : config_(config), parameters_(parameters), ops_(ops), chunk_(chunk_of(reader, config.heads)) {}

  void add_block(const std::string& prefix) {
    relative_.push_back(&parameters_.add(prefix + "relative", {config_.heads, chunk_}, Init::normal(WEIGHT_DEVIATION)));
  }
  size_t layers(int positions) const { return relative_.size() * depth(chunk_, positions); }

  void prepare(const Piece&) {}
  void forward(real* y, real* qkv, Saved& kept, Cache* cache, size_t layer, const Piece& p);
  void begin_backward(const Piece&) {}
  void backward(real* dqkv, real* dy, const real* y, const real* qkv, Saved& kept, size_t layer, const Piece& p);
  void end_backward(const Piece&) {}
  std::vector<real> map(const real* qkv, Saved& kept, size_t layer, const Piece& p, int sample);

 private:
  void append(Tensor& cache, const real* qkv, const Piece& p);
  Parameter& relative(size_t layer) const { return *relative_[layer % relative_.size()]; }
  DilatedShape shape(size_t layer, const Piece& p, bool cached) const {
    const int D = config_.width;
    return {p.batch,
            p.count,
            p.first + p.count,
            p.capacity,
            config_.heads,
            D / config_.heads,
            chunk_,
            power(chunk_, layer / relative_.size()),
            p.first,
            1,
            3 * D,
            cached ? 2 * D : 3 * D};
  }

  const TransformerConfig& config_;
  Parameters& parameters_;
  Ops& ops_;
  int chunk_;
  std::vector<Parameter*> relative_;  // (heads,C) of each block
  Tensor dscores_;                    // (B,T,heads,C)
};

TransformerConfig DilatedAttention::config(ConfigReader& reader) {
  TransformerConfig c;
  c.vocab = static_cast<int>(reader.integer("vocab", 1, 1 << 24));
  c.classes = static_cast<int>(reader.integer("classes", 1, 1 << 24));
  c.width = static_cast<int>(reader.integer("width", 1, 1 << 16));
  c.hidden = static_cast<int>(reader.integer("hidden", 1, 1 << 20));
  c.heads = static_cast<int>(reader.integer("heads", 1, 1 << 16));
  if (c.width % c.heads != 0) reader.fail(text("heads %d does not divide width %d", c.heads, c.width));
  c.blocks = static_cast<int>(reader.integer("thickness", 1, 1 << 10));
  c.last = reader.choice("readout", {"last", "all"}) == "last";
  reader.choice("norm", {"affine"});
  c.head_bias = reader.boolean("head_bias", true);
  c.tied_head = reader.boolean("tied_head", false);
  if (c.tied_head && c.classes != c.vocab)
    reader.fail(text("tied_head: classes is %d, vocab %d, and one table serves both", c.classes, c.vocab));
  c.embedding_deviation = static_cast<real>(reader.number("embedding_deviation", 0, 1e6, 1));
  c.activation = Pointwise::GELU_TANH;
  return c;
}

// The keys and values in qkv (B,count,3D) to their places in a cache (B,capacity,2D).
void DilatedAttention::append(Tensor& cache, const real* qkv, const Piece& p) {
  const int D = config_.width;
  cache.resize(ops_, {p.batch, p.capacity, 2 * D});
  const size_t row = 2 * static_cast<size_t>(D) * sizeof(real);
  for (int b = 0; b < p.batch; ++b)
    ops_.copy(cache.data() + (static_cast<int64_t>(b) * p.capacity + p.first) * 2 * D, row,
              qkv + static_cast<int64_t>(b) * p.count * 3 * D + D, row / 2 * 3, row, static_cast<size_t>(p.count));
}

void DilatedAttention::forward(real* y, real* qkv, Saved& kept, Cache* cache, size_t layer, const Piece& p) {
  const int D = config_.width;
  kept.weights.resize(ops_, {p.rows(), config_.heads, chunk_});
  DilatedInput in{qkv, qkv + D, qkv + 2 * D, nullptr, nullptr, relative(layer).value};
  if (cache) {
    append(cache->keys, qkv, p);
    in.k = cache->keys.data();
    in.v = cache->keys.data() + D;
  }
  ops_.dilated_attention(y, kept.weights.data(), in, shape(layer, p, cache != nullptr));
}

void DilatedAttention::backward(real* dqkv, real* dy, const real*, const real* qkv, Saved& kept, size_t layer,
                                const Piece& p) {
  const int D = config_.width;
  dscores_.resize(ops_, {p.rows(), config_.heads, chunk_});
  const DilatedGradient gradient{dqkv, dqkv + D, dqkv + 2 * D, nullptr, nullptr, dscores_.data()};
  const DilatedInput in{qkv, qkv + D, qkv + 2 * D, nullptr, nullptr, relative(layer).value};
  ops_.dilated_attention_backward(gradient, dy, kept.weights.data(), in, shape(layer, p, false));
  ops_.add_row_backward(relative(layer).gradient, dscores_.data(), p.rows(), config_.heads * chunk_);
}

std::vector<real> DilatedAttention::map(const real*, Saved& kept, size_t layer, const Piece& p, int sample) {
  const int heads = config_.heads;
  const int64_t T = p.count;
  const DilatedShape shape = this->shape(layer, p, false);
  const std::vector<real> weights = kept.weights.download();
  std::vector<real> map(static_cast<size_t>(heads * T * T));
  for (int64_t t = 0; t < T; ++t)
    for (int h = 0; h < heads; ++h)
      for (int i = 0; i < shape.inside(t); ++i)
        map[static_cast<size_t>((h * T + t) * T + shape.key(t, i))] =
            weights[static_cast<size_t>(((sample * T + t) * heads + h) * chunk_ + i)];
  return map;
}

// ---- Chunked --------------------------------------------------------------------------------------------------------

struct Config {
  int vocab, classes;
  int width, hidden, heads;  // D, H
  int chunk;                 // C

  explicit Config(ConfigReader& reader) {
    vocab = static_cast<int>(reader.integer("vocab", 1, 1 << 24));
    classes = static_cast<int>(reader.integer("classes", 1, 1 << 24));
    width = static_cast<int>(reader.integer("width", 1, 1 << 16));
    hidden = static_cast<int>(reader.integer("hidden", 1, 1 << 20));
    heads = static_cast<int>(reader.integer("heads", 1, 1 << 16));
    chunk = chunk_of(reader, heads);
    if (width % heads != 0) reader.fail(text("heads %d does not divide width %d", heads, width));
    if (reader.integer("thickness", 1, 1 << 10) != 1) reader.fail("form \"chunked\" has thickness 1");
    if (reader.choice("readout", {"last", "all"}) != "last")
      reader.fail("form \"chunked\" answers at the last position only, readout \"last\"");
    reader.choice("norm", {"affine"});
    reader.finish();
  }
};

// What one layer reads and keeps. N rows of x become R.
struct Layer {
  int length;       // positions of x
  Tensor x;         // (N,D)
  Tensor q, kv, y;  // (R,D), (N,2D), (R,D)
  Tensor weights;   // (R,heads,C)
  Norm::Saved norm_1, norm_2;
  Mlp::Saved mlp;
  Tensor cache;  // (B,capacity,2D): a stream's k and v of all positions so far
};

struct State {
  Piece piece{};
  std::vector<Layer> layers;  // as many as the longest sequence so far has, and one whose x is what is read out
  Tensor kv_before;           // (2D): k and v of the padding
  Tensor hidden, finished;    // (R,H) of the layer at work; (N,D) a stream's vectors to be read out
  const real* read;           // (B,D) or a stream's (N,D): what was read out
  Tensor logits;              // (B,V) or a stream's (N,V)
};

class ChunkedGpt final : public Model {
 public:
  ChunkedGpt(ConfigReader& reader, Ops& ops);

  int classes() const override { return config_.classes; }
  bool deepens() const override { return true; }
  int vocab() const override { return config_.vocab; }
  int64_t logit_rows(const Input& input) const override { return input.batch; }
  const real* forward(const Input& input) override {
    state_.piece = {input.batch, 0, input.length, input.length, false};
    run_layers(state_, input.tokens_for("regular_gpt"));
    return read_out(state_);
  }
  void backward(const Input& input, const real* dlogits) override;
  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override;

  void run_layers(State& s, const int32_t* tokens);
  const real* read_out(State& s);

 private:
  size_t layers_of(int positions) const { return depth(config_.chunk, positions); }
  // How many vectors layer l makes of each sample's, and where the first of them stands among those.
  int made_of(const Layer& layer) const { return (layer.length + config_.chunk - 1) / config_.chunk; }
  int first_end(const Layer& layer) const { return layer.length - 1 - (made_of(layer) - 1) * config_.chunk; }
  DilatedShape shape(const State& s, size_t l) const;
  DilatedInput input(const State& s, const Layer& layer) const;
  const real* query_weight() const { return qkv_->value; }
  const real* key_weight() const { return qkv_->value + int64_t(config_.width) * config_.width; }  // and of the values

  void embed(State& s, const int32_t* tokens);
  void layer_forward(State& s, size_t l);
  void layer_backward(size_t l);
  void attention_backward(size_t l, int64_t R);

  Config config_;
  Ops& ops_;
  Parameter *token_embedding_, *padding_;  // (vocab,D), (D)
  Parameter *qkv_, *relative_, *out_;      // (3D,D), (heads,C), (D,D)
  Parameter *head_, *head_bias_;           // (classes,D), (classes)
  Norm norm_1_, norm_2_;
  Mlp mlp_;
  real embedding_scale_;
  State state_;
  // Of the backward pass. dx is of what a layer made, dlower of what it read.
  Tensor dx_, dlower_;            // (R,D), (N,D)
  Tensor dq_, dkv_, dkv_before_;  // (R,D), (N,2D), (2D)
  Tensor dy_, dscores_;           // (R,D), (R,heads,C)
  Tensor r_, dhidden_;            // (R,D), (R,H)
};

ChunkedGpt::ChunkedGpt(ConfigReader& reader, Ops& ops)
    : config_(reader), ops_(ops), embedding_scale_(numerics::sqrt(static_cast<real>(config_.width))) {
  const Config& c = config_;
  // The authors' code: N(0, 0.02²) for embedding, padding and relative; the rest is its library's default, N(0, 1/inputs).
  // Theirs, of embedding and matrices, are cut off at two deviations, which these are not.
  const auto inputs = [](int n) { return Init::normal(1 / numerics::sqrt(static_cast<real>(n))); };
  const Init small = Init::normal(WEIGHT_DEVIATION);
  const std::string attention = "blocks.0.attention.";
  token_embedding_ = &parameters.add("token_embedding.weight", {c.vocab, c.width}, small);
  padding_ = &parameters.add("padding", {c.width}, small);
  qkv_ = &parameters.add(attention + "qkv.weight", {3 * c.width, c.width}, inputs(c.width));
  relative_ = &parameters.add(attention + "relative", {c.heads, c.chunk}, small);
  out_ = &parameters.add(attention + "out.weight", {c.width, c.width}, inputs(c.width));
  norm_1_ = Norm(parameters, "blocks.0.norm_1", c.width, true);
  mlp_ = Mlp(parameters, "blocks.0.mlp", c.width, c.hidden, Pointwise::RELU, inputs(c.width), inputs(c.hidden));
  norm_2_ = Norm(parameters, "blocks.0.norm_2", c.width, true);
  head_ = &parameters.add("head.weight", {c.classes, c.width}, inputs(c.width));
  head_bias_ = &parameters.add("head.bias", {c.classes}, Init::zeros());
  parameters.allocate(ops);
}

// In training the last of every C vectors asks and C vectors are keys; in a stream, where each position may turn out to be the last
// one, every new position asks, and its keys stand as far apart as those vectors once did.
DilatedShape ChunkedGpt::shape(const State& s, size_t l) const {
  const Piece& p = s.piece;
  const int D = config_.width, C = config_.chunk, heads = config_.heads;
  if (p.stream)
    return {p.batch, p.count, p.first + p.count, p.capacity, heads, D / heads, C, power(C, l), p.first, 1, D, 2 * D};
  const Layer& layer = s.layers[l];
  return {p.batch, made_of(layer), layer.length, layer.length, heads, D / heads, C, 1, first_end(layer), C, D, 2 * D};
}

DilatedInput ChunkedGpt::input(const State& s, const Layer& layer) const {
  const int D = config_.width;
  const real* const kv = s.piece.stream ? layer.cache.data() : layer.kv.data();
  return {layer.q.data(), kv, kv + D, s.kv_before.data(), s.kv_before.data() + D, relative_->value};
}

// ---- Forward ----

void ChunkedGpt::run_layers(State& s, const int32_t* tokens) {
  const Piece& p = s.piece;
  const int D = config_.width;
  const size_t layers = layers_of(p.capacity);
  if (s.layers.size() <= layers) s.layers.resize(layers + 1);
  embed(s, tokens);
  s.kv_before.resize(ops_, {2 * D});
  ops_.linear(s.kv_before.data(), padding_->value, key_weight(), nullptr, 1, D, 2 * D, Into::WRITE);
  for (size_t l = 0; l < layers; ++l) {
    layer_forward(s, l);
    if (p.stream)
      keep_finished(
          ops_, s.finished, s.layers[l + 1].x, l + 1, [this](int n) { return layers_of(n); }, p, D);
    else if (after_layer)
      after_layer(l, s.layers[l + 1].x.data(), s.layers[l + 1].length, D);
  }
  s.read = p.stream ? s.finished.data() : s.layers[layers].x.data();
}

const real* ChunkedGpt::read_out(State& s) {
  const int64_t rows = s.piece.stream ? s.piece.rows() : s.piece.batch;
  s.logits.resize(ops_, {rows, config_.classes});
  ops_.linear(s.logits.data(), s.read, head_->value, head_bias_->value, rows, config_.width, config_.classes,
              Into::WRITE);
  return s.logits.data();
}

void ChunkedGpt::embed(State& s, const int32_t* tokens) {
  const Piece& p = s.piece;
  const int D = config_.width;
  Layer& first = s.layers[0];
  first.length = p.count;
  first.x.resize(ops_, {p.rows(), D});
  ops_.embedding(first.x.data(), token_embedding_->value, nullptr, tokens, 0, p.batch, p.count, D);
  ops_.scale(first.x.data(), first.x.data(), embedding_scale_, p.rows() * D);
}

void ChunkedGpt::layer_forward(State& s, size_t l) {
  const Piece& p = s.piece;
  const int B = p.batch, D = config_.width;
  Layer &layer = s.layers[l], &next = s.layers[l + 1];
  next.length = p.stream ? layer.length : made_of(layer);
  const int64_t N = static_cast<int64_t>(B) * layer.length, R = static_cast<int64_t>(B) * next.length;
  layer.kv.resize(ops_, {N, 2 * D});
  for (Tensor* t : {&layer.q, &layer.y, &next.x}) t->resize(ops_, {R, D});
  layer.weights.resize(ops_, {R, config_.heads, config_.chunk});

  real* const x = next.x.data();
  ops_.linear(layer.kv.data(), layer.x.data(), key_weight(), nullptr, N, D, 2 * D, Into::WRITE);
  if (p.stream) {
    layer.cache.resize(ops_, {B, p.capacity, 2 * D});
    const size_t row = 2 * static_cast<size_t>(D) * sizeof(real);
    ops_.copy(layer.cache.data() + static_cast<int64_t>(p.first) * 2 * D, row * p.capacity, layer.kv.data(),
              row * p.count, row * p.count, static_cast<size_t>(B));
    ops_.copy(x, 0, layer.x.data(), 0, layer.x.bytes(), 1);
  } else {
    ops_.take_rows(x, layer.x.data(), B, layer.length, first_end(layer), config_.chunk, next.length, D);
  }
  ops_.linear(layer.q.data(), x, query_weight(), nullptr, R, D, D, Into::WRITE);
  ops_.dilated_attention(layer.y.data(), layer.weights.data(), input(s, layer), shape(s, l));
  ops_.linear(x, layer.y.data(), out_->value, nullptr, R, D, D, Into::ADD);
  norm_1_.in_place(ops_, layer.norm_1, x, R);
  mlp_.forward(ops_, layer.mlp, x, x, s.hidden, R);
  norm_2_.in_place(ops_, layer.norm_2, x, R);
}

// ---- Backward ----

void ChunkedGpt::backward(const Input& input, const real* dlogits) {
  const int B = input.batch, D = config_.width, V = config_.classes;
  ops_.linear_backward_weight(head_->gradient, head_bias_->gradient, dlogits, state_.read, B, D, V);
  dx_.resize(ops_, {B, D});
  ops_.linear_backward_input(dx_.data(), dlogits, head_->value, B, D, V, Into::WRITE);
  for (size_t l = layers_of(input.length); l-- > 0;) {
    layer_backward(l);
    std::swap(dx_, dlower_);
  }
  ops_.scale(dx_.data(), dx_.data(), embedding_scale_, input.rows() * D);
  ops_.embedding_backward(token_embedding_->gradient, nullptr, dx_.data(), input.tokens, B, input.length, D,
                          config_.vocab);
}

// From dx_, of what the layer made, to dlower_, of what it read.
void ChunkedGpt::layer_backward(size_t l) {
  const int B = state_.piece.batch, D = config_.width;
  const Layer& layer = state_.layers[l];
  const int made = made_of(layer);
  const int64_t N = static_cast<int64_t>(B) * layer.length, R = static_cast<int64_t>(B) * made;
  real* const dx = dx_.data();
  norm_2_.backward(ops_, dx, dx, layer.norm_2, R, Into::WRITE);
  mlp_.backward(ops_, dx, Into::ADD, dx, layer.mlp, norm_1_.output(ops_, layer.norm_1, r_, R), state_.hidden, dhidden_,
                R);
  norm_1_.backward(ops_, dx, dx, layer.norm_1, R, Into::WRITE);
  attention_backward(l, R);

  const int64_t key_rows = int64_t(D) * D;  // of qkv's, behind the queries'
  dlower_.resize(ops_, {N, D});
  ops_.take_rows(r_.data(), layer.x.data(), B, layer.length, first_end(layer), config_.chunk, made, D);
  ops_.linear_backward_weight(qkv_->gradient, nullptr, dq_.data(), r_.data(), R, D, D);
  ops_.linear_backward_weight(qkv_->gradient + key_rows, nullptr, dkv_.data(), layer.x.data(), N, D, 2 * D);
  ops_.linear_backward_weight(qkv_->gradient + key_rows, nullptr, dkv_before_.data(), padding_->value, 1, D, 2 * D);
  ops_.linear_backward_input(padding_->gradient, dkv_before_.data(), key_weight(), 1, D, 2 * D, Into::ADD);
  ops_.linear_backward_input(dx, dq_.data(), query_weight(), R, D, D, Into::ADD);
  ops_.linear_backward_input(dlower_.data(), dkv_.data(), key_weight(), N, D, 2 * D, Into::WRITE);
  ops_.add_to_rows(dlower_.data(), dx, B, layer.length, first_end(layer), config_.chunk, made, D);
}

// dq_, dkv_ and dkv_before_ from dx_, the gradient of x + W_out y
void ChunkedGpt::attention_backward(size_t l, int64_t R) {
  const int D = config_.width, scores = config_.heads * config_.chunk;
  const Layer& layer = state_.layers[l];
  dy_.resize(ops_, {R, D});
  dq_.resize(ops_, {R, D});
  dkv_.resize(ops_, {int64_t(state_.piece.batch) * layer.length, 2 * D});
  dkv_before_.resize(ops_, {2 * D});
  dscores_.resize(ops_, {R, scores});
  ops_.linear_backward_weight(out_->gradient, nullptr, dx_.data(), layer.y.data(), R, D, D);
  ops_.linear_backward_input(dy_.data(), dx_.data(), out_->value, R, D, D, Into::WRITE);
  const DilatedGradient gradient{
      dq_.data(), dkv_.data(), dkv_.data() + D, dkv_before_.data(), dkv_before_.data() + D, dscores_.data()};
  ops_.dilated_attention_backward(gradient, dy_.data(), layer.weights.data(), input(state_, layer), shape(state_, l));
  ops_.add_row_backward(relative_->gradient, dscores_.data(), R, scores);
}

// ---- Decoder ----

// Answers after every token as forward() does for the string so far. The chunks of a string that is one token longer all begin one
// token later, so that none of them has been seen before; but those that end at one position are the same for all strings that
// reach it, and of these a new token adds one for each layer.
class ChunkedDecoder final : public Decoder {
 public:
  ChunkedDecoder(ChunkedGpt& model, int batch, int capacity) : Decoder("regular_gpt", capacity), model_(model) {
    state_.piece = {batch, 0, 0, capacity, true};
  }

 private:
  const real* advance(const int32_t* tokens, int n, bool need_logits) override {
    state_.piece.first = length();
    state_.piece.count = n;
    model_.run_layers(state_, tokens);
    return need_logits ? model_.read_out(state_) : nullptr;
  }

  ChunkedGpt& model_;
  State state_;
};

std::unique_ptr<Decoder> ChunkedGpt::make_decoder(int batch, int capacity) {
  return std::make_unique<ChunkedDecoder>(*this, batch, capacity);
}

}  // namespace regular_gpt

std::unique_ptr<Model> make_regular_gpt(const Json& config, Ops& ops) {
  ConfigReader reader("regular_gpt", config);
  if (reader.choice("form", {"dilated", "chunked"}, "dilated") == "chunked")
    return std::make_unique<regular_gpt::ChunkedGpt>(reader, ops);
  return std::make_unique<TransformerModel<regular_gpt::DilatedAttention>>(reader, ops);
}

}  // namespace petroglyph
