// Writes RESULTS.md, and a page for each experiment with its tables, figures, commands and fingerprints.
//
//   OUT/RESULTS.md               the claims of the papers in one table, then a short section for each experiment
//   OUT/NAME/README.md           all numbers of an experiment
//   OUT/NAME/SIZE/               the data of these pages: runs.csv, tables, logs, pictures
#pragma once

#include <string>

#include "reproduction/cells.h"
#include "reproduction/experiment.h"
#include "reproduction/verdict.h"

namespace petroglyph {

// A table in Markdown: a cell has "paper → here", or only the measured number.
std::string markdown_table(const Table& table, const Measured& measured);

// Writes the pages from what runs/ and results/ have. Returns the number of experiments with at least one run.
size_t write_report(const std::string& out);

}  // namespace petroglyph
