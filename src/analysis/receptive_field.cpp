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
const char* const COLUMNS = "cell.input.weight";                         // (D,V)
const char *const HEAD = "head.weight", *const HEAD_BIAS = "head.bias";  // (V,D), (V) if the model predicts tokens

bool is_embedding(const Parameter& p) { return p.name == TOKEN_TABLE || p.name == COLUMNS; }
size_t width_of(const Parameter& p) { return static_cast<size_t>(p.shape.at(p.name == COLUMNS ? 0 : 1)); }

// The index of the c-th number of a token's embedding.
size_t index_of(const Parameter& p, size_t token, size_t c) {
  const auto columns = static_cast<size_t>(p.shape.at(1));
  return p.name == COLUMNS ? c * columns + token : token * columns + c;
}

// A parameter of the model with one token for each position.
std::vector<real> spread(const Parameter& from, const Parameter& to, const std::vector<real>& values,
                         const std::vector<int32_t>& tokens) {
  std::vector<real> spread(static_cast<size_t>(to.size()));
  if (is_embedding(to)) {
    for (size_t i = 0; i < tokens.size(); ++i)
      for (size_t c = 0; c < width_of(from); ++c)
        spread[index_of(to, i, c)] = values[index_of(from, static_cast<size_t>(tokens[i]), c)];
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
void spread_all(const Model& trained, Parameters& parameters, bool tied_head, Ops& ops,
                const std::vector<int32_t>& tokens) {
  for (const Parameter& from : trained.parameters.list()) {
    const Parameter* const to = parameters.find(from.name);
    if (!to) throw Error("receptive field: parameter " + from.name + " depends on the vocabulary");
    parameters.upload(*to, spread(from, *to, values_of(from, ops), tokens));
    if (from.name != TOKEN_TABLE || !tied_head) continue;
    const Parameter& head = *parameters.find(HEAD);  // has its own rows here
    parameters.upload(head, spread(from, head, values_of(from, ops), tokens));
  }
}

// The norm of each position's gradient.
std::vector<double> norms_of(Parameters& parameters, Ops& ops, size_t positions) {
  const auto& list = parameters.list();
  const auto found = std::find_if(list.begin(), list.end(), is_embedding);
  if (found == list.end()) throw Error("receptive field: this model reads no tokens");
  std::vector<real> gradient(static_cast<size_t>(found->size()));
  ops.download(gradient.data(), found->gradient, gradient.size() * sizeof(real));
  std::vector<double> norms;
  for (size_t i = 0; i < positions; ++i) {
    double square = 0;
    for (size_t c = 0; c < width_of(*found); ++c) {
      const double g = gradient[index_of(*found, i, c)];
      square += g * g;
    }
    norms.push_back(std::sqrt(square));
  }
  return norms;
}

}  // namespace

ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens) {
  trained.check_tokens(tokens);
  const auto T = static_cast<int64_t>(tokens.size()), V = static_cast<int64_t>(trained.classes());
  Json larger = config;
  larger.set("vocab", std::max(T, V));  // targets may be tokens
  const Json* const tied = config.find("tied_head");
  if (tied) larger.set("tied_head", false);  // its gradient must not be added to the positions'
  const auto model = make_model(name, larger, ops);
  spread_all(trained, model->parameters, tied && tied->boolean(), ops, tokens);
  std::vector<int32_t> own(tokens.size());
  std::iota(own.begin(), own.end(), 0);
  Tokens ids(ops, {T});
  ids.upload(own);
  const Input input{ids.data(), 1, static_cast<int>(T)};
  model->forward(input);
  const int64_t rows = model->logit_rows(input);
  Tensor dlogits(ops, {rows, model->classes()});
  dlogits.zero();
  const std::vector<real> ones(static_cast<size_t>(V), 1);
  ops.upload(dlogits.data() + (rows - 1) * model->classes(), ones.data(), ones.size() * sizeof(real));
  model->parameters.zero_gradients();
  model->backward(input, dlogits.data());

  ReceptiveField field;
  field.norms = norms_of(model->parameters, ops, tokens.size());
  const double total = std::accumulate(field.norms.begin(), field.norms.end(), 0.0);
  double sum = 0;
  for (auto norm = field.norms.rbegin(); norm != field.norms.rend(); ++norm) {
    sum += *norm;
    field.cumulative.push_back(total > 0 ? sum / total : 0);
  }
  return field;
}

}  // namespace petroglyph
