// If a token occurs at two positions, both share one embedding, whose gradient is the sum over both. To separate
// them, the gradients are computed with a model that has the same weights and a larger vocabulary. In it, every
// position of every sequence has its own token.

#include "analysis/receptive_field.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

const char* const TOKEN_TABLE = "token_embedding.weight";                // (V,D)
const char* const COLUMNS = "cell.input.weight";                         // (R,V)
const char *const HEAD = "head.weight", *const HEAD_BIAS = "head.bias";  // (V,D), (V) if the model predicts tokens

// A parameter of the model with one token for each position.
std::vector<real> spread(const Parameter& from, const Parameter& to, const std::vector<real>& values,
                         const std::vector<int32_t>& tokens) {
  std::vector<real> spread(static_cast<size_t>(to.size()));
  if (to.name == TOKEN_TABLE) {
    const size_t width = static_cast<size_t>(from.shape.at(1));
    for (size_t i = 0; i < tokens.size(); ++i)
      for (size_t c = 0; c < width; ++c) spread[i * width + c] = values[static_cast<size_t>(tokens[i]) * width + c];
  } else if (to.name == COLUMNS) {
    const size_t rows = static_cast<size_t>(to.shape.at(0)), vocab = static_cast<size_t>(to.shape.at(1));
    const size_t before = static_cast<size_t>(from.shape.at(1));
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < tokens.size(); ++i)
        spread[r * vocab + i] = values[r * before + static_cast<size_t>(tokens[i])];
  } else if (from.shape == to.shape || to.name == HEAD || to.name == HEAD_BIAS) {
    std::copy_n(values.begin(), std::min(values.size(), spread.size()), spread.begin());
  } else {
    throw Error(text("receptive field: parameter %s depends on the vocabulary", to.name.c_str()));
  }
  return spread;
}

std::vector<real> values_of(const Parameter& parameter, Ops& ops) {
  std::vector<real> values(static_cast<size_t>(parameter.size()));
  ops.download(values.data(), parameter.value, values.size() * sizeof(real));
  return values;
}

// Copies one parameter at a time, so that only one parameter exists twice in memory.
void spread_all(const Model& trained, Parameters& parameters, Ops& ops, const std::vector<int32_t>& tokens) {
  const Parameter *table = nullptr, *head = nullptr;
  for (const Parameter& from : trained.parameters.list()) {
    const Parameter* to = parameters.find(from.name);
    if (!to) throw Error("receptive field: parameter " + from.name + " depends on the vocabulary");
    parameters.upload(*to, spread(from, *to, values_of(from, ops), tokens));
    if (from.name == TOKEN_TABLE) table = &from;
    if (from.name == HEAD) head = &from;
  }
  // A head that was tied to the embedding has its own rows here.
  const Parameter* own = parameters.find(HEAD);
  if (own && !head && table) parameters.upload(*own, values_of(*table, ops));
}

// The norm of each position's gradient.
std::vector<double> norms_of(Parameters& parameters, Ops& ops, size_t positions) {
  const Parameter* table = parameters.find(TOKEN_TABLE);
  const Parameter* found = table ? table : parameters.find(COLUMNS);
  if (!found) throw Error("receptive field: this model reads no tokens");
  std::vector<real> gradient(static_cast<size_t>(found->size()));
  ops.download(gradient.data(), found->gradient, gradient.size() * sizeof(real));
  const size_t vocab = static_cast<size_t>(found->shape.at(table ? 0 : 1)),
               width = static_cast<size_t>(found->size()) / vocab;
  std::vector<double> norms;
  for (size_t i = 0; i < positions; ++i) {
    double square = 0;
    for (size_t c = 0; c < width; ++c) {
      const double g = gradient[table ? i * width + c : c * vocab + i];
      square += g * g;
    }
    norms.push_back(std::sqrt(square));
  }
  return norms;
}

}  // namespace

PositionGradients::PositionGradients(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                                     const std::vector<int32_t>& tokens, int batch, int length)
    : ops_(ops), classes_(trained.classes()), ids_(ops, {batch, length}) {
  trained.check_tokens(tokens);
  Json larger = config;
  larger.set("vocab", std::max(static_cast<int64_t>(tokens.size()), int64_t(classes_)));  // targets may be tokens
  if (config.find("tied_head")) larger.set("tied_head", false);  // its gradient must not be added to the positions'
  model_ = make_model(name, larger, ops);
  spread_all(trained, model_->parameters, ops, tokens);
  std::vector<int32_t> own(tokens.size());
  std::iota(own.begin(), own.end(), 0);
  ids_.upload(own);
  input_ = {ids_.data(), batch, length};
  logits_ = model_->forward(input_);
}

std::vector<real> PositionGradients::logits(int64_t row) const {
  std::vector<real> values(static_cast<size_t>(classes_));
  ops_.download(values.data(), logits_ + row * model_->classes(), values.size() * sizeof(real));
  return values;
}

std::vector<double> PositionGradients::norms(const std::vector<Answer>& answers) {
  if (used_) logits_ = model_->forward(input_);
  used_ = true;
  dlogits_.resize(ops_, {rows(), model_->classes()});
  dlogits_.zero();
  for (const Answer& answer : answers)
    ops_.upload(dlogits_.data() + answer.row * model_->classes(), answer.dlogits.data(),
                answer.dlogits.size() * sizeof(real));
  model_->parameters.zero_gradients();
  model_->backward(input_, dlogits_.data());
  return norms_of(model_->parameters, ops_, static_cast<size_t>(input_.rows()));
}

ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens, int batch, int length) {
  PositionGradients gradients(name, config, trained, ops, tokens, batch, length);
  const int64_t a_sample = gradients.rows() / batch;
  std::vector<PositionGradients::Answer> answers;
  for (int b = 0; b < batch; ++b)
    answers.push_back({(b + 1) * a_sample - 1, std::vector<real>(static_cast<size_t>(trained.classes()), 1)});
  ReceptiveField field;
  field.norms = gradients.norms(answers);
  for (int b = 0; b < batch; ++b) {
    const double* g = &field.norms[static_cast<size_t>(b) * length];
    double total = 0, sum = 0;
    for (int i = 0; i < length; ++i) total += g[i];
    for (int j = 0; j < length; ++j) {
      sum += g[length - 1 - j];
      field.cumulative.push_back(total > 0 ? sum / total : 0);
    }
  }
  return field;
}

}  // namespace petroglyph
