// What of the papers can be done again: one table of experiments, each with the commands of the other programs that it takes, and
// what of their results stands beside which numbers of the paper. reproduce.cpp runs them; page.h makes a page of what they left.
//
// Every number of a paper stands here as the paper prints it, with its table or figure; where a paper only draws a curve, or
// says something in words, so does this table.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace petroglyph {

// What the user asks for.
struct Scale {
  // What shows an effect in minutes; in hours on two cores the papers' models, where that can be done with fewer steps or smaller
  // batches, and else longer runs of smaller ones; the papers' sizes.
  enum class Size { QUICK, EVENING, FULL };
  Size size = Size::QUICK;
  // Files of text and how it becomes tokens, a folder with CIFAR; empty: what the programs make up themselves, characters
  std::string text, validation, tokenizer, images;

  bool quick() const { return size == Size::QUICK; }
  bool evening() const { return size == Size::EVENING; }
  bool full() const { return size == Size::FULL; }
  bool has_data() const { return !text.empty() || !images.empty(); }
};

// A run of another program. Its folder is runs/FOLDER.PART, where FOLDER is the experiment's (record.h).
struct Command {
  enum class Kind {
    TRAINS,  // into --name; goes on with --resume
    NAMES,   // into --name; starts anew
    WRITES,  // into --out; may be repeated
    SAYS     // leaves nothing but its words
  };
  std::string part, program;
  std::vector<std::string> words;  // "@train/best.safetensors": a file that the part "train" left
  Kind kind = Kind::TRAINS;
  bool has_device = true;  // knows --device and --threads
};

// A number of ours: from the rows of a CSV file in which some columns have these words.
struct Cell {
  enum class Form {
    NUMBER,      // with `digits` behind the point
    SCIENTIFIC,  // 1.2e-07
    STEP,        // of a comparison; "not in 300" where it was not reached
    MILLIONS,
    PERCENT,     // of parts of one
    PERPLEXITY,  // of a loss
    BEST_MEAN,   // "100.0 / 98.2": percent, the largest and the mean of all rows
    BEST,        // of all rows, in percent
    MEAN,        // of all rows, in percent
    SAID         // of a log: the number behind the words `column`, behind those of `where`
  };
  std::string file;  // "train/compare.csv": of the part "train"
  std::vector<std::pair<std::string, std::string>> where;
  std::string column;
  Form form = Form::NUMBER;
  int digits = 2;
  std::vector<std::string> others = {};  // files of other seeds: their mean, and what it lies between, "66 (62 to 71)"

  // The rows are of all seeds, those of `others` too.
  bool of_all_rows() const { return form == Form::BEST_MEAN || form == Form::BEST || form == Form::MEAN; }
};

struct Row {
  std::string label;
  std::string paper;  // as it is printed there; empty: the paper has no number for it
  Cell ours;
  std::string remark;       // on their distance: what is different, and why as far as it is known
  std::string column = {};  // rows with one label stand in one line of a table, each in its column
};

// A number in a comparison: a measured one, or where its cell has no file one that is given.
struct Side {
  std::string label;
  Cell cell = {};
  double number = 0;
  std::vector<Cell> plus = {};  // measured ones that are added to it
};

// BELOW holds where each seed's number on the left is below factor · each on the right, or of numbers of one run each, `of_one_run`,
// below that of the same seed; where they overlap nothing is decided. A side of which only one seed was run must be further away, `spread` times; a given number, or a counted one, need not. Equal ones are
// not below, and of two measured ones nothing is decided. A step that was not reached is later than all. ALIKE holds where of the
// means each is below factor · the other, APART where they are not; between factor and factor · spread nothing is decided.
struct Check {
  enum class Relation { BELOW, ALIKE, APART };
  Side less, more;
  double factor = 1, spread = 1;
  Relation relation = Relation::BELOW;
  bool of_one_run = false;
  std::string unmet = "learned too little";  // what it means where it is a condition that does not hold
};

// What a paper says, and the comparisons of measured numbers that it comes down to.
struct Claim {
  std::string says;
  std::vector<Check> checks;
  std::string remark = {};  // what has to be known beside the verdict; numbers of ours in it are `beside`
  // What must hold before anything is decided: that a model has learned what the claim is about. One that knows nothing would
  // confirm many.
  std::vector<Check> conditions = {};
  bool small = false;             // by a smaller model than the paper's at every size of the plan
  std::vector<Side> beside = {};  // measured numbers that the remark ends with; those that are not there are left out
};

// The measured numbers of comparisons; of a claim those of its checks and of what stands beside them.
std::vector<Cell> cells_of(const std::vector<Check>& checks);
std::vector<Cell> cells_of(const Claim& claim);

// A figure of ours, drawn from numbers that several runs left.
struct Plot {
  struct Curve {
    std::string name;
    std::vector<std::pair<double, Cell>> points;  // those that are there
  };
  std::string file, title, x, y;
  std::vector<Curve> curves;
  bool log_x = false, log_y = false;
};

