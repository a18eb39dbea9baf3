#include "reproduction/experiment.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <regex>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

const std::vector<Paper> PAPERS = {
    {"copying", "An All-MLP Sequence Modeling Architecture That Excels at Copying"},
    {"linear time", "Linear-Time Sequence Modeling with MLPs"},
    {"positions",
     "Why Are Positional Encodings Nonessential for Deep Autoregressive Transformers? Revisiting a Petroglyph"},
    {"MLPs", "MLPs for NLP: Towards Discovering Inductive Bias from Scratch"},
    {"regular languages",
     "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length Extrapolation"}};

namespace {

using Variables = std::map<std::string, std::string>;

std::string trimmed(std::string_view words) { return std::string(trim(words)); }

// The options for the corpora that the scripts in data/ fetch.
const Variables CORPORA = {
    {"C4", "--data data/c4_00000.txt --tokenizer data/gpt2 --val data/c4_valid.txt"},
    {"OWT", "--data data/openwebtext2.txt --tokenizer data/gpt2"},
    {"W2", "--data data/wikitext2_train.txt --replace --val data/wikitext2_valid.txt"},
    {"W103", "--data data/wikitext103_train.txt --replace --val data/wikitext103_valid.txt"},
};

// Replaces {NAME} by its value; other braces are kept.
std::string substituted(std::string line, const Variables& variables) {
  for (const auto& [name, value] : variables)
    for (size_t at = 0; (at = line.find("{" + name + "}", at)) != std::string::npos; at += value.size())
      line.replace(at, name.size() + 2, value);
  return line;
}

// The text before and after the first `sign`; without one, the whole text is before it.
std::pair<std::string, std::string> halves(const std::string& line, const std::string& sign) {
  const size_t at = line.find(sign);
  if (at == std::string::npos) return {trimmed(line), ""};
  return {trimmed(line.substr(0, at)), trimmed(line.substr(at + sign.size()))};
}

std::vector<std::string> parts_of(const std::string& words, char sign) {
  std::vector<std::string> parts;
  for (const std::string& part : split(words, sign)) parts.push_back(trimmed(part));
  return parts;
}

// The statements, without comments, each joined to one line.
std::vector<std::string> statements_of(const std::string& text) {
  static const std::regex continued(R"(\\[ \t\r]*\n[ \t]*)");
  std::vector<std::string> statements;
  for (const std::string& line : split(std::regex_replace(text, continued, ""), '\n'))
    if (const std::string statement = trimmed(line); !statement.empty() && statement[0] != '#')
      statements.push_back(statement);
  return statements;
}

// "train/compare.csv" is the file compare.csv of the part train; "counts.log" is the output of the part counts.
std::pair<std::string, std::string> part_and_file(const std::string& path) {
  const size_t slash = path.find('/');
  if (slash != std::string::npos) return {path.substr(0, slash), path.substr(slash + 1)};
  if (path.size() <= 4 || path.substr(path.size() - 4) != ".log")
    throw Error(path + ": expected PART/FILE or PART.log");
  return {path.substr(0, path.size() - 4), ""};
}

Cell cell_of(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  if (words.size() < 3) throw Error(line + ": expected FILE, columns and a format");
  Cell cell;
  std::tie(cell.part, cell.file) = part_and_file(words.front());
  cell.format = words.back();
  if (cell.file.empty()) {
    cell.words.assign(words.begin() + 1, words.end() - 1);
    return cell;
  }
  for (size_t i = 1; i + 2 < words.size(); ++i) cell.where.push_back(halves(words[i], "="));
  cell.words = split(words[words.size() - 2], '+');
  return cell;
}

// Parses the statements of one size into a plan.
class PlanReader {
 public:
  PlanReader(Plan& plan, std::string size) : plan_(plan), size_(std::move(size)) { plan_.size = size_; }

