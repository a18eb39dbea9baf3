// The papers' figures and tables as experiments: text files in experiments/, one for each, compiled into the program.
//
//   title  Learning curves of CausalRN and Transformer
//   paper  copying                           one of PAPERS
//   where  figure 3
//   shows  The paper: the two curves are very similar …
//   size quick: a few minutes on two cores   what follows, to the next size or table, is of this size alone
//   about  Strings of 16 letters in place of 128 …
//   set LENGTH = 16                          {LENGTH} in any later line
//   run train, seeds 1 2 3: ./train_copy --compare causal_rn,transformer --length {LENGTH}
//   table                                    tables and claims are of all sizes
//   column steps to 99 %: train/compare.csv variant={1} step_99 steps
//   row CausalRN = causal_rn | 200           {1} is causal_rn, and the paper prints 200 in the first column
//   claim a CausalRN converges before the Transformer
//   need [CausalRN; steps to 99 %] < [Transformer; steps to 99 %]
//
// A run is an ordinary command: the runner adds --name or --out, and --seed N for other seeds than 1; {seed} is the
// seed, and @train the folder that the run "train" of the same seed left. "@quick,full STATEMENT" counts at these
// sizes only, "for X in a; b: STATEMENT" counts once for each value, with {X}, and a backslash at the end of a line
// continues it.
//
// A cell is FILE, then words COLUMN=VALUE that choose rows, a column (or several, a+b) and a format; of a log FILE,
// words to search for one after the other and a format: the number behind the last of them ({newline} is the end of a
// line). Its numbers are those of all runs NAME and NAME-…, where NAME is the first part of FILE: of all seeds.
//
// Formats: steps (where a run did not get there: "not in 500"), 0 to 3 digits, %0 to %2 (of parts of one), best%
// ("100.0 / 98.2": the best and the mean), exp2 and exp3 (of a loss: perplexity), M2 and M3 (millions), e1 (1.2e-07).
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
  std::string part, file;                                  // "train", "compare.csv"; of a log "train" and ""
  std::vector<std::pair<std::string, std::string>> where;  // the columns of a row and their words
  std::vector<std::string> words;  // the columns that are added; of a log, the words before the number
  std::string format;
};

struct Column {
  std::string label, cell;  // as it is written, with {1} in it
};

struct Row {
  std::string label;
  std::vector<std::string> paper;  // for each column; empty: the paper prints no number there
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

// A < B: each seed's number of A is below each of B. A each< B: that of the same seed. A ~1.5 B: the means are within
// 1.5 times of each other. A !~1.5 B: they are not.
struct Comparison {
  Side left, right;
  std::string relation;
  double within = 1;
  std::string unmet;  // of a condition: what it means where it does not hold
};

// What a paper says, as comparisons. Where a condition does not hold, or a reason is given why it stays open, nothing
// is decided.
struct Claim {
  std::string says, open, number;  // number: words for the table of claims, in place of the comparisons
  std::vector<Comparison> needs, conditions;
  double spread = 1;     // a side of which one seed was run has to be so much further away
  bool reduced = false;  // by smaller models than the paper's at every size
  std::vector<std::string> remarks;
};

struct NamedFile {
  std::string part, file, words;  // "train", "compare.svg", a caption; of a log "samples" and ""
  std::string from;               // of a log: begins with the first line that begins so
};

struct Plot {
  std::string file, title, x, y;
  bool log_y = false;
  struct Curve {
    std::string name;
    std::vector<std::pair<double, Cell>> points;
  };
  std::vector<Curve> curves;
};

// An experiment at one size.
struct Plan {
  std::string name, title, paper, where, shows, size, cost, about;
  std::vector<PlannedRun> runs;
  std::vector<Table> tables;
  std::vector<NamedFile> pictures, listings, kept;
  std::vector<Plot> plots;
  std::vector<std::string> notes;
  std::vector<Claim> claims;

  // The cell of "Row; Column", or of the row's first column. Throws Error where there is none.
  Side side_of(const std::string& reference) const;
};

struct Experiment {
  std::string name, text;
  std::vector<std::string> sizes;            // in the order of the file
  Plan plan(const std::string& size) const;  // throws Error, which names the line that is wrong
};

struct Paper {
  const char *key, *title;
};
extern const std::vector<Paper> PAPERS;

// What is compiled in, in the order of the papers; and one of a file.
const std::vector<Experiment>& experiments();
Experiment experiment_of_file(const std::string& path);
// By names, beginnings of names, "all", and files that end in .txt. Throws UsageError for a word that means none.
std::vector<Experiment> chosen_experiments(const std::vector<std::string>& words);

// Words of a line as a shell reads them, and a word for a shell.
std::vector<std::string> words_of(const std::string& line);
std::string as_word(const std::string& word);
// Whether a run is of this part: "train-seed2" of "train".
bool is_of_part(const std::string& run, const std::string& part);

}  // namespace petroglyph