// A figure that a program drew; of one that is not there nothing is said.
struct PlanPicture {
  std::string file, caption;  // "train/compare.svg"
};

// Words that a program wrote: a file of a part, or "samples.log": all that the part "samples" said.
struct Listing {
  std::string title, file;
  std::string from;  // begins with the first line that begins with this
};

// How large a paper says that a model is. What is as large as that here is a run's model of that name, or one of several.
struct ModelSize {
  enum class Counts { ALL, BLOCKS };
  std::string part, model;  // "transformer": as the program names it
  double millions;
  std::string remark = {};      // what the paper counts
  Counts counts = Counts::ALL;  // BLOCKS: without embeddings and readout
  double margin = 0.03;         // papers round, and count readouts or not
};

struct Plan {
  std::string size;         // what is smaller than in the paper, and what is not the same
  bool comparable = false;  // numbers of the paper and ours are of the same kind: their difference is shown
  std::vector<Command> commands;
  std::vector<Row> rows;
  std::vector<Plot> plots;
  std::vector<PlanPicture> pictures;
  std::vector<Listing> listings;
  std::vector<Claim> claims;
  std::vector<ModelSize> model_sizes;
  std::vector<std::string> tables;  // CSV files worth keeping besides those of the rows and plots
};

struct Experiment {
  std::string name;
  std::string paper, where;  // "figure 2 (b)"
  std::string title, shows;  // what the paper found
  std::string data;          // what --full wants: "--data FILE"; empty: nothing
  // What it costs at each size on two cores or a GPU; empty: there is no such plan, and of `full` that it is the quick one.
  std::string quick, full;
  Plan (*plan)(const Scale& scale);
  std::string evening = {};
  std::string evening_data = {};  // what --evening wants
};

// By paper, in the order of the papers.
const std::vector<Experiment>& experiments();

// The tables of experiments, a file a family.
std::vector<Experiment> copying_experiments();
std::vector<Experiment> sweep_experiments();     // what the settings of the copying papers come from
std::vector<Experiment> modeling_experiments();  // text and images
std::vector<Experiment> position_experiments();
std::vector<Experiment> mlp_experiments();
std::vector<Experiment> regular_experiments();

// What the steps of three seeds lie within, times: 135 to 175 of the small CausalRN at 16 letters.
constexpr double SEED_SPREAD = 1.3;

// Where runs are so short that several seeds can be afforded, three: that of a plan's own commands and these, each a part of its
// own, "seed2" beside "train" and "length8-seed2" beside "length8".
extern const std::vector<std::string> OTHER_SEEDS;
std::string seed_part(const std::string& part, const std::string& seed);
// The same number of all three, where several were run.
Cell of_seeds(Cell cell, bool several = true);
// How many numbers it should be judged by: one of each seed, or of all seeds together.
size_t planned_numbers(const Cell& cell);
// That of one of a cell's files: of the first, 0, or of one of the others. One of all rows stays as it is.
Cell of_one_seed(const Cell& cell, size_t seed);
// What is measured, and of how many: "Perplexity, the mean of three seeds".
std::string measured_of(const std::string& what, bool several);
// Each command that trains once more with each of them, and those that look at what it left.
void add_seeds(Plan& plan);

// The titles of the papers.
extern const char *const COPYING_PAPER, *const LINEAR_PAPER, *const POSITIONS_PAPER, *const MLP_PAPER,
                                                                                         *const REGULAR_PAPER;

// What evening plans of text want: any text will do.
extern const char* const WIKITEXT_2;

// The options of train_text and scaling for this text: " --data FILE …", or none. Characters that ASCII lacks become '?'.
std::string text_options(const Scale& scale);

// What a model of text would get that knows the last k tokens only: the part "counts", and its perplexity; and the best of such
// tables, which a model must beat before anything is said of what it makes of a long text. Of a large vocabulary, where k tokens
// say more, k is MOST_WORDS at most, and 30 million tokens are counted. `window`: the table is asked in windows of so many tokens, as
// a model is whose perplexity is a mean over windows (analysis/token_counts.h); 0: each token after as many as it likes, as a
// model is that answers at the end of a window only.
constexpr int MOST_WORDS = 2;
Command counts_command(const Scale& scale, int window = 0);
// The tokens that train_text asks for with --evaluate-lengths, of which `longest` is the last, and --length-windows: such a table is
// asked for them alone.
struct LastTokens {
  std::string longest, windows;
};
Command counts_command(const Scale& scale, const LastTokens& asked);
Side counted(int k, const Scale& scale, int window = 0);
Side counted_best(int window = 0);
// What the training of a part said, at its last evaluation, of text that it does not learn from.
Cell last_perplexity(const std::string& part, const std::string& steps, bool seeds);
extern const Listing COUNTED_LISTING;

// Words to a line and back, as a shell reads them. A word with spaces or signs of the shell's stands in double quotes.
std::string as_word(const std::string& word);
std::vector<std::string> words_of(const std::string& line);
// What stands behind an option; nothing where it is not given.
std::optional<std::string> word_behind(const std::vector<std::string>& words, const std::string& option);

}  // namespace petroglyph
