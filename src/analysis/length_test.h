// What a trained model makes of strings of other lengths than those that it learned from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "train/regular_run.h"

namespace petroglyph {

// What one trained model made of each length, or of each window of lengths: the part of the strings that it answered rightly.
struct TestResult {
  std::string task;
  uint64_t seed = 0;
  std::vector<double> from, to, accuracies;
  // Of each length: the part of its strings that are members (of a language; else NaN), and what a model would score that gives all
  // strings of the test the one answer that is right most often. None for windows.
  std::vector<double> members, one_answer;
  double same_length = std::numeric_limits<double>::quiet_NaN();  // at the training length; none for windows
  // parity_check, for each probability of a 1: at the training length, and the mean over the longer ones
  std::vector<double> same_by_probability, longer_by_probability;

  double mean() const { return mean_of(accuracies); }
  static double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum / static_cast<double>(values.size());
  }
  double lowest() const { return *std::min_element(accuracies.begin(), accuracies.end()); }
};

// The test of the trained model of a run, with a live line, by all ranks together; leaves test.csv in its folder.
TestResult test_lengths(RegularRun& run);

}  // namespace petroglyph
