// What a trained model makes of strings of other lengths than those that it learned from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "train/regular_run.h"

namespace petroglyph {

// What one trained model made of each length, or of each window of lengths: the part of the strings that it answered rightly.
struct TestResult {
  std::string task;
  uint64_t seed = 0;
  std::vector<double> from, to, accuracies;
  // parity_check, for each probability of a 1: at the training length, and the mean over the longer ones
  std::vector<double> same_length, longer;

  double mean() const {
    double sum = 0;
    for (const double a : accuracies) sum += a;
    return sum / static_cast<double>(accuracies.size());
  }
  double lowest() const { return *std::min_element(accuracies.begin(), accuracies.end()); }
};

// The test of the trained model of a run, with a live line; leaves test.csv in its folder.
TestResult test_lengths(RegularRun& run);

}  // namespace petroglyph
