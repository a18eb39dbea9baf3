// Writes RESULTS.md, and a page for each experiment with its tables, figures, commands and fingerprints.
//
//   OUT/RESULTS.md               the claims of the papers in one table, then a short section for each experiment
//   OUT/NAME/README.md           all numbers of an experiment
//   OUT/NAME/SIZE/               the data of these pages: runs.csv, tables, logs, pictures
#pragma once

#include <string>
#include <vector>

#include "reproduction/cells.h"
#include "reproduction/experiment.h"
#include "reproduction/verdict.h"

namespace petroglyph {

// The results of an experiment, the largest size first. For each size they come from runs/, or from the results
// folder if more runs are done there.
std::vector<Measured> measured_of(const Experiment& experiment, const std::string& results);

// A claim with its verdict from the largest size that decides it. If no size decides it, the largest size that was
// run.
struct JudgedClaim {
  std::string says, word = "not run";  // the verdict, with "at reduced scale" if that applies
  Verdict verdict;
  const Measured* measured = nullptr;
};
std::vector<JudgedClaim> judged_claims(const Experiment& experiment, const std::vector<Measured>& measured);

// A table in Markdown: a cell has "paper → here", or only the measured number.
std::string markdown_table(const Table& table, const Measured& measured);
std::string markdown_text(std::string words);
// The tables that `reproduce run` prints at its end.
std::string plain_tables(const Measured& measured);

// Writes the pages. Returns the number of experiments with at least one run.
size_t write_report(const std::string& results, const std::string& out, bool force);

}  // namespace petroglyph
