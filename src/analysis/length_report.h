// The report over several runs on regular languages: a table, results.csv, lengths.svg, and probabilities.csv for
// parity_check.
#pragma once

#include <string>
#include <vector>

#include "analysis/length_test.h"

namespace petroglyph {

// The mean over the lengths for every run; the best and the mean over the runs of each language.
void report_lengths(const std::string& folder, const RegularSettings& settings, const std::vector<TestResult>& results);

}  // namespace petroglyph
