// Tests trained models on strings of other lengths than the training lengths.
#pragma once

#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "train/regular_run.h"

namespace petroglyph {

// The accuracy of one trained model at each length, or in each window of lengths.
struct TestResult {
  std::string task;
  uint64_t seed = 0;
  std::vector<double> from, to, accuracies;
  std::vector<double> one_answer;  // at each length, of a constant answer, the most frequent correct answer of the test
  double same_length = std::numeric_limits<double>::quiet_NaN();  // at the training length; NaN for windows
  // parity_check, for each probability of a 1: at the training length, and the mean over the longer lengths
  std::vector<double> same_by_probability, longer_by_probability;

  double mean() const { return mean_of(accuracies); }
  static double mean_of(const std::vector<double>& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
};

// Tests the trained model of a run on all ranks, with a progress line; writes test.csv to the run's folder.
TestResult test_lengths(RegularRun& run);

// The report over several runs: a table with the mean over the lengths for every run, and the best and the mean over
// the runs of each language; results.csv, lengths.svg, and probabilities.csv for parity_check.
void report_lengths(const std::string& folder, const RegularSettings& settings, const std::vector<TestResult>& results);

}  // namespace petroglyph
