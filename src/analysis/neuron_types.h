// What the neurons of an MLP's first layer compute of its context (mlps_for_nlp, section 4 and appendix H). A neuron's weights are
// w (T,E), time × embedding, oldest token first; a slice w_t is what it does with the token at t.
//
//   n-gram         most slices are small, one is large: a function of a few tokens
//   bag of words   all slices point the same way: a function of the sum of all tokens
//   hybrid         somewhat of both
//   DCT-sparse     none of these, but n-gram after a cosine transform over time: a slow wave
//
// Everything here is double, in every build.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace petroglyph {

enum class NeuronType { NGRAM, BAG_OF_WORDS, HYBRID, DCT_SPARSE, OTHER };
constexpr int NEURON_TYPES = 5;
const char* name_of(NeuronType type);  // "ngram", "bag_of_words", "hybrid", "dct_sparse", "other"

// One neuron's weights, (T,E) row by row. They must outlive it.
struct NeuronView {
  const double* weight;
  int time, embedding;

  double at(int t, int e) const { return weight[static_cast<size_t>(t) * static_cast<size_t>(embedding) + e]; }
};

// ‖w_t‖₂ (T)
std::vector<double> slice_norms(const NeuronView& w);
// w̃_t = ‖w_t‖₂ / max_s ‖w_s‖₂ (T); zeros where all of them are.
std::vector<double> relative_norms(std::vector<double> norms);

// With u_t = w_t / ‖w_t‖₂ the variance of u over time, averaged over the embedding:
//   (1/E) Σ_e (1/T) Σ_t (u_te − ū_e)²  =  (1 − ‖ū‖²) / E
// NaN where a slice is zero and has no direction. Because of the 1/E a threshold belongs to one E (rescaled() below).
// A bag of words has a variance below the threshold. Appendix H prints "> t"; that is a misprint: section 4.1 checks for low variance.
double bag_of_words_variance(const NeuronView& w);

// (1/E) Σ_e ‖w_:e‖₁ / ‖w_:e‖₂ over time, from 1 (one slice) to √T (all alike); a column of zeros counts as 0.
double l1_l2(const NeuronView& w);

// The orthonormal DCT-II over time of each column, (T,E): row f is
//   √(1/T) Σ_t w_t  for f = 0,  √(2/T) Σ_t w_t cos(π f (2t + 1) / 2T)  else
std::vector<double> cosine_transform(const NeuronView& w);

struct NeuronThresholds {
  double p;             // n-gram: more than this part of the slices …
  double low;           // … is below this part of the largest one's norm …
  double high;          // … and one is above this
  double bag_of_words;  // bag of words: bag_of_words_variance() is below this
};

// The paper's, with E = 512.
struct NeuronRules {
  NeuronThresholds strict{0.6, 0.4, 0.9, 0.0003};
  NeuronThresholds hybrid{0.5, 0.5, 0.8, 0.0005};

  // The same angles between slices for another E: the two variances times 512/E.
  NeuronRules rescaled(int embedding) const;
};

struct NeuronMeasures {
  std::vector<double> norms, dct_norms;  // ‖w_t‖₂ (T), and of the transform (T)
  double variance = 0;                   // bag_of_words_variance()
  double l1_l2 = 0, l1_l2_dct = 0;
};
NeuronMeasures measure_neuron(const NeuronView& w);

struct NeuronVerdict {
  bool ngram = false, bag_of_words = false;                // by the strict thresholds
  bool ngram_hybrid = false, bag_of_words_hybrid = false;  // by those for hybrids
  bool ngram_dct = false;                                  // of the transform, strict
  NeuronType type = NeuronType::OTHER;
};
// The type is the first that holds: n-gram or bag of words where exactly one of the strict two holds; hybrid where both hold by the
// thresholds for hybrids; DCT-sparse; other. A neuron of zeros is other.
NeuronVerdict classify_neuron(const NeuronMeasures& measures, const NeuronRules& rules);

// How many neurons are of each type.
using NeuronCounts = std::array<int, NEURON_TYPES>;
NeuronCounts count_types(const std::vector<NeuronVerdict>& verdicts);

}  // namespace petroglyph
