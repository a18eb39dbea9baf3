#include "reproduction/experiment.h"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "base/text.h"

namespace petroglyph {

const char* const COPYING_PAPER = "An All-MLP Sequence Modeling Architecture That Excels at Copying";
const char* const LINEAR_PAPER = "Linear-Time Sequence Modeling with MLPs";
const char* const POSITIONS_PAPER =
    "Why Are Positional Encodings Nonessential for Deep Autoregressive Transformers? Revisiting a Petroglyph";
const char* const MLP_PAPER = "MLPs for NLP: Towards Discovering Inductive Bias from Scratch";
const char* const REGULAR_PAPER =
    "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length Extrapolation";

const char* const WIKITEXT_2 = "--data data/wikitext2_train.txt --val data/wikitext2_valid.txt (data/wikitext2.sh)";

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = [] {
    std::vector<Experiment> list;
    for (const auto family : {copying_experiments, sweep_experiments, modeling_experiments, position_experiments,
                              mlp_experiments, regular_experiments})
      for (Experiment& experiment : family()) list.push_back(std::move(experiment));
    return list;
  }();
  return all;
}

const std::vector<std::string> OTHER_SEEDS = {"2", "3"};

std::string seed_part(const std::string& part, const std::string& seed) {
  return (part == "train" ? "seed" : part + "-seed") + seed;
}

Cell of_seeds(Cell cell, bool several) {
  if (!several) return cell;
  const size_t end = cell.file.find_first_of("/.");  // of the part: "train/compare.csv", "clusters.log"
  for (const std::string& seed : OTHER_SEEDS)
    cell.others.push_back(seed_part(cell.file.substr(0, end), seed) + cell.file.substr(end));
  return cell;
}

namespace {

void add_cells(std::vector<Cell>& cells, const Side& side) {
  if (!side.cell.file.empty()) cells.push_back(side.cell);
  cells.insert(cells.end(), side.plus.begin(), side.plus.end());
}

}  // namespace

std::vector<Cell> cells_of(const std::vector<Check>& checks) {
  std::vector<Cell> cells;
  for (const Check& check : checks)
    for (const Side* side : {&check.less, &check.more}) add_cells(cells, *side);
  return cells;
}

std::vector<Cell> cells_of(const Claim& claim) {
  std::vector<Cell> cells = cells_of(claim.checks);
  for (const Side& side : claim.beside) add_cells(cells, side);
  return cells;
}

size_t planned_numbers(const Cell& cell) { return cell.of_all_rows() ? 1 : 1 + cell.others.size(); }

Cell of_one_seed(const Cell& cell, size_t seed) {
  if (cell.of_all_rows()) return cell;
  Cell one = cell;
  if (seed > 0) one.file = cell.others.at(seed - 1);
  one.others.clear();
  return one;
}

std::string measured_of(const std::string& what, bool several) {
  return what + (several ? ", the mean of three seeds" : ", one seed");
}

namespace {

// What a part left, of another seed; a run of train_regular has its seed in its name: "@parity_check/parity_check-seed-1".
std::string word_of_seed(const std::string& word, const std::string& seed) {
  if (word[0] != '@') return word;
  const std::string first = "-seed-1";
  const size_t slash = std::min(word.find('/'), word.size()), named = word.rfind(first);
  std::string other = "@" + seed_part(word.substr(1, slash - 1), seed) + word.substr(slash);
  if (named != std::string::npos && named + first.size() == word.size()) other.replace(other.size() - 1, 1, seed);
  return other;
}

}  // namespace

void add_seeds(Plan& plan) {
  const std::vector<Command> first = plan.commands;
  for (const std::string& seed : OTHER_SEEDS)
    for (Command command : first) {
      if (command.kind == Command::Kind::SAYS) continue;
      command.part = seed_part(command.part, seed);
      for (std::string& word : command.words) word = word_of_seed(word, seed);
      if (command.kind != Command::Kind::WRITES) command.words.insert(command.words.end(), {"--seed", seed});
      plan.commands.push_back(command);
    }
}

namespace {

// A word that begins with an @ means what a part of the plan left.
std::string file_word(const std::string& path) { return as_word((path[0] == '@' ? "./" : "") + path); }

}  // namespace

std::string text_options(const Scale& scale) {
  if (scale.text.empty()) return "";
  return " --data " + file_word(scale.text) +
         (scale.tokenizer.empty() ? " --replace" : " --tokenizer " + as_word(scale.tokenizer)) +
         (scale.validation.empty() ? "" : " --val " + file_word(scale.validation));
}

Command counts_command(const Scale& scale, int window) {
  return {"counts", "inspect",
          words_of("counts" + text_options(scale) +
                   (scale.tokenizer.empty() ? "" : " --last " + std::to_string(MOST_WORDS) + " --most 30000000") +
                   (window == 0 ? "" : " --context " + std::to_string(window))),
          Command::Kind::SAYS, false};
}

Command counts_command(const Scale& scale, const LastTokens& asked) {
  Command command = counts_command(scale);
  command.words.insert(command.words.end(), {"--evaluate-length", asked.longest, "--length-windows", asked.windows});
  return command;
}

const Listing COUNTED_LISTING = {
    "What tables get that know the last few tokens only; a model that is above the one of k tokens may use no more "
    "than k:",
    "counts.log", "the last 0 tokens"};

namespace {

std::string windows_of(int window) { return "in windows of " + with_commas(window); }

// What a line of counts.log says behind this word.
Side said_by_counts(const std::string& label, const std::string& line, const std::string& word) {
  return {label, {"counts.log", {{"", line}}, word + " ", Cell::Form::SAID, 2}};
}

}  // namespace

Side counted(int k, const Scale& scale, int window) {
  if (!scale.tokenizer.empty()) k = std::min(k, MOST_WORDS);
  const std::string tokens = "the last " + std::to_string(k) + " tokens";
  if (window == 0) return said_by_counts("a table of " + tokens, tokens, "perplexity");
  return said_by_counts("a table of " + tokens + ", " + windows_of(window), tokens, windows_of(window));
}

Side counted_best(int window) {
  if (window == 0) return said_by_counts("the best table of the last tokens", "the best of them", "perplexity");
  return said_by_counts("the best table of the last tokens, " + windows_of(window), "the best " + windows_of(window),
                        "perplexity");
}

Cell last_perplexity(const std::string& part, const std::string& steps, bool seeds) {
  const std::string line = "step " + with_commas(std::stoll(steps)) + "  validation loss";
  return of_seeds({part + ".log", {{"", line}}, "perplexity ", Cell::Form::SAID, 2}, seeds);
}

std::string as_word(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`*?[]{}&|;<>()#~!") == std::string::npos) return word;
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> std::quoted(word);) words.push_back(word);
  return words;
}

std::optional<std::string> word_behind(const std::vector<std::string>& words, const std::string& option) {
  const auto found = std::find(words.begin(), words.end(), option);
  if (found == words.end() || found + 1 == words.end()) return std::nullopt;
  return *(found + 1);
}

}  // namespace petroglyph