  void read(std::string statement) {
    statement = substituted(statement, variables_);
    if (statement[0] == '@') {
      const auto [sizes, rest] = halves(statement.substr(1), " ");
      const std::vector<std::string> all = split(sizes, ',');
      if (std::find(all.begin(), all.end(), size_) != all.end()) read(rest);
      return;
    }
    const auto [keyword, words] = halves(statement, " ");
    if (keyword == "size") within_ = halves(words, ",").first;
    if (keyword == "table" || keyword == "claim") within_.clear();
    if (!within_.empty() && within_ != size_) return;
    const auto found = statements_.find(keyword);
    if (found == statements_.end()) throw Error("unknown statement " + keyword);
    found->second(words);
  }

 private:
  using Words = const std::string&;
  const std::map<std::string, std::function<void(Words)>> statements_ = {
      {"title", [this](Words words) { plan_.title = words; }},
      {"paper", [this](Words words) { std::tie(plan_.paper, plan_.where) = halves(words, ", "); }},
      {"shows", [this](Words words) { plan_.shows = words; }},
      {"size", [this](Words words) { std::tie(plan_.cost, plan_.about) = halves(halves(words, ", ").second, ": "); }},
      {"set", [this](Words words) { set(words); }},
      {"for", [this](Words words) { repeat(words); }},
      {"run", [this](Words words) { add_runs(words); }},
      {"show", [this](Words words) { add_shown(words); }},
      {"table",
       [this](Words words) {
         plan_.tables.push_back({words, {}, {}});
       }},
      {"column", [this](Words words) { add_column(words); }},
      {"row", [this](Words words) { add_row(words); }},
      {"plot", [this](Words words) { add_plot(words); }},
      {"point", [this](Words words) { add_point(words); }},
      {"claim", [this](Words words) { plan_.claims.emplace_back().says = words; }},
      {"need", [this](Words words) { claim().needs.push_back(comparison(words)); }},
      {"if", [this](Words words) { claim().conditions.push_back(comparison(words)); }},
      {"open", [this](Words words) { claim().open = words; }},
      {"number", [this](Words words) { claim().number = words; }},
      {"spread", [this](Words words) { claim().spread = parse_number(words).value_or(0); }},
      {"reduced", [this](Words) { claim().reduced = true; }},
      {"remark", [this](Words words) { claim().remarks.push_back(words); }},
  };

  template <class Item>
  static Item& last(std::vector<Item>& items, const char* what) {
    if (items.empty()) throw Error(std::string("expected a ") + what + " before it");
    return items.back();
  }
  Claim& claim() { return last(plan_.claims, "claim"); }

  // "A = a; b", or "A; B = a; b"
  void set(const std::string& words) {
    const auto [left, right] = halves(words, "=");
    const std::vector<std::string> names = parts_of(left, ';'), values = parts_of(right, ';');
    if (names.size() > 1 && names.size() != values.size()) throw Error("set " + words + ": expected a value for each");
    for (size_t i = 0; i < names.size(); ++i) variables_[names[i]] = names.size() > 1 ? values[i] : right;
  }

  // "for X in a; b: STATEMENT"
  void repeat(const std::string& words) {
    const auto [head, statement] = halves(words, ": ");
    const auto [name, values] = halves(head, " in ");
    if (variables_.count(name) > 0) throw Error("for " + name + ": set has this name already");
    for (const std::string& value : parts_of(values, ';')) read(substituted(statement, {{name, value}}));
  }

  // "train, seeds 1 2 3: ./train_copy …"
  void add_runs(const std::string& words) {
    const auto [head, command] = halves(words, ": ");
    const auto [name, seeds] = halves(head, ", seeds ");
    for (const std::string& seed : seeds.empty() ? std::vector<std::string>{"1"} : split(seeds, ' ')) {
      PlannedRun run;
      run.words = words_of(substituted(command, {{"seed", seed}}));
      if (run.words.empty() || run.words[0].rfind("./", 0) != 0) throw Error(command + ": expected ./PROGRAM …");
      run.program = run.words[0].substr(2);
      run.words.erase(run.words.begin());
      run.name = seed == "1" ? name : name + "-seed" + seed;
      for (std::string& word : run.words)  // the output folder of the run with the same seed
        if (word[0] == '@' && seed != "1") word.insert(std::min(word.find('/'), word.size()), "-seed" + seed);
      const bool trains = run.program != "inspect" && run.program != "generate";
      if (seed != "1" && (trains || run.words[0] == "positions")) run.words.insert(run.words.end(), {"--seed", seed});
      plan_.runs.push_back(run);
    }
  }

