#include "models/relation_stack.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "models/parts.h"

namespace petroglyph {

Activation read_activation(ConfigReader& reader) {
  const std::string name = reader.choice("activation", {"exp", "relu", "elu", "gelu"});
  return name == "exp"    ? Activation::EXP
         : name == "relu" ? Activation::RELU
         : name == "elu"  ? Activation::ELU
                          : Activation::GELU;
}

RelationConfig::RelationConfig(ConfigReader& reader, const std::vector<std::string>& inner_norms, bool is_causal)
    : width(static_cast<int>(reader.integer("width", 1, 1 << 16))),
      hidden(static_cast<int>(reader.integer("hidden", 1, 1 << 16))),
      layers(static_cast<int>(reader.integer("layers", 1, 1 << 10))),
      heads(static_cast<int>(reader.integer("heads", 1, hidden))),
      post_reduction_norm(reader.boolean("post_reduction_norm")),
      causal(is_causal) {
  const std::string norm = reader.choice("pre_activation_norm", inner_norms);
  inner_norm = norm == "exact" ? InnerNorm::EXACT : norm == "none" ? InnerNorm::NONE : InnerNorm::APPROXIMATE;
  if (inner_norm != InnerNorm::EXACT) heads = 1;  // only the exact inner norm knows heads
  if (hidden % heads != 0) reader.fail(text("heads %d does not divide hidden %d", heads, hidden));
}

// ---- The stack ----------------------------------------------------------------------------------------------------

void RelationStack::declare(Parameters& parameters) {
  const int D = config_.width, H = config_.hidden;
  for (int l = 0; l < config_.layers; ++l) {
    const std::string name = "blocks." + std::to_string(l) + ".";
    Block b;
    b.left = &parameters.add(name + "left.weight", {H, D}, Init::normal(WEIGHT_DEVIATION));
    b.right = &parameters.add(name + "right.weight", {H, D}, Init::normal(WEIGHT_DEVIATION));
    b.right_bias = &parameters.add(name + "right.bias", {H}, Init::zeros());
    b.out = &parameters.add(name + "out.weight", {D, H}, Init::normal(output_deviation(config_.layers)));
    b.out_bias = &parameters.add(name + "out.bias", {D}, Init::zeros());
    blocks_.push_back(b);
  }
}

void RelationStack::start(State& state, int batch, int capacity) const {
  if (!state.sums || state.batch != batch || state.capacity != capacity)
    state.sums = make_sums_(config_, ops_, batch, capacity);
  state.batch = batch;
  state.capacity = capacity;
  state.length = 0;
}

void RelationStack::forward(State& state, int n) {
  const bool whole = n == state.capacity;  // otherwise a stream: temporaries serve all blocks in turn
  state.blocks.resize(whole ? blocks_.size() : 1);
  for (int l = 0; l < config_.layers; ++l) block_forward(l, state.blocks[whole ? static_cast<size_t>(l) : 0], state, n);
  state.length += n;
}

// state.x += the block's output
void RelationStack::block_forward(int number, Activations& a, State& state, int n) {
  const Block& block = blocks_[static_cast<size_t>(number)];
  const int D = config_.width, H = config_.hidden;
  const int64_t N = static_cast<int64_t>(state.batch) * n;
  a.r.resize(ops_, {N, D});
  a.r_inv_std.resize(ops_, {N});
  a.p.resize(ops_, {N, H});
  a.q.resize(ops_, {N, H});
  a.y.resize(ops_, {N, H});
  a.y_inv_std.resize(ops_, {N});
  real *const x = state.x.data(), *const r = a.r.data(), *const p = a.p.data(), *const q = a.q.data(),
              *const y = a.y.data();

  ops_.normalize(r, a.r_inv_std.data(), x, N, D);
  ops_.linear(p, r, block.left->value, nullptr, N, D, H, Into::WRITE);
  ops_.linear(q, r, block.right->value, block.right_bias->value, N, D, H, Into::WRITE);
  if (config_.inner_norm == InnerNorm::APPROXIMATE) {
    a.p_inv_std.resize(ops_, {N});
    a.q_inv_std.resize(ops_, {N});
    ops_.normalize(p, a.p_inv_std.data(), p, N, H);
    ops_.normalize(q, a.q_inv_std.data(), q, N, H);
  }
  state.sums->forward(number, y, p, q, state.length, n);
  if (config_.post_reduction_norm) ops_.normalize(y, a.y_inv_std.data(), y, N, H);
  ops_.linear(x, y, block.out->value, block.out_bias->value, N, H, D, Into::ADD);
}

void RelationStack::backward(State& state, real* dx) {
  const int64_t N = static_cast<int64_t>(state.batch) * state.length;
  dr_.resize(ops_, {N, config_.width});
  dp_.resize(ops_, {N, config_.hidden});
  dq_.resize(ops_, {N, config_.hidden});
  dz_.resize(ops_, {N, config_.hidden});
  for (int l = config_.layers - 1; l >= 0; --l) block_backward(l, state, dx);
}

// dx is the gradient of the block's output when it comes and of its input when it goes.
void RelationStack::block_backward(int number, State& state, real* dx) {
  const Block& block = blocks_[static_cast<size_t>(number)];
  const Activations& a = state.blocks[static_cast<size_t>(number)];
  const int D = config_.width, H = config_.hidden;
  const int64_t N = static_cast<int64_t>(state.batch) * state.length;
  const real *p = a.p.data(), *q = a.q.data(), *y = a.y.data(), *r = a.r.data();
  real *dz = dz_.data(), *dp = dp_.data(), *dq = dq_.data(), *dr = dr_.data();

  ops_.linear_backward_weight(block.out->gradient, block.out_bias->gradient, dx, y, N, H, D);
  ops_.linear_backward_input(dz, dx, block.out->value, N, H, D, Into::WRITE);
  if (config_.post_reduction_norm) ops_.normalize_backward(dz, dz, y, a.y_inv_std.data(), N, H, Into::WRITE);
  state.sums->backward(number, dp, dq, dz, p, q);
  if (config_.inner_norm == InnerNorm::APPROXIMATE) {
    ops_.normalize_backward(dp, dp, p, a.p_inv_std.data(), N, H, Into::WRITE);
    ops_.normalize_backward(dq, dq, q, a.q_inv_std.data(), N, H, Into::WRITE);
  }
  ops_.linear_backward_weight(block.left->gradient, nullptr, dp, r, N, D, H);
  ops_.linear_backward_weight(block.right->gradient, block.right_bias->gradient, dq, r, N, D, H);
  ops_.linear_backward_input(dr, dp, block.left->value, N, D, H, Into::WRITE);
  ops_.linear_backward_input(dr, dq, block.right->value, N, D, H, Into::ADD);
  ops_.normalize_backward(dx, dr, r, a.r_inv_std.data(), N, D, Into::ADD);
}

// ---- Maps -----------------------------------------------------------------------------------------------------------

namespace {

// Both in 16 lanes, which compilers turn into vectors: an order of this file, since a map reaches no weight.
constexpr int LANES = 16;

template <class F>
real sum(int n, F f) {
  real lanes[LANES] = {}, total = 0;
  for (int c = 0; c < n; c += LANES)
    for (int l = 0; l < std::min(LANES, n - c); ++l) lanes[l] += f(c + l);
  for (const real lane : lanes) total += lane;
  return total;
}

template <class F>
real largest(int n, F f) {
  real lanes[LANES];
  for (real& lane : lanes) lane = f(0);
  for (int c = 0; c < n; c += LANES)
    for (int l = 0; l < std::min(LANES, n - c); ++l) lanes[l] = numerics::max(lanes[l], f(c + l));
  return *std::max_element(lanes, lanes + LANES);
}

}  // namespace

// p and q are here as the sums left them: normalized ("approximate") or centered ("exact"). No exponent is above 0: of
// each pair its largest channel, top_i, is taken off and comes back as exp(top_i − highest); highest, the same for all i, goes
// out in the division by their sum.
std::vector<real> RelationStack::map(const State& state, size_t block, int sample) const {
  const int T = state.length, H = config_.hidden, width = H / config_.heads;
  const size_t row = static_cast<size_t>(H);
  std::vector<real> p(static_cast<size_t>(T) * row), q(p.size()), d(row), map(static_cast<size_t>(T) * T), top(T);
  const int64_t first = static_cast<int64_t>(sample) * T * H;
  ops_.download(p.data(), state.blocks.at(block).p.data() + first, p.size() * sizeof(real));
  ops_.download(q.data(), state.blocks.at(block).q.data() + first, q.size() * sizeof(real));
  for (int j = 0; j < T; ++j) {
    real* const strength = &map[static_cast<size_t>(j) * T];
    const int seen = config_.causal ? j + 1 : T;
    real highest = 0, total = 0;
    for (int i = 0; i < seen; ++i) {
      for (size_t c = 0; c < row; ++c) d[c] = p[static_cast<size_t>(i) * row + c] + q[static_cast<size_t>(j) * row + c];
      for (int h = 0; config_.inner_norm == InnerNorm::EXACT && h < config_.heads; ++h) {
        real* const head = &d[static_cast<size_t>(h) * width];
        const real square = sum(width, [&](int c) { return head[c] * head[c]; });
        const real variance = square / static_cast<real>(width);
        const real inv_std = variance > 0 ? 1 / numerics::sqrt(variance) : 0;
        for (int c = 0; c < width; ++c) head[c] *= inv_std;
      }
      top[i] = largest(H, [&](int c) { return d[c]; });
      strength[i] = numerics::sqrt(sum(H, [&](int c) { return numerics::exp(2 * (d[c] - top[i])); }));
      highest = i == 0 ? top[i] : numerics::max(highest, top[i]);
    }
    for (int i = 0; i < seen; ++i) total += strength[i] *= numerics::exp(top[i] - highest);
    for (int i = 0; i < seen; ++i) strength[i] /= total;
  }
  return map;
}

// ---- Reading tokens -----------------------------------------------------------------------------------------------

namespace {

class RelationLanguageModel final : public Model {
 public:
  RelationLanguageModel(ConfigReader& reader, const RelationConfig& config, Ops& ops, MakePairSums make_sums)
      : name_(reader.owner()),
        width_(config.width),
        causal_(config.causal),
        vocab_(static_cast<int>(reader.integer("vocab", 1, 1 << 24))),
        context_(static_cast<int>(reader.integer("context", 1, 1 << 24))),
        ops_(ops),
        stack_(config, ops, std::move(make_sums)) {
    reader.finish();
    token_embedding_ = &parameters.add("token_embedding.weight", {vocab_, width_}, Init::normal(1));
    position_embedding_ = &parameters.add("position_embedding.weight", {context_, width_}, Init::normal(1));
    stack_.declare(parameters);
    head_ = &parameters.add("head.weight", {vocab_, width_}, Init::normal(WEIGHT_DEVIATION));
    parameters.allocate(ops);
  }

