#include "generation/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {
// Below this temperature, a logit that is 0.001 below the largest has at most e^−10 of its probability, so the
// largest is taken.
constexpr double COLDEST = 1e-4;

struct Candidate {
  int32_t token;
  double weight;  // exp((logit − largest) / temperature), with Petroglyph's own exp
};

// Moves the candidates that top_k and top_p keep to the front, and returns their number.
size_t keep_likeliest(std::vector<Candidate>& candidates, const Sampling& settings) {
  const size_t all = candidates.size();
  const size_t k = settings.top_k > 0 ? std::min(all, static_cast<size_t>(settings.top_k)) : all;
  if (k == all && settings.top_p >= 1) return all;
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(k), candidates.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
                    });
  if (settings.top_p >= 1) return k;
  double total = 0, sum = 0;
  for (size_t i = 0; i < k; ++i) total += candidates[i].weight;
  for (size_t i = 0; i < k; ++i) {
    sum += candidates[i].weight;
    if (sum >= settings.top_p * total) return i + 1;
  }
  return k;
}

}  // namespace

int32_t draw_token(const std::vector<real>& logits, const Sampling& settings, real u) {
  const auto wrong = std::find_if(logits.begin(), logits.end(), [](real x) { return std::isnan(x); });
  if (wrong != logits.end()) throw Error(text("the model's logit of token %td is no number", wrong - logits.begin()));
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (!std::isfinite(*largest)) throw Error("the model's largest logit is " + number_text(*largest, 3));
  if (settings.temperature < COLDEST) return static_cast<int32_t>(largest - logits.begin());
  const real scale = static_cast<real>(1 / settings.temperature);
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < logits.size(); ++i)
    candidates.push_back({static_cast<int32_t>(i), numerics::exp((logits[i] - *largest) * scale)});
  candidates.resize(keep_likeliest(candidates, settings));
  double total = 0, sum = 0;
  for (const Candidate& candidate : candidates) total += candidate.weight;
  for (const Candidate& candidate : candidates) {
    sum += candidate.weight;
    if (sum > u * total) return candidate.token;
  }
  return candidates.back().token;
}

}  // namespace petroglyph
