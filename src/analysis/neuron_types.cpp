#include "analysis/neuron_types.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace petroglyph {

namespace {

constexpr double PI = 3.14159265358979323846;
constexpr int PAPER_EMBEDDING = 512;

// Appendix H. The fraction of small slices is a correctly rounded quotient: 9 of 15 is exactly the number 0.6, so it
// is not above 0.6.
bool is_ngram(const std::vector<double>& norms, const NeuronThresholds& thresholds) {
  const std::vector<double> relative = relative_norms(norms);
  const auto low = std::count_if(relative.begin(), relative.end(), [&](double n) { return n < thresholds.low; });
  const bool high = std::any_of(relative.begin(), relative.end(), [&](double n) { return n > thresholds.high; });
  return high && static_cast<double>(low) / static_cast<double>(relative.size()) > thresholds.p;
}

}  // namespace

const char* name_of(NeuronType type) {
  constexpr const char* NAMES[NEURON_TYPES] = {"ngram", "bag_of_words", "hybrid", "dct_sparse", "other"};
  return NAMES[static_cast<int>(type)];
}

std::vector<double> slice_norms(const NeuronView& w) {
  std::vector<double> norms;
  for (int t = 0; t < w.time; ++t) {
    double square = 0;
    for (int e = 0; e < w.embedding; ++e) square += w.at(t, e) * w.at(t, e);
    norms.push_back(std::sqrt(square));
  }
  return norms;
}

std::vector<double> relative_norms(std::vector<double> norms) {
  const double largest = norms.empty() ? 0 : *std::max_element(norms.begin(), norms.end());
  if (largest > 0)
    for (double& n : norms) n /= largest;
  return norms;
}

int large_slices(const std::vector<double>& norms) {
  const std::vector<double> relative = relative_norms(norms);
  const double low = NeuronRules().strict.low;
  return static_cast<int>(std::count_if(relative.begin(), relative.end(), [&](double n) { return n > low; }));
}

double bag_of_words_variance(const NeuronView& w) {
  const std::vector<double> norms = slice_norms(w);
  const auto direction = [&](int t, int e) { return w.at(t, e) / norms[static_cast<size_t>(t)]; };  // 0/0: NaN
  double sum = 0;
  for (int e = 0; e < w.embedding; ++e) {
    double mean = 0, square = 0;
    for (int t = 0; t < w.time; ++t) mean += direction(t, e);
    mean /= w.time;
    for (int t = 0; t < w.time; ++t) square += (direction(t, e) - mean) * (direction(t, e) - mean);
    sum += square / w.time;
  }
  return sum / w.embedding;
}

double l1_l2(const NeuronView& w) {
  double sum = 0;
  for (int e = 0; e < w.embedding; ++e) {
    double l1 = 0, square = 0;
    for (int t = 0; t < w.time; ++t) {
      l1 += std::abs(w.at(t, e));
      square += w.at(t, e) * w.at(t, e);
    }
    if (square > 0) sum += l1 / std::sqrt(square);
  }
  return sum / w.embedding;
}

std::vector<double> cosine_transform(const NeuronView& w) {
  const size_t T = static_cast<size_t>(w.time), E = static_cast<size_t>(w.embedding);
  std::vector<double> transform(T * E);
  for (int f = 0; f < w.time; ++f) {
    const double scale = std::sqrt((f == 0 ? 1.0 : 2.0) / w.time);
    for (int t = 0; t < w.time; ++t) {
      const double wave = scale * std::cos(PI * f * (2 * t + 1) / (2 * w.time));
      for (int e = 0; e < w.embedding; ++e) transform[static_cast<size_t>(f) * E + e] += wave * w.at(t, e);
    }
  }
  return transform;
}

NeuronRules NeuronRules::rescaled(int embedding) const {
  NeuronRules rules = *this;
  rules.strict.bag_of_words *= static_cast<double>(PAPER_EMBEDDING) / embedding;
  rules.hybrid.bag_of_words *= static_cast<double>(PAPER_EMBEDDING) / embedding;
  return rules;
}

NeuronMeasures measure_neuron(const NeuronView& w) {
  const std::vector<double> transform = cosine_transform(w);
  const NeuronView dct{transform.data(), w.time, w.embedding};
  return {slice_norms(w), slice_norms(dct), bag_of_words_variance(w), l1_l2(w), l1_l2(dct)};
}

NeuronVerdict classify_neuron(const NeuronMeasures& m, const NeuronRules& rules) {
  NeuronVerdict verdict;
  verdict.ngram = is_ngram(m.norms, rules.strict);
  verdict.bag_of_words = m.variance < rules.strict.bag_of_words;  // false for NaN
  verdict.ngram_hybrid = is_ngram(m.norms, rules.hybrid);
  verdict.bag_of_words_hybrid = m.variance < rules.hybrid.bag_of_words;
  verdict.ngram_dct = is_ngram(m.dct_norms, rules.strict);
  if (verdict.ngram != verdict.bag_of_words) {
    verdict.type = verdict.ngram ? NeuronType::NGRAM : NeuronType::BAG_OF_WORDS;
  } else if (verdict.ngram_hybrid && verdict.bag_of_words_hybrid) {
    verdict.type = NeuronType::HYBRID;
  } else if (verdict.ngram_dct) {
    verdict.type = NeuronType::DCT_SPARSE;
  }
  return verdict;
}

}  // namespace petroglyph
