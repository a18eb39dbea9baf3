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
}  // namespace

int32_t Sampler::draw(const std::vector<real>& logits, real u) {
  const auto wrong = std::find_if(logits.begin(), logits.end(), [](real x) { return std::isnan(x); });
  if (wrong != logits.end()) throw Error(text("the model's logit of token %td is no number", wrong - logits.begin()));
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (!std::isfinite(*largest)) throw Error("the model's largest logit is " + number_text(*largest, 3));
  if (settings_.temperature < COLDEST) return static_cast<int32_t>(largest - logits.begin());
  const real scale = static_cast<real>(1 / settings_.temperature);
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i)
    candidates_.push_back({static_cast<int32_t>(i), numerics::exp((logits[i] - *largest) * scale)});
  const size_t kept = keep_likeliest();
  double total = 0;
  for (size_t i = 0; i < kept; ++i) total += candidates_[i].weight;
  double sum = 0;
  for (size_t i = 0; i < kept; ++i) {
    sum += candidates_[i].weight;
    if (sum > u * total) return candidates_[i].token;
  }
  return candidates_[kept - 1].token;
}

// Moves the candidates that top_k and top_p keep to the front, and returns their number.
size_t Sampler::keep_likeliest() {
  const size_t all = candidates_.size();
  const size_t k = settings_.top_k > 0 ? std::min(all, static_cast<size_t>(settings_.top_k)) : all;
  if (k == all && settings_.top_p >= 1) return all;
  std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(k), candidates_.end(),
                    [](const Candidate& a, const Candidate& b) {
                      return a.weight != b.weight ? a.weight > b.weight : a.token < b.token;
                    });
  if (settings_.top_p >= 1) return k;
  double total = 0, sum = 0;
  for (size_t i = 0; i < k; ++i) total += candidates_[i].weight;
  for (size_t i = 0; i < k; ++i) {
    sum += candidates_[i].weight;
    if (sum >= settings_.top_p * total) return i + 1;
  }
  return k;
}

}  // namespace petroglyph
