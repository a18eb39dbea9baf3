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
                                     const std::vector<int32_t>& tokens)
    : ops_(ops), classes_(trained.classes()), ids_(ops, {static_cast<int64_t>(tokens.size())}) {
  trained.check_tokens(tokens);
  Json larger = config;
  larger.set("vocab", std::max(static_cast<int64_t>(tokens.size()), int64_t(classes_)));  // targets may be tokens
  if (config.find("tied_head")) larger.set("tied_head", false);  // its gradient must not be added to the positions'
  model_ = make_model(name, larger, ops);
  spread_all(trained, model_->parameters, ops, tokens);
  std::vector<int32_t> own(tokens.size());
  std::iota(own.begin(), own.end(), 0);
  ids_.upload(own);
  input_ = {ids_.data(), 1, static_cast<int>(tokens.size())};
  logits_ = model_->forward(input_);
}

std::vector<real> PositionGradients::logits(int64_t row) const {
  std::vector<real> values(static_cast<size_t>(classes_));
  ops_.download(values.data(), logits_ + row * model_->classes(), values.size() * sizeof(real));
  return values;
}

std::vector<double> PositionGradients::norms(int64_t row, const std::vector<real>& dlogits) {
  logits_ = model_->forward(input_);  // a backward pass uses up the saved activations
  dlogits_.resize(ops_, {rows(), model_->classes()});
  dlogits_.zero();
  ops_.upload(dlogits_.data() + row * model_->classes(), dlogits.data(), dlogits.size() * sizeof(real));
  model_->parameters.zero_gradients();
  model_->backward(input_, dlogits_.data());
  return norms_of(model_->parameters, ops_, static_cast<size_t>(input_.rows()));
}

ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens) {
  PositionGradients gradients(name, config, trained, ops, tokens);
  ReceptiveField field;
  field.norms = gradients.norms(gradients.rows() - 1, std::vector<real>(static_cast<size_t>(trained.classes()), 1));
  const double total = std::accumulate(field.norms.begin(), field.norms.end(), 0.0);
  double sum = 0;
  for (auto norm = field.norms.rbegin(); norm != field.norms.rend(); ++norm) {
    sum += *norm;
    field.cumulative.push_back(total > 0 ? sum / total : 0);
  }
  return field;
}

namespace {

std::vector<real> softmax(std::vector<real> logits) {
  const real largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (real& value : logits) sum += value = numerics::exp(value - largest);
  for (real& value : logits) value = static_cast<real>(value / sum);
  return logits;
}

}  // namespace

TokenMap token_map(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                   const std::vector<int32_t>& tokens) {
  const auto T = static_cast<int64_t>(tokens.size());
  PositionGradients gradients(name, config, trained, ops, tokens);
  if (gradients.rows() < T)
    throw Error("this " + name + " has logits only at the end of its input; a map needs logits at every token");
  TokenMap map{{tokens.begin() + 1, tokens.end()}, {}, {}};
  const std::vector<real> last = gradients.logits(T - 1);
  map.next.push_back(static_cast<int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
  for (int64_t t = 0; t < T; ++t) {
    const auto next = static_cast<size_t>(map.next[static_cast<size_t>(t)]);
    std::vector<real> dlogits = softmax(gradients.logits(t));  // ∂ log p(next)/∂logits = onehot − p
    map.probability.push_back(dlogits[next]);
    for (real& value : dlogits) value = -value;
    dlogits[next] += 1;
    const std::vector<double> norms = gradients.norms(t, dlogits);
    map.norms.insert(map.norms.end(), norms.begin(), norms.end());
  }
  return map;
}

}  // namespace petroglyph
