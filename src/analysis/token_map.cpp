// One text is copied into several equal samples of a batch. Each sample computes the gradient at another position, so
// that a backward pass gives one row of the map for each sample.

#include "analysis/token_map.h"

#include <algorithm>

#include "base/error.h"

namespace petroglyph {

namespace {

constexpr int ROWS = 256;  // positions in one pass: enough for matrix products at full speed

// ∂ log p(token)/∂logits = onehot − p
std::vector<real> logit_gradient(const std::vector<real>& p, int32_t token) {
  std::vector<real> gradient;
  for (const real value : p) gradient.push_back(-value);
  gradient[static_cast<size_t>(token)] += 1;
  return gradient;
}

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
  const int T = static_cast<int>(tokens.size()), batch = std::clamp(ROWS / T, 1, T);
  std::vector<int32_t> copies;
  for (int b = 0; b < batch; ++b) copies.insert(copies.end(), tokens.begin(), tokens.end());
  PositionGradients gradients(name, config, trained, ops, copies, batch, T);
  if (gradients.rows() < int64_t(batch) * T)
    throw Error("this " + name + " has logits only at the end of its input; a map needs logits at every token");

  TokenMap map{{tokens.begin() + 1, tokens.end()}, {}, std::vector<double>(tokens.size() * tokens.size())};
  const std::vector<real> last = gradients.logits(T - 1);
  map.said.push_back(static_cast<int32_t>(std::max_element(last.begin(), last.end()) - last.begin()));
  for (int first = 0; first < T; first += batch) {
    std::vector<PositionGradients::Answer> answers;
    for (int t = first; t < std::min(first + batch, T); ++t) {
      const int64_t row = int64_t(t - first) * T + t;
      const std::vector<real> p = softmax(gradients.logits(row));
      map.probability.push_back(p[static_cast<size_t>(map.said[static_cast<size_t>(t)])]);
      answers.push_back({row, logit_gradient(p, map.said[static_cast<size_t>(t)])});
    }
    const std::vector<double> norms = gradients.norms(answers);
    for (int t = first; t < std::min(first + batch, T); ++t)
      std::copy_n(norms.begin() + int64_t(t - first) * T, T, map.norms.begin() + int64_t(t) * T);
  }
  return map;
}

std::vector<double> mean_attention(Model& model, Ops& ops, const std::vector<int32_t>& tokens, size_t block) {
  const size_t cells = tokens.size() * tokens.size();
  Tokens ids(ops, {1, static_cast<int64_t>(tokens.size())});
  ids.upload(tokens);
  model.forward({ids.data(), 1, static_cast<int>(tokens.size())});
  const std::vector<real> maps = model.attention_map(block, 0);
  std::vector<double> mean(cells);
  for (size_t i = 0; i < maps.size(); ++i)
    mean[i % cells] += maps[i] * static_cast<double>(cells) / static_cast<double>(maps.size());
  return mean;
}

std::vector<double> in_parts_of_largest(std::vector<double> map, size_t T) {
  for (auto row = map.begin(); row != map.end(); row += static_cast<std::ptrdiff_t>(T)) {
    const auto past = row + static_cast<std::ptrdiff_t>(T);
    const double largest = *std::max_element(row, past);
    if (largest > 0) std::for_each(row, past, [&](double& value) { value /= largest; });
  }
  return map;
}

}  // namespace petroglyph
