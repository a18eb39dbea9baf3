// What several runs on regular languages gave: a table, results.csv, lengths.svg, and of parity probabilities.csv.
#pragma once

#include <string>
#include <vector>

#include "analysis/length_test.h"

namespace petroglyph {

// The mean over the lengths for every run, and of each language the best and the mean of its runs.
void report_lengths(const std::string& folder, const RegularSettings& settings, const std::vector<TestResult>& results);

}  // namespace petroglyph
