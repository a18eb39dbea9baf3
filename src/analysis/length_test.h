// Tests a trained model on strings of other lengths than the training lengths.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "train/regular_run.h"

namespace petroglyph {

// The accuracy of one trained model at each length, or in each window of lengths.
struct TestResult {
  std::string task;
  uint64_t seed = 0;
  std::vector<double> from, to, accuracies;
  // For each length: the fraction of its strings that are members (NaN if the task is not membership), and the
  // accuracy of a constant answer, the most frequent correct answer of the test. Empty for windows.
  std::vector<double> members, one_answer;
  double same_length = std::numeric_limits<double>::quiet_NaN();  // at the training length; NaN for windows
  // parity_check, for each probability of a 1: at the training length, and the mean over the longer lengths
  std::vector<double> same_by_probability, longer_by_probability;

  double mean() const { return mean_of(accuracies); }
  static double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  double lowest() const { return *std::min_element(accuracies.begin(), accuracies.end()); }
};

// Tests the trained model of a run on all ranks, with a progress line; writes test.csv to the run's folder.
TestResult test_lengths(RegularRun& run);

}  // namespace petroglyph
