#include "models/parts.h"

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

Activation read_activation(ConfigReader& reader) {
  const std::string name = reader.choice("activation", {"exp", "relu", "elu", "gelu"});
  return name == "exp"    ? Activation::EXP
         : name == "relu" ? Activation::RELU
         : name == "elu"  ? Activation::ELU
                          : Activation::GELU;
}

PreNorm read_pre_norm(ConfigReader& reader) {
  const std::string name = reader.choice("pre_activation_norm", {"exact", "approximate", "none"});
  return name == "exact" ? PreNorm::EXACT : name == "none" ? PreNorm::NONE : PreNorm::APPROXIMATE;
}

void check_length(const std::string& model, int length, int context) {
  if (length > context)
    throw Error(text("%s: a sequence of %d tokens is longer than the context of %d", model.c_str(), length, context));
}

Linear::Linear(Parameters& parameters, const std::string& name, int in, int out, const Init& init, bool has_bias)
    : in(in), out(out), weight(&parameters.add(name + ".weight", {out, in}, init)) {
  if (has_bias) bias = &parameters.add(name + ".bias", {out}, Init::zeros());
}

Linear::Linear(Parameter* weight) : Linear(weight, 0, static_cast<int>(weight->shape[0])) {}

Linear::Linear(Parameter* weight, int first, int rows)
    : in(static_cast<int>(weight->shape[1])), out(rows), weight(weight), first(first) {}

void Linear::forward(Ops& ops, real* y, const real* x, int64_t N, Into into) const {
  ops.linear(y, x, value(), bias ? bias->value : nullptr, N, in, out, into);
}

void Linear::backward(Ops& ops, real* dx, const real* dy, const real* x, int64_t N, Into into) const {
  backward_weight(ops, dy, x, N);
  backward_input(ops, dx, dy, N, into);
}

void Linear::backward_input(Ops& ops, real* dx, const real* dy, int64_t N, Into into) const {
  ops.linear_backward_input(dx, dy, value(), N, in, out, into);
}

void Linear::backward_weight(Ops& ops, const real* dy, const real* x, int64_t N) const {
  ops.linear_backward_weight(weight->gradient + first * in, bias ? bias->gradient : nullptr, dy, x, N, in, out);
}

Norm::Norm(Parameters& parameters, const std::string& name, int width, bool affine, real epsilon)
    : width_(width), epsilon_(epsilon) {
  if (!affine) return;
  weight_ = &parameters.add(name + ".weight", {width}, Init::ones());
  bias_ = &parameters.add(name + ".bias", {width}, Init::zeros());
}

void Norm::normalize(Ops& ops, Saved& saved, real* y, const real* x, int64_t N) const {
  saved.hat.resize(ops, {N, width_});
  saved.inv_std.resize(ops, {N});
  if (weight_)
    ops.layer_norm(y, saved.hat, saved.inv_std, x, weight_->value, bias_->value, epsilon_, N, width_);
  else
    ops.normalize(saved.hat, saved.inv_std, x, N, width_);
}

const real* Norm::forward(Ops& ops, Saved& saved, Tensor& output, const real* x, int64_t N) const {
  if (weight_) output.resize(ops, {N, width_});
  normalize(ops, saved, output, x, N);
  return weight_ ? output.data() : saved.hat.data();
}

void Norm::in_place(Ops& ops, Saved& saved, real* x, int64_t N) const {
  normalize(ops, saved, x, x, N);
  if (!weight_) ops.copy(x, 0, saved.hat, 0, saved.hat.bytes(), 1);
}

const real* Norm::output(Ops& ops, const Saved& saved, Tensor& output, int64_t N) const {
  if (!weight_) return saved.hat.data();
  output.resize(ops, {N, width_});
  ops.layer_norm_output(output, saved.hat, weight_->value, bias_->value, N, width_);
  return output.data();
}

void Norm::backward(Ops& ops, real* dx, const real* dy, const Saved& saved, int64_t N, Into into) const {
  if (weight_)
    ops.layer_norm_backward(dx, weight_->gradient, bias_->gradient, dy, saved.hat, saved.inv_std, weight_->value, N,
                            width_, into);
  else
    ops.normalize_backward(dx, dy, saved.hat, saved.inv_std, N, width_, into);
}

Mlp::Mlp(Parameters& parameters, const std::string& name, int width, int hidden, Pointwise activation, const Init& up,
         const Init& down)
    : activation_(activation),
      up_(parameters, name + ".up", width, hidden, up, true),
      down_(parameters, name + ".down", hidden, width, down, true) {}