  // "train/compare.svg: training loss"
  void add_shown(const std::string& words) {
    const auto [path, caption] = halves(words, ": ");
    const auto [part, file] = part_and_file(path);
    plan_.shown.push_back({part, file, caption});
  }

  // "steps to 99 %: train/compare.csv variant={1} step_99 steps"
  void add_column(const std::string& words) {
    const auto [label, cell] = halves(words, ": ");
    if (cell.empty()) throw Error("column " + words + ": expected LABEL: CELL");
    last(plan_.tables, "table").columns.push_back({label, cell});
  }

  // "CausalRN = causal_rn | 1.34 | | 100"
  void add_row(const std::string& words) {
    Table& table = last(plan_.tables, "table");
    Row row;
    const auto [head, paper] = halves(words, " |");
    const size_t equals = head.rfind(" = ");
    const std::string arguments = equals == std::string::npos ? "" : head.substr(equals + 3);
    row.label = trimmed(head.substr(0, equals));
    if (!paper.empty()) row.paper = parts_of(paper, '|');
    if (row.paper.size() > table.columns.size()) throw Error("row " + words + ": more numbers than columns");
    row.paper.resize(table.columns.size());
    Variables numbered;
    for (const std::string& argument : words_of(arguments)) numbered[std::to_string(numbered.size() + 1)] = argument;
    for (const Column& column : table.columns) row.cells.push_back(cell_of(substituted(column.cell, numbered)));
    table.rows.push_back(row);
  }

  // "steps.svg | title | x | y | logarithmic"
  void add_plot(const std::string& words) {
    const std::vector<std::string> parts = parts_of(words, '|');
    if (parts.size() != 5) throw Error("plot " + words + ": expected FILE | title | x | y | linear or logarithmic");
    plan_.plots.push_back({parts[0], parts[1], parts[2], parts[3], parts[4] == "logarithmic", {}});
  }

  // "CausalRN | 16 | CausalRN; 16 letters"
  void add_point(const std::string& words) {
    const std::vector<std::string> parts = parts_of(words, '|');
    const std::optional<double> x = parts.size() == 3 ? parse_number(parts[1]) : std::nullopt;
    if (!x) throw Error("point " + words + ": expected CURVE | X | ROW; COLUMN");
    std::vector<Plot::Curve>& curves = last(plan_.plots, "plot").curves;
    auto curve = std::find_if(curves.begin(), curves.end(), [&](const auto& one) { return one.name == parts[0]; });
    if (curve == curves.end()) curve = curves.insert(curve, {parts[0], {}});
    curve->points.emplace(*x, *plan_.side_of(parts[2]).cell);
  }

  // "[A; b] < 1.5 * [C; d]"
  Comparison comparison(const std::string& words) {
    static const std::regex form(R"((.+) (<|>|~([0-9.]+)) (.+))");
    std::smatch found;
    if (!std::regex_match(words, found, form)) throw Error(words + ": expected A < B, A > B or A ~FACTOR B");
    if (found[2] == ">") return {side(found[4]), side(found[1]), "<"};
    if (found[3].matched) return {side(found[1]), side(found[4]), "~", parse_number(found.str(3)).value_or(0)};
    return {side(found[1]), side(found[4]), found[2]};
  }

