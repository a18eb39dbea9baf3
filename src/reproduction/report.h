// RESULTS.md, and a page for each experiment with its tables, figures, commands and fingerprints.
//
//   OUT/RESULTS.md               the claims of the papers in one table, then a short section for each experiment
//   OUT/NAME/README.md           all numbers of an experiment
//   OUT/NAME/SIZE/               what they are read from: runs.csv, tables, logs, pictures
#pragma once

#include <string>
#include <vector>

#include "reproduction/cells.h"
#include "reproduction/experiment.h"
#include "reproduction/verdict.h"

namespace petroglyph {

// What was run of an experiment, the largest size first: in runs/, or in a folder of results where more of it is done
// there.
std::vector<Measured> measured_of(const Experiment& experiment, const std::string& results);

// A claim by the largest size that decides it, or where none does by the largest that was run.
struct JudgedClaim {
  std::string says, word = "not run";  // the verdict, "at reduced scale" where that is so
  Verdict verdict;
  const Measured* measured = nullptr;
};
std::vector<JudgedClaim> judged_claims(const Experiment& experiment, const std::vector<Measured>& measured);

// A table as Markdown: "paper → here" in a cell, or ours alone.
std::string markdown_table(const Table& table, const Measured& measured);
std::string markdown_text(std::string words);
// What run prints at its end.
std::string plain_tables(const Measured& measured);

// Writes the pages. Returns the number of experiments of which something was run.
size_t write_report(const std::string& results, const std::string& out, bool force);

}  // namespace petroglyph
