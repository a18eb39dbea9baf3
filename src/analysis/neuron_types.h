// Classifies the neurons in the first layer of an MLP (mlps_for_nlp, section 4 and appendix H). A neuron's weights are
// w (T,E), time × embedding, oldest token first; a slice w_t contains the weights for the token at t.
//
//   n-gram         most slices are small, one is large: a function of a few tokens
//   bag of words   all slices have the same direction: a function of the sum of all tokens
//   hybrid         partly n-gram and partly bag of words
//   DCT-sparse     none of these, but n-gram after a cosine transform over time: a slow wave
//
// All numbers here are double, in every build.
#pragma once

#include <string>
#include <vector>

namespace petroglyph {

enum class NeuronType { NGRAM, BAG_OF_WORDS, HYBRID, DCT_SPARSE, OTHER };
constexpr int NEURON_TYPES = 5;
const char* name_of(NeuronType type);  // "ngram", "bag_of_words", "hybrid", "dct_sparse", "other"

// One neuron's weights, (T,E) row by row. The referenced array must outlive the view.
struct NeuronView {
  const double* weight;
  int time, embedding;

  double at(int t, int e) const { return weight[static_cast<size_t>(t) * static_cast<size_t>(embedding) + e]; }
};

// ‖w_t‖₂ (T)
std::vector<double> slice_norms(const NeuronView& w);
// w̃_t = ‖w_t‖₂ / max_s ‖w_s‖₂ (T); zeros if all norms are zero.
std::vector<double> relative_norms(std::vector<double> norms);
// How many slices are large: not small by the strict n-gram rule.
int large_slices(const std::vector<double>& norms);

// The variance over time of the directions u_t = w_t / ‖w_t‖₂, averaged over the embedding:
//   (1/E) Σ_e (1/T) Σ_t (u_te − ū_e)²  =  (1 − ‖ū‖²) / E
// NaN if a slice is zero, because it has no direction. A threshold is valid for one E only, because of the factor 1/E
// (see rescaled() below). A neuron is a bag of words if its variance is below the threshold. Appendix H prints "> t",
// which is a misprint: section 4.1 tests for a low variance.
double bag_of_words_variance(const NeuronView& w);

// (1/E) Σ_e ‖w_:e‖₁ / ‖w_:e‖₂ over time, from 1 (one slice) to √T (all equal); a column of zeros counts as 0.
double l1_l2(const NeuronView& w);

// The orthonormal DCT-II over time of each column, (T,E). Row f is
//   √(1/T) Σ_t w_t  for f = 0,  √(2/T) Σ_t w_t cos(π f (2t + 1) / 2T)  otherwise
std::vector<double> cosine_transform(const NeuronView& w);

struct NeuronThresholds {
  double p;             // n-gram: more than this fraction of the slices …
  double low;           // … is below this fraction of the largest norm …
  double high;          // … and one slice is above this
  double bag_of_words;  // bag of words: bag_of_words_variance() is below this
};

// The paper's thresholds, for E = 512.
struct NeuronRules {
  NeuronThresholds strict{0.6, 0.4, 0.9, 0.0003};
  NeuronThresholds hybrid{0.5, 0.5, 0.8, 0.0005};

  // Thresholds for another E, for the same angles between slices: the two variances are multiplied by 512/E.
  NeuronRules rescaled(int embedding) const;
};

struct NeuronMeasures {
  std::vector<double> norms, dct_norms;  // ‖w_t‖₂ (T), and the same for the transform (T)
  double variance = 0;                   // bag_of_words_variance()
  double l1_l2 = 0, l1_l2_dct = 0;
};
NeuronMeasures measure_neuron(const NeuronView& w);

struct NeuronVerdict {
  bool ngram = false, bag_of_words = false;                // by the strict thresholds
  bool ngram_hybrid = false, bag_of_words_hybrid = false;  // by the hybrid thresholds
  bool ngram_dct = false;                                  // for the transform, strict
  NeuronType type = NeuronType::OTHER;
};
// The type is the first of these that applies. N-gram or bag of words: exactly one of the two strict conditions holds.
// Hybrid: both conditions hold with the hybrid thresholds. DCT-sparse. Other, which includes a neuron of zeros.
NeuronVerdict classify_neuron(const NeuronMeasures& measures, const NeuronRules& rules);

}  // namespace petroglyph
