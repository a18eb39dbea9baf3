// The page that shows the papers' numbers beside ours. One model of it, and two writers: a web page, and a folder that a
// repository shows.
#pragma once

#include <string>
#include <vector>

#include "reproduction/experiment.h"
#include "reproduction/record.h"

namespace petroglyph {

struct PageRow {
  std::string label, paper, ours, distance, remark;
  std::string column = {};
};

// Rows that have columns as a table: "paper → ours" in a cell, or ours alone.
struct PageGrid {
  struct Line {
    std::string label, remark;
    std::vector<std::string> cells;  // one for each column; empty: there is none
  };
  std::vector<std::string> columns;
  std::vector<Line> lines;
};

struct PageFigure {
  std::string name, caption;  // "copy-curves/train-compare.svg"
  std::string content;
};

struct PageListing {
  std::string title, words;
};

// A claim of a paper and what became of it.
struct PageClaim {
  std::string paper, where, says;
  std::string verdict;  // confirmed, confirmed at reduced scale, not confirmed, contradicted …, not decided, not run
  std::string why;      // the numbers
  std::string id, command, weights;  // of the section, and of the run that it rests on
};

// An experiment as it was run, or one that was not.
struct PageSection {
  std::string id, title, paper, where, shows;
  std::string status;  // "quick, in 1:10", "not run"
  std::string size, machine;
  std::vector<PageRow> rows;
  std::vector<PageFigure> figures;
  std::vector<PageFigure> tables;   // CSV files, for those who want to go on with them
  std::vector<PageFigure> records;  // what the page is made from when the run itself is gone
  std::vector<PageListing> listings;
  std::vector<DoneCommand> commands;
};

struct Page {
  std::string title;
  std::vector<std::string> introduction;
  std::vector<PageClaim> claims;
  std::vector<PageSection> sections;  // those of a paper one after the other
  std::vector<std::string> stale;     // folders with what was run of other plans, which it leaves out
};

// From the records in runs/, and those that a folder of results keeps.
Page make_page(const std::vector<Experiment>& experiments, const std::string& results = "");

// index.html and the figures: no script, nothing from elsewhere.
void write_html(const Page& page, const std::string& folder);
// RESULTS.md, the figures and the tables, and the records and words that make_page finds there.
void write_markdown(const Page& page, const std::string& folder);
// Both, and says so: `results` may be empty. Throws Error, without `force`, where a page is there that this did not write.
void save_page(const Page& page, const std::string& folder, const std::string& results, bool force);
// The rows of an experiment, for a terminal.
std::string plain_rows(const PageSection& section);
// Of numbers that several runs left; empty where none did.
std::string plot_svg(const Plot& plot, const Finder& find);
PageSection section_of(const Experiment& experiment, const Kept* kept);
// The claims of an experiment, each by the largest run that measured it with models that have learned enough. One that is not
// finished can speak against a claim, but not for it while a smaller one has measured all.
std::vector<PageClaim> claims_of(const Experiment& experiment, const std::vector<Kept>& kept);

std::string markdown_text(std::string words);
std::string html_page(const Page& page);
std::string markdown_page(const Page& page);

// What the two pages say alike.
bool has_columns(const PageSection& section);
PageGrid grid_of(const PageSection& section);
std::string facts_of(const DoneCommand& command);            // "1:10 on CPU, 1 thread, seed 1, weights 0123…"
std::string tally_of(const std::vector<PageClaim>& claims);  // "3 claims: 2 confirmed, 1 not decided."

}  // namespace petroglyph