  struct State {
    RelationStack::State stack;
    Tensor y, y_inv_std, logits;  // (N,D), (N), (N,V)
  };

  int classes() const override { return vocab_; }
  const std::string& name() const { return name_; }

  const real* forward(const Input& input) override {
    if (input.length > context_)
      throw Error(
          text("%s: a sequence of %d tokens is longer than the context of %d", name_.c_str(), input.length, context_));
    stack_.start(state_.stack, input.batch, input.length);
    run_blocks(state_, input.tokens_for(name_), input.length);
    return read_out(state_, input.length);
  }
  void backward(const Input& input, const real* dlogits) override;
  int longest() const override { return context_; }
  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override;

  // Appends n tokens to each of the batch's sequences.
  void run_blocks(State& s, const int32_t* tokens, int n);
  // Their logits (B,n,V).
  const real* read_out(State& s, int n);

 private:
  std::string name_;
  int width_;
  bool causal_;
  int vocab_;    // V
  int context_;  // rows of the position embedding: the longest sequence
  Ops& ops_;
  RelationStack stack_;
  Parameter *token_embedding_, *position_embedding_, *head_;  // (V,D), (context,D), (V,D)
  State state_;
  Tensor dx_;  // (N,D)
};

void RelationLanguageModel::run_blocks(State& s, const int32_t* tokens, int n) {
  Tensor& x = s.stack.x;
  x.resize(ops_, {static_cast<int64_t>(s.stack.batch) * n, width_});
  ops_.embedding(x.data(), token_embedding_->value, position_embedding_->value, tokens, s.stack.length, s.stack.batch,
                 n, width_);
  stack_.forward(s.stack, n);
}

const real* RelationLanguageModel::read_out(State& s, int n) {
  const int64_t N = static_cast<int64_t>(s.stack.batch) * n;
  s.y.resize(ops_, {N, width_});
  s.y_inv_std.resize(ops_, {N});
  s.logits.resize(ops_, {N, vocab_});
  ops_.normalize(s.y.data(), s.y_inv_std.data(), s.stack.x.data(), N, width_);
  ops_.linear(s.logits.data(), s.y.data(), head_->value, nullptr, N, width_, vocab_, Into::WRITE);
  return s.logits.data();
}

void RelationLanguageModel::backward(const Input& input, const real* dlogits) {
  const int64_t N = input.rows();
  dx_.resize(ops_, {N, width_});
  real *dx = dx_.data(), *y = state_.y.data();
  ops_.linear_backward_weight(head_->gradient, nullptr, dlogits, y, N, width_, vocab_);
  ops_.linear_backward_input(dx, dlogits, head_->value, N, width_, vocab_, Into::WRITE);
  ops_.normalize_backward(dx, dx, y, state_.y_inv_std.data(), N, width_, Into::WRITE);
  stack_.backward(state_.stack, dx);
  ops_.embedding_backward(token_embedding_->gradient, position_embedding_->gradient, dx, input.tokens, input.batch,
                          input.length, width_, vocab_);
}

class RelationDecoder final : public Decoder {
 public:
  RelationDecoder(RelationLanguageModel& model, const RelationStack& stack, int batch, int capacity)
      : Decoder(model.name(), capacity), model_(model) {
    stack.start(state_.stack, batch, capacity);
  }

 private:
  const real* advance(const int32_t* tokens, int n, bool need_logits) override {
    model_.run_blocks(state_, tokens, n);
    return need_logits ? model_.read_out(state_, n) : nullptr;
  }

  RelationLanguageModel& model_;
  RelationLanguageModel::State state_;
};

std::unique_ptr<Decoder> RelationLanguageModel::make_decoder(int batch, int capacity) {
  if (!causal_) throw Error(name_ + ": a bidirectional model cannot read one token at a time");
  if (capacity > context_)
    throw Error(text("%s: a decoder of %d tokens is longer than the context of %d", name_.c_str(), capacity, context_));
  return std::make_unique<RelationDecoder>(*this, stack_, batch, capacity);
}

}  // namespace

std::unique_ptr<Model> make_relation_language_model(ConfigReader& reader, const RelationConfig& config, Ops& ops,
                                                    MakePairSums make_sums) {
  return std::make_unique<RelationLanguageModel>(reader, config, ops, std::move(make_sums));
}

}  // namespace petroglyph