void Mlp::forward(Ops& ops, Saved& saved, real* x, const real* r, Tensor& hidden, int64_t N) const {
  saved.up.resize(ops, {N, up_.out});
  hidden.resize(ops, {N, up_.out});
  up_.forward(ops, saved.up, r, N);                           // W_up r + b_up            (N,H)
  ops.pointwise(hidden, saved.up, activation_, N * up_.out);  // f of that                (N,H)
  down_.forward(ops, x, hidden, N, Into::ADD);                // x += W_down … + b_down   (N,D)
}

void Mlp::backward(Ops& ops, real* dr, Into into, const real* dx, const Saved& saved, const real* r, Tensor& hidden,
                   Tensor& dhidden, int64_t N) const {
  hidden.resize(ops, {N, up_.out});
  dhidden.resize(ops, {N, up_.out});
  down_.backward_input(ops, dhidden, dx, N);
  ops.pointwise_backward(dhidden, hidden, dhidden, saved.up, activation_, N * up_.out);  // and f once more
  down_.backward_weight(ops, dx, hidden, N);
  up_.backward(ops, dr, dhidden, r, N, into);
}

PatchEmbedding::PatchEmbedding(Parameters& parameters, const std::string& model, int patches, int patch_size, int width)
    : model_(model),
      patches_(patches),
      linear_(parameters, "patch_embedding", patch_size, width, Init::normal(WEIGHT_DEVIATION)) {
  cls_token_ = &parameters.add("cls_token", {width}, Init::normal(1));
  positions_ = &parameters.add("position_embedding.weight", {patches + 1, width}, Init::normal(1));
}

void PatchEmbedding::forward(Ops& ops, real* x, const Input& input) {
  if (!input.patches) throw Error(model_ + ": reads the patches of images, not tokens");
  if (input.length != patches_)
    throw Error(text("%s: %d patches an image, expected %d", model_.c_str(), input.length, patches_));
  const int D = linear_.out;
  rows_.resize(ops, {input.rows(), D});
  linear_.forward(ops, rows_, input.patches, input.rows());
  ops.append_class_token(x, rows_, cls_token_->value, positions_->value, input.batch, patches_ + 1, D);
}

void PatchEmbedding::backward(Ops& ops, const real* dx, const Input& input) {
  ops.append_class_token_backward(rows_, cls_token_->gradient, positions_->gradient, dx, input.batch, patches_ + 1,
                                  linear_.out);
  linear_.backward_weight(ops, rows_, input.patches, input.rows());
}

void take_last(Ops& ops, Tensor& last, const real* x, int B, int T, int D) {
  const size_t row = static_cast<size_t>(D) * sizeof(real);
  last.resize(ops, {B, D});
  ops.copy(last, row, x + static_cast<int64_t>(T - 1) * D, row * T, row, static_cast<size_t>(B));
}

void put_last(Ops& ops, Tensor& dx, const real* dlast, int B, int T, int D) {
  const size_t row = static_cast<size_t>(D) * sizeof(real);
  dx.resize(ops, {B, T, D});
  dx.zero();
  ops.copy(dx.data() + static_cast<int64_t>(T - 1) * D, row * T, dlast, row, row, static_cast<size_t>(B));
}

EmbeddingConfig::EmbeddingConfig(ConfigReader& reader, const std::vector<std::string>& schemes) {
  if (reader.has("patches")) {
    position = reader.choice("position", {"learned"});
    patches = reader.size("patches");
    patch_size = reader.size("patch_size", 1 << 20);
    context = patches + 1;
    return;
  }
  position = reader.choice("position", schemes);
  vocab = reader.size("vocab");
  context = reader.size("context");
  scale = static_cast<real>(reader.number("embedding_scale", -1e6, 1e6, 1));
  deviation = static_cast<real>(reader.number("embedding_deviation", 0, 1e6, 1));
  norm = reader.boolean("embedding_norm", false);
}

Embedding::Embedding(Parameters& parameters, const std::string& model, const EmbeddingConfig& config, int width,
                     bool affine, real epsilon)
    : model_(model), config_(config), width_(width) {
  const EmbeddingConfig& c = config;
  const Init init = Init::normal(c.deviation);
  if (c.images())
    patches_ = PatchEmbedding(parameters, model, c.patches, c.patch_size, width);
  else
    tokens_ = &parameters.add("token_embedding.weight", {c.vocab, width}, init);
  if (c.learns_positions()) positions_ = &parameters.add("position_embedding.weight", {c.context, width}, init);
  if (c.norm) norm_ = Norm(parameters, "embedding_norm", width, affine, epsilon);
}

