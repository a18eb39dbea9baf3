// A token that stands at two positions has one embedding, and its gradient is their sum. So the gradients are taken from a model with
// the same weights and a larger vocabulary, in which every position of every sequence has a token of its own.

#include "analysis/receptive_field.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

const char* const TABLE = "token_embedding.weight";  // (V,D)
const char* const COLUMNS = "cell.input.weight";     // (R,V)
const char* const HEAD = "head.weight";              // (V,D) where the answers are tokens

// A parameter of the model whose tokens are positions.
std::vector<real> spread(const Parameter& from, const Parameter& to, const std::vector<real>& values,
                         const std::vector<int32_t>& tokens) {
  std::vector<real> spread(static_cast<size_t>(to.size()));
  if (to.name == TABLE) {
    const size_t width = static_cast<size_t>(from.shape.at(1));
    for (size_t i = 0; i < tokens.size(); ++i)
      for (size_t c = 0; c < width; ++c) spread[i * width + c] = values[static_cast<size_t>(tokens[i]) * width + c];
  } else if (to.name == COLUMNS) {
    const size_t rows = static_cast<size_t>(to.shape.at(0)), vocab = static_cast<size_t>(to.shape.at(1));
    const size_t before = static_cast<size_t>(from.shape.at(1));
    for (size_t r = 0; r < rows; ++r)
      for (size_t i = 0; i < tokens.size(); ++i)
        spread[r * vocab + i] = values[r * before + static_cast<size_t>(tokens[i])];
  } else if (from.shape == to.shape || to.name == HEAD) {
    std::copy_n(values.begin(), std::min(values.size(), spread.size()), spread.begin());
  } else {
    throw Error(text("receptive field: parameter %s depends on the vocabulary", to.name.c_str()));
  }
  return spread;
}

// All values at their places in `parameters`.
std::vector<real> spread_all(const Model& trained, Parameters& parameters, const std::vector<int32_t>& tokens) {
  const std::vector<real> all = trained.parameters.values().download();
  std::vector<real> result(static_cast<size_t>(parameters.room()));
  for (const Parameter& from : trained.parameters.list()) {
    const Parameter* to = parameters.find(from.name);
    if (!to) throw Error("receptive field: parameter " + from.name + " depends on the vocabulary");
    const std::vector<real> values(all.begin() + from.begin, all.begin() + from.begin + from.size());
    const std::vector<real> moved = spread(from, *to, values, tokens);
    std::copy(moved.begin(), moved.end(), result.begin() + to->begin);
  }
  // A head that shared the table has rows of its own here.
  const auto& before = trained.parameters.list();
  const auto named = [&](const char* name) {
    return std::find_if(before.begin(), before.end(), [&](const Parameter& p) { return p.name == name; });
  };
  if (const Parameter* head = parameters.find(HEAD); head && named(HEAD) == before.end())
    std::copy_n(all.begin() + named(TABLE)->begin, named(TABLE)->size(), result.begin() + head->begin);
  return result;
}

// The norm of each position's gradient.
std::vector<double> norms_of(Parameters& parameters, size_t positions) {
  const Parameter* table = parameters.find(TABLE);
  const Parameter* found = table ? table : parameters.find(COLUMNS);
  if (!found) throw Error("receptive field: this model reads no tokens");
  const std::vector<real> all = parameters.gradients().download();
  const real* gradient = all.data() + found->begin;
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

ReceptiveField receptive_field(const std::string& name, const Json& config, const Model& trained, Ops& ops,
                               const std::vector<int32_t>& tokens, int batch, int length) {
  trained.check_tokens(tokens);
  Json larger = config;
  larger.set("vocab",
             std::max(static_cast<int64_t>(tokens.size()), int64_t(trained.classes())));  // answers may be tokens
  if (config.find("tied_head")) larger.set("tied_head", false);  // its gradient is not what a position gave
  const auto model = make_model(name, larger, ops);
  model->parameters.upload_all(spread_all(trained, model->parameters, tokens));

  std::vector<int32_t> own(tokens.size());
  for (size_t i = 0; i < own.size(); ++i) own[i] = static_cast<int32_t>(i);
  Tokens ids(ops, {batch, length});
  ids.upload(own);
  const Input input{ids.data(), batch, length};
  model->forward(input);
  const int64_t rows = model->logit_rows(input), classes = model->classes(), a_sample = rows / batch;
  std::vector<real> cotangent(static_cast<size_t>(rows * classes));
  for (int64_t b = 0; b < batch; ++b)
    std::fill_n(cotangent.begin() + ((b + 1) * a_sample - 1) * classes, trained.classes(), real(1));
  Tensor dlogits(ops, {rows, classes});
  dlogits.upload(cotangent);
  model->parameters.zero_gradients();
  model->backward(input, dlogits.data());

  ReceptiveField field;
  field.norms = norms_of(model->parameters, tokens.size());
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
