#include "models/embedding.h"

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

EmbeddingConfig::EmbeddingConfig(ConfigReader& reader, const std::vector<std::string>& schemes) {
  if (reader.has("patches")) {
    position = reader.choice("position", {"learned"});
    patches = static_cast<int>(reader.integer("patches", 1, 1 << 24));
    patch_size = static_cast<int>(reader.integer("patch_size", 1, 1 << 20));
    context = patches + 1;
    return;
  }
  position = reader.choice("position", schemes);
  vocab = static_cast<int>(reader.integer("vocab", 1, 1 << 24));
  context = static_cast<int>(reader.integer("context", 1, 1 << 24));
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
    const bool scaled = config_.scale != 1;
    const real* const positions =
        config_.position == "sinusoidal" ? sinusoids_.table(ops, capacity, D) : value_or_null(positions_);
    ops.embedding(x, tokens_->value, scaled ? nullptr : positions, input.tokens_for(model_), first, B, n, D);
    if (scaled) ops.scale(x, x, config_.scale, N * D);
    if (scaled && positions) ops.add_positions(x, positions, first, B, n, D);
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
    const bool scaled = config_.scale != 1;
    real* const dpositions = gradient_or_null(positions_);
    if (scaled && dpositions) ops.add_positions_backward(dpositions, dx, B, n, D);
    if (scaled) ops.scale(dx, dx, config_.scale, N * D);
    ops.embedding_backward(tokens_->gradient, scaled ? nullptr : dpositions, dx, input.tokens, B, n, D, config_.vocab);
  }
}

ReadoutConfig::ReadoutConfig(ConfigReader& reader, const EmbeddingConfig& embedding) {
  const bool images = embedding.images();
  const std::vector<std::string> readouts = {"all", "last"};
  last = reader.choice("readout", images ? std::vector<std::string>{"last"} : readouts) == "last";
  bias = reader.boolean("head_bias", false);
  if (images) {
    classes = static_cast<int>(reader.integer("classes", 1, 1 << 24));
    return;
  }
  classes = static_cast<int>(reader.integer("classes", 1, 1 << 24, embedding.vocab));
  tied = reader.boolean("tied_head", false);
  if (tied && classes != embedding.vocab)
    reader.fail(text("tied_head: classes is %d, vocab %d, and one table serves both", classes, embedding.vocab));
}

Readout::Readout(Parameters& parameters, const ReadoutConfig& config, int width, bool normalized, bool affine,
                 real epsilon, Parameter* tokens)
    : config_(config), width_(width), normalized_(normalized) {
  const int V = config.classes;
  if (normalized) norm_ = Norm(parameters, "final_norm", width, affine, epsilon);
  head_ = config.tied ? tokens : &parameters.add("head.weight", {V, width}, Init::normal(WEIGHT_DEVIATION));
  if (config.bias) bias_ = &parameters.add("head.bias", {V}, Init::zeros());
}

const real* Readout::forward(Ops& ops, Saved& saved, const real* x, int B, int n, Mode mode) const {
  const bool last = config_.last && mode == Mode::TRAINING;
  const int64_t R = static_cast<int64_t>(B) * (last ? 1 : n);
  const int D = width_, V = config_.classes;
  if (last) take_last(ops, saved.last, x, B, n, D);
  if (last) x = saved.last.data();
  if (normalized_) x = norm_.forward(ops, saved.norm, saved.normed, x, R);
  saved.logits.resize(ops, {R, V});
  ops.linear(saved.logits.data(), x, head_->value, value_or_null(bias_), R, D, V, Into::WRITE);
  return saved.logits.data();
}

void Readout::backward(Ops& ops, Tensor& dx, Saved& saved, const real* dlogits, const real* x, int B, int n) {
  const int64_t R = static_cast<int64_t>(B) * (config_.last ? 1 : n);
  const int D = width_, V = config_.classes;
  dx.resize(ops, {B, n, D});
  if (config_.last) dlast_.resize(ops, {R, D});
  real* const dread = config_.last ? dlast_.data() : dx.data();  // of the rows that are read out
  if (config_.last) x = saved.last.data();
  if (normalized_) x = norm_.output(ops, saved.norm, saved.normed, R);
  ops.linear_backward_weight(head_->gradient, gradient_or_null(bias_), dlogits, x, R, D, V);
  ops.linear_backward_input(dread, dlogits, head_->value, R, D, V, Into::WRITE);
  if (normalized_) norm_.backward(ops, dread, dread, saved.norm, R, Into::WRITE);
  if (config_.last) put_last(ops, dx, dread, B, n, D);
}

}  // namespace petroglyph