void Embedding::check_length(int length) const {
  if (config_.learns_positions()) petroglyph::check_length(model_, length, config_.context);
}

void Embedding::forward(Ops& ops, Saved& saved, real* x, const Input& input, int first, int n, int capacity) {
  const int B = input.batch, D = width_;
  const int64_t N = static_cast<int64_t>(B) * n;
  if (config_.images()) {
    patches_.forward(ops, x, input);
  } else {
    ops.embedding(x, tokens_->value, nullptr, input.tokens_for(model_), first, B, n, D);
    if (config_.scale != 1) ops.scale(x, x, config_.scale, N * D);
    if (positions_) ops.add_positions(x, positions_->value, first, B, n, D);
    if (config_.position == "sinusoidal") ops.add_positions(x, sinusoids_.table(ops, capacity, D), first, B, n, D);
  }
  if (config_.norm) norm_.in_place(ops, saved, x, N);
}

void Embedding::backward(Ops& ops, const Saved& saved, real* dx, const Input& input, int n) {
  const int B = input.batch, D = width_;
  const int64_t N = static_cast<int64_t>(B) * n;
  if (config_.norm) norm_.backward(ops, dx, dx, saved, N, Into::WRITE);
  if (config_.images()) {
    patches_.backward(ops, dx, input);
  } else {
    if (positions_) ops.add_positions_backward(positions_->gradient, dx, B, n, D);
    if (config_.scale != 1) ops.scale(dx, dx, config_.scale, N * D);
    ops.embedding_backward(tokens_->gradient, nullptr, dx, input.tokens, B, n, D, config_.vocab);
  }
}

ReadoutConfig read_readout(ConfigReader& reader, const EmbeddingConfig& embedding) {
  const bool images = embedding.images();
  const std::vector<std::string> readouts = {"all", "last"};
  ReadoutConfig c;
  c.last = reader.choice("readout", images ? std::vector<std::string>{"last"} : readouts) == "last";
  c.bias = reader.boolean("head_bias", false);
  c.classes = static_cast<int>(
      reader.integer("classes", 1, 1 << 24, images ? std::nullopt : std::optional<int64_t>(embedding.vocab)));
  c.tied = !images && reader.boolean("tied_head", false);
  if (c.tied && c.classes != embedding.vocab)
    reader.fail(text("tied_head: classes is %d, vocab %d, and one table serves both", c.classes, embedding.vocab));
  return c;
}

Readout::Readout(Parameters& parameters, const ReadoutConfig& config, int width, bool normalized, bool affine,
                 real epsilon, Parameter* tokens)
    : config_(config), normalized_(normalized) {
  const int V = config.classes;
  if (normalized) norm_ = Norm(parameters, "final_norm", width, affine, epsilon);
  head_ = config.tied ? Linear(tokens) : Linear(parameters, "head", width, V, Init::normal(WEIGHT_DEVIATION));
  if (config.bias) head_.bias = &parameters.add("head.bias", {V}, Init::zeros());
}

const real* Readout::forward(Ops& ops, Saved& saved, const real* x, int B, int n, Mode mode) const {
  const bool last = config_.last && mode == Mode::TRAINING;
  const int64_t R = static_cast<int64_t>(B) * (last ? 1 : n);
  if (last) take_last(ops, saved.last, x, B, n, head_.in);
  if (last) x = saved.last.data();
  if (normalized_) x = norm_.forward(ops, saved.norm, saved.normed, x, R);
  saved.logits.resize(ops, {R, head_.out});
  head_.forward(ops, saved.logits, x, R);
  return saved.logits;
}

void Readout::backward(Ops& ops, Tensor& dx, Saved& saved, const real* dlogits, const real* x, int B, int n) {
  const int64_t R = static_cast<int64_t>(B) * (config_.last ? 1 : n);
  const int D = head_.in;
  dx.resize(ops, {B, n, D});
  if (config_.last) dlast_.resize(ops, {R, D});
  real* const dread = config_.last ? dlast_.data() : dx.data();  // of the rows that are read out
  if (config_.last) x = saved.last.data();
  if (normalized_) x = norm_.output(ops, saved.norm, saved.normed, R);
  head_.backward(ops, dread, dlogits, x, R);
  if (normalized_) norm_.backward(ops, dread, dread, saved.norm, R, Into::WRITE);
  if (config_.last) put_last(ops, dx, dread, B, n, D);
}

}  // namespace petroglyph
