// CSV files with words in them, and the cells that an experiment's rows are read from. (base/log.h reads files of numbers.)
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reproduction/experiment.h"

namespace petroglyph {

struct WordTable {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
  std::string path;

  size_t column(const std::string& name) const;  // throws Error when there is none
  // The rows in which these columns have these words.
  std::vector<std::vector<std::string>> where(const std::vector<std::pair<std::string, std::string>>& words) const;
};

// Fields between commas; "in quotes" they may hold commas, line ends and doubled quotes. Throws Error for a row with more or
// fewer fields than the first.
WordTable read_word_table(const std::string& path);

// Where a file of a part lies: "train/compare.csv" to "runs/reproduce-quick-copy-curves.train/compare.csv".
using Finder = std::function<std::string(const std::string& file)>;

// As the cell's form shows it; empty where the file or the row is not there.
std::optional<std::string> shown_cell(const Cell& cell, const Finder& find);
// As a number; NaN where there is none.
double cell_number(const Cell& cell, const Finder& find);
// Whether some files of a cell of all rows, of seeds that were not run, have none.
bool lacks_rows(const Cell& cell, const Finder& find);
double mean_of(const std::vector<double>& numbers);
// The mean of a cell's numbers, the least and the most: "66 (62 to 71)"; and how many there are, where some of its seeds lack.
// Empty where there are none.
std::optional<std::string> shown_seeds(const Cell& cell, const std::vector<double>& numbers);

// "100.0 / 89.3" and "100.0 / 88.1" are "±0.0 / −1.2" apart, with the digits of the first. Empty where they are no such numbers.
std::string distance(const std::string& paper, const std::string& ours);

}  // namespace petroglyph