  // A number, [ROW; COLUMN], best [ROW; COLUMN], mean […], each optionally with FACTOR * in front.
  Side side(const std::string& words) {
    static const std::regex form(R"((?:([0-9.]+) \* )?(?:(best|mean) )?(?:\[(.+)\]|([0-9.e-]+)))");
    std::smatch found;
    if (!std::regex_match(words, found, form)) throw Error(words + ": expected a number or [ROW; COLUMN]");
    Side side;
    if (found[3].matched) side = plan_.side_of(found[3]);
    side.number = parse_number(found.str(4)).value_or(0);
    side.factor = parse_number(found.str(1)).value_or(1);
    if (found[2].matched) side.of = found[2] == "best" ? Side::Of::BEST : Side::Of::MEAN;
    return side;
  }

  Plan& plan_;
  const std::string size_;
  std::string within_;  // the size that the statements belong to
  Variables variables_ = CORPORA;
};

// Generated by the Makefile from experiments/*.txt: {"copy-curves", "title …"}, …
const std::pair<const char*, const char*> TEXTS[] = {
#include "reproduction/experiments.inc"
};

}  // namespace

Side Plan::side_of(const std::string& reference) const {
  const auto [row, column] = halves(reference, ";");
  for (const Table& table : tables)
    for (const Row& line : table.rows)
      for (size_t i = 0; i < line.cells.size(); ++i)
        if (line.label == row && (column.empty() || table.columns[i].label == column))
          return {row, table.columns[i].label, line.cells[i]};
  throw Error("[" + reference + "]: no table has this row and column");
}

Plan Experiment::plan(const std::string& size) const {
  Plan plan;
  plan.name = name;
  PlanReader reader(plan, size);
  for (const std::string& statement : statements) {
    try {
      reader.read(statement);
    } catch (const Error& error) {
      throw Error(name + ".txt, " + statement.substr(0, 60) + ": " + error.what());
    }
  }
  return plan;
}

Experiment experiment_of_text(const std::string& name, const std::string& text, const std::vector<Experiment>& known) {
  Experiment experiment{name, {}, {}};
  std::vector<std::string>& all = experiment.statements;
  const auto is = [](const char* keyword) {
    return [=](const std::string& statement) { return halves(statement, " ").first == keyword; };
  };
  for (const std::string& statement : statements_of(text)) {
    const auto other = std::find_if(known.begin(), known.end(),
                                    [&](const Experiment& one) { return statement == "sizes of " + one.name; });
    if (other == known.end()) {
      all.push_back(statement);
      continue;
    }
    const auto first = std::find_if(other->statements.begin(), other->statements.end(), is("size"));
    all.insert(all.end(), first, std::find_if(first, other->statements.end(), is("table")));
  }
  for (const std::string& statement : all)
    if (is("size")(statement)) experiment.sizes.push_back(halves(statement.substr(5), ",").first);
  return experiment;
}

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = [] {
    std::vector<Experiment> list;
    for (const auto& [name, text] : TEXTS) list.push_back(experiment_of_text(name, text, list));
    return list;
  }();
  return all;
}

std::vector<Experiment> chosen_experiments(const std::vector<std::string>& words) {
  std::vector<Experiment> chosen;
  for (const std::string& word : words) {
    if (word.size() > 4 && word.substr(word.size() - 4) == ".txt") {
      const std::string name = std::filesystem::path(word).stem().string();
      chosen.push_back(experiment_of_text(name, read_file(word), experiments()));
      continue;
    }
    const size_t before = chosen.size();
    for (const Experiment& experiment : experiments())
      if (word == "all" || experiment.name.rfind(word, 0) == 0) chosen.push_back(experiment);
    if (chosen.size() == before) throw UsageError("unknown experiment " + word + "; ./reproduce list shows all");
  }
  return chosen;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> std::quoted(word);) words.push_back(word);
  return words;
}

std::string as_word(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\n'\"\\$`*?[]{}&|;<>()#~!") == std::string::npos) return word;
  std::ostringstream quoted;
  quoted << std::quoted(word);
  return quoted.str();
}

bool is_of_part(const std::string& run, const std::string& part) {
  return run == part || run.rfind(part + "-", 0) == 0;
}

}  // namespace petroglyph
