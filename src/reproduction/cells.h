// Reads the numbers of cells from the tables and logs of finished runs, and the records of these runs.
//
//   FOLDER/runs.csv               run, command, seconds, done, weights, machine
//   FOLDER/train-compare.csv      compare.csv of the run train; FOLDER/train.log: its output
//
// FOLDER is runs/reproduce-SIZE-NAME during the experiment, and results/NAME/SIZE in the repository.
#pragma once

#include <string>
#include <vector>

#include "reproduction/experiment.h"

namespace petroglyph {

struct RunRecord {
  std::string name, command;
  double seconds = 0;
  bool done = false;
  std::string weights;  // "causal_rn f8227c176a004670, transformer 41b580f6617ef248"
  std::string machine;
};

// An experiment at one size, with the runs done so far.
struct Measured {
  Plan plan;
  std::string folder;
  std::vector<RunRecord> runs;

  size_t done() const;
  bool finished() const { return !runs.empty() && done() == runs.size(); }
  std::string path(const std::string& run, const std::string& file) const;  // an empty file: the log
};

Measured read_measured(const Plan& plan, const std::string& folder);
void write_runs(const std::string& folder, const std::vector<RunRecord>& runs);

// The numbers of a cell, one for each run and row; infinity for a step that was not reached.
struct Numbers {
  std::vector<double> values;
  double last_step = 0;          // of the runs whose goal was not reached
  size_t runs = 0, missing = 0;  // planned runs of the cell's part, and those that are not done
};
Numbers numbers_of(const Cell& cell, const Measured& measured);
double mean_of(const std::vector<double>& values);
// "66 (62 to 71)", "not in 2,000", "100.0 / 98.2"; empty if there are no numbers.
std::string shown(const Cell& cell, const Numbers& numbers);
std::string shown_number(const std::string& format, double value);
// Replaces {[ROW; COLUMN]} in a text by the numbers; empty if one of them was not measured.
std::string with_numbers(const std::string& words, const Measured& measured);

}  // namespace petroglyph
