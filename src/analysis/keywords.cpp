#include "analysis/keywords.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace petroglyph {

std::vector<Keyword> nearest_tokens(const std::vector<float>& table, const std::vector<double>& vector, int count) {
  const size_t E = vector.size(), V = table.size() / E;
  double length = 0;
  for (const double x : vector) length += x * x;
  std::vector<Keyword> all;
  for (size_t v = 0; v < V; ++v) {
    double dot = 0, square = 0;
    for (size_t e = 0; e < E; ++e) {
      const double x = table[v * E + e];
      dot += x * vector[e];
      square += x * x;
    }
    all.push_back({static_cast<int32_t>(v), square > 0 && length > 0 ? dot / std::sqrt(square * length) : 0});
  }
  const size_t kept = std::min(V, static_cast<size_t>(count));
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                    [](const Keyword& a, const Keyword& b) {
                      return a.cosine != b.cosine ? a.cosine > b.cosine : a.token < b.token;
                    });
  all.resize(kept);
  return all;
}

// No token has an embedding of zeros, so the model gets an additional token with a zero row.
std::vector<int32_t> completions(const Json& config, const Model& trained, Ops& ops,
                                 const std::vector<int32_t>& tokens) {
  const int vocab = trained.classes(), T = static_cast<int>(config.at("context").integer());
  const int batch = static_cast<int>(tokens.size());
  if (tokens.empty()) return {};
  Json larger = config;
  larger.set("vocab", vocab + 1);
  const auto model = make_model("mlp_lm", larger, ops);
  const std::vector<real> all = trained.parameters.values().download();
  for (const Parameter& from : trained.parameters.list()) {
    const Parameter& to = *model->parameters.find(from.name);
    std::vector<real> values(static_cast<size_t>(to.size()));  // the additional row is the last
    std::copy_n(all.begin() + from.begin, from.size(), values.begin());
    model->parameters.upload(to, values);
  }
  std::vector<int32_t> contexts(static_cast<size_t>(batch) * static_cast<size_t>(T), vocab);
  for (size_t b = 0; b < tokens.size(); ++b) contexts[(b + 1) * static_cast<size_t>(T) - 1] = tokens[b];
  model->check_tokens(contexts);
  Tokens ids(ops, {batch, T});
  ids.upload(contexts);
  const real* logits = model->forward({ids.data(), batch, T});
  const size_t row = static_cast<size_t>(vocab) + 1;
  std::vector<real> values(static_cast<size_t>(batch) * row);
  ops.download(values.data(), logits, values.size() * sizeof(real));
  std::vector<int32_t> best;
  for (size_t b = 0; b < tokens.size(); ++b) {
    const real* first = &values[b * row];
    best.push_back(static_cast<int32_t>(std::max_element(first, first + vocab) - first));
  }
  return best;
}

}  // namespace petroglyph
