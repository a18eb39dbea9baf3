// The papers' figures and tables as experiments: one text file each in experiments/, compiled into the program.
//
//   title  Learning curves of CausalRN and Transformer
//   paper  copying, figure 3                 one of PAPERS, and where
//   shows  The paper: the two curves are very similar …
//   size quick, a few minutes on two cores: Strings of 16 letters in place of 128 …
//                                            the lines up to the next size or table are for this size only
//   set LENGTH = 16                          replaces {LENGTH} in all later lines; also: set A; B = 1; 2
//   run train, seeds 1 2 3: ./train_copy --compare causal_rn,transformer --length {LENGTH}
//   table                                    tables and claims apply to all sizes
//   column steps to 99 %: train/compare.csv variant={1} step_99 steps
//   row CausalRN = causal_rn | 200           {1} is causal_rn; 200 is the paper's number for the first column
//   claim a CausalRN converges before the Transformer
//   need [CausalRN; steps to 99 %] < [Transformer; steps to 99 %]
//
// A run is an ordinary command. The runner adds --name or --out, and --seed N for seeds other than 1. {seed} is the
// seed, and @train is the output folder of the run "train" with the same seed. "@quick,full STATEMENT" applies at
// these sizes only. "for X in a; b: STATEMENT" repeats the statement for each value, with {X} replaced. A backslash
// at the end of a line continues it.
//
// "show FILE: CAPTION" adds a file of a run to the page: .svg as a picture, any other as text. "plot" begins a
// figure of cells, and "point CURVE | X | ROW; COLUMN" adds to it.
//
// "sizes of NAME" stands for the sizes of another experiment, with the statements that belong to them.
//
// A cell is FILE, then words COLUMN=VALUE that select rows, a column (or the sum of several, a+b) and a format. For a
// log FILE, it is a list of words and a format: the words are searched one after the other, and the number after the
// last one is used. The numbers come from all runs NAME and NAME-…, where NAME is the first part of FILE, that is, from
// all seeds.
//
// Formats: steps (if a run did not reach the goal: "not in 500"), 0 to 3 digits, %0 to %2 (fractions as percent),
// best% ("100.0 / 98.2": the best and the mean), exp2 and exp3 (a loss as perplexity), M2 and M3 (millions), e1
// (1.2e-07).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace petroglyph {

struct PlannedRun {
  std::string name;     // "train", "train-seed2"
  std::string program;  // "train_copy"
  std::vector<std::string> words;
};

struct Cell {
  std::string part, file;                                  // "train", "compare.csv"; for a log "train" and ""
  std::vector<std::pair<std::string, std::string>> where;  // conditions on a row: column, value
  std::vector<std::string> words;                          // the columns to add; for a log, the words before the number
  std::string format;
};

struct Column {
  std::string label, cell;  // as written in the file, with {1} in it
};

struct Row {
  std::string label;
  std::vector<std::string> paper;  // for each column; empty: the paper has no number there
  std::vector<Cell> cells;
};

struct Table {
  std::string title;
  std::vector<Column> columns;
  std::vector<Row> rows;
};

// One side of a comparison: a cell of a table, or a number.
struct Side {
  std::string row, column;
  std::optional<Cell> cell;
  double number = 0, factor = 1;
  enum class Of { SEEDS, BEST, MEAN } of = Of::SEEDS;
};

// A < B: the numbers of all seeds of A are below those of all seeds of B. A ~1.5 B: the ratio of the means is below 1.5.
struct Comparison {
  Side left, right;
  std::string relation;
  double within = 1;
};

// A claim of a paper, as comparisons. Nothing is decided if a condition does not hold, or if `open` gives a reason.
struct Claim {
  std::string says, open, number;  // number: the text for the table of claims, instead of the comparisons
  std::vector<Comparison> needs, conditions;
  double spread = 1;     // the additional factor required if a side has only one seed
  bool reduced = false;  // at every size, the models are smaller than the paper's
  std::vector<std::string> remarks;
};

struct ShownFile {
  std::string part, file, caption;  // "train", "compare.svg", a caption; for a log "samples" and ""
};

struct Plot {
  std::string file, title, x, y;
  bool log_y = false;
  struct Curve {
    std::string name;
    std::map<double, Cell> points;
  };
  std::vector<Curve> curves;
};

// An experiment at one size.
struct Plan {
  std::string name, title, paper, where, shows, size, cost, about;
  std::vector<PlannedRun> runs;
  std::vector<Table> tables;
  std::vector<ShownFile> shown;
  std::vector<Plot> plots;
  std::vector<Claim> claims;

  // The cell of "Row; Column", or of the row's first column. Throws Error if there is none.
  Side side_of(const std::string& reference) const;
};

struct Experiment {
  std::string name;
  std::vector<std::string> statements;
  std::vector<std::string> sizes;            // in the order of the file
  Plan plan(const std::string& size) const;  // throws Error, which names the line with the error
};

struct Paper {
  const char *key, *title;
};
extern const std::vector<Paper> PAPERS;

// The compiled-in experiments; and an experiment of a text, in which `known` are the others that it may name.
const std::vector<Experiment>& experiments();
Experiment experiment_of_text(const std::string& name, const std::string& text, const std::vector<Experiment>& known);
// Selects experiments by name, beginning of a name, "all", or file ending in .txt. Throws UsageError for a word
// without a match.
std::vector<Experiment> chosen_experiments(const std::vector<std::string>& words);

// Splits a line into words as a shell does, and quotes a word for a shell.
std::vector<std::string> words_of(const std::string& line);
std::string as_word(const std::string& word);
// Whether a run belongs to this part: "train-seed2" belongs to "train".
bool is_of_part(const std::string& run, const std::string& part);

}  // namespace petroglyph
