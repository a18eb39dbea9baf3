#include "reproduction/experiment.h"

#include <algorithm>
#include <iomanip>
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
  std::vector<std::string> statements;
  bool continues = false;
  for (const std::string& whole : split(text, '\n')) {
    std::string line = trimmed(whole);
    if (!continues && (line.empty() || line[0] == '#')) continue;
    const bool more = !line.empty() && line.back() == '\\';
    if (more) line.pop_back();
    if (continues)
      statements.back() += line;
    else
      statements.push_back(line);
    continues = more;
  }
  return statements;
}

// "train/compare.csv" is the file compare.csv of the part train; "counts.log" is the output of the part counts.
void set_file(const std::string& path, std::string* part, std::string* file) {
  const size_t slash = path.find('/');
  const bool log = slash == std::string::npos && path.size() > 4 && path.substr(path.size() - 4) == ".log";
  if (slash == std::string::npos && !log) throw Error(path + ": expected PART/FILE or PART.log");
  *part = path.substr(0, log ? path.size() - 4 : slash);
  *file = log ? "" : path.substr(slash + 1);
}

Cell cell_of(const std::string& line) {
  std::vector<std::string> words = words_of(line);
  if (words.size() < 3) throw Error(line + ": expected FILE, columns and a format");
  Cell cell;
  set_file(words.front(), &cell.part, &cell.file);
  cell.format = words.back();
  if (cell.file.empty()) {
    for (size_t i = 1; i + 1 < words.size(); ++i) cell.words.push_back(substituted(words[i], {{"newline", "\n"}}));
    return cell;
  }
  for (size_t i = 1; i + 2 < words.size(); ++i) cell.where.push_back(halves(words[i], "="));
  cell.words = split(words[words.size() - 2], '+');
  return cell;
}

NamedFile named_file(const std::string& words) {
  NamedFile named;
  const auto [path, caption] = halves(words, ": ");
  const auto [file, from] = halves(path, " from ");
  set_file(file, &named.part, &named.file);
  named.words = caption;
  named.from = from;
  return named;
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
    if (keyword == "size") {
      std::tie(within_, plan_cost_) = halves(words, ":");
      if (within_ == size_) plan_.cost = plan_cost_;
      return;
    }
    if (keyword == "table" || keyword == "claim") within_.clear();
    if (!within_.empty() && within_ != size_) return;
    if (keyword == "for") {
      const auto [head, rest] = halves(words, ": ");
      const auto [name, values] = halves(head, " in ");
      if (variables_.count(name) > 0) throw Error("for " + name + ": set has this name already");
      for (const std::string& value : parts_of(values, ';')) read(substituted(rest, {{name, value}}));
      return;
    }
    if (!read_head(keyword, words) && !read_table(keyword, words) && !read_claim(keyword, words))
      throw Error("unknown statement " + keyword);
  }

 private:
  bool read_head(const std::string& keyword, const std::string& words) {
    const std::map<std::string, std::string*> texts = {{"title", &plan_.title},
                                                       {"paper", &plan_.paper},
                                                       {"where", &plan_.where},
                                                       {"shows", &plan_.shows},
                                                       {"about", &plan_.about}};
    if (const auto found = texts.find(keyword); found != texts.end()) return *found->second = words, true;
    if (keyword == "set") {
      const auto [name, value] = halves(words, "=");
      variables_[name] = value;
    } else if (keyword == "run") {
      add_runs(words);
    } else if (keyword == "picture") {
      plan_.pictures.push_back(named_file(words));
    } else if (keyword == "listing") {
      plan_.listings.push_back(named_file(words));
    } else if (keyword == "keep") {
      plan_.kept.push_back(named_file(words));
    } else if (keyword == "note") {
      plan_.notes.push_back(words);
    } else {
      return false;
    }
    return true;
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

  bool read_table(const std::string& keyword, const std::string& words) {
    if (keyword == "table") {
      plan_.tables.push_back({words, {}, {}});
    } else if (keyword == "column" || keyword == "row") {
      if (plan_.tables.empty()) throw Error(keyword + " " + words + ": expected a table before it");
      Table& table = plan_.tables.back();
      if (keyword == "column") {
        const auto [label, cell] = halves(words, ": ");
        if (cell.empty()) throw Error("column " + words + ": expected LABEL: CELL");
        table.columns.push_back({label, cell});
      } else {
        add_row(table, words);
      }
    } else if (keyword == "plot") {
      const std::vector<std::string> parts = parts_of(words, '|');
      if (parts.size() != 5) throw Error("plot " + words + ": expected FILE | title | x | y | linear or logarithmic");
      plan_.plots.push_back({parts[0], parts[1], parts[2], parts[3], parts[4] == "logarithmic", {}});
    } else if (keyword == "curve") {
      add_curve(words);
    } else {
      return false;
    }
    return true;
  }

  // "CausalRN = causal_rn | 1.34 | | 100"
  void add_row(Table& table, const std::string& words) {
    Row row;
    const auto [head, paper] = halves(words, " |");
    const size_t equals = head.rfind(" = ");
    const std::string arguments = equals == std::string::npos ? "" : head.substr(equals + 3);
    row.label = trimmed(head.substr(0, equals));
    if (!paper.empty()) row.paper = parts_of(paper, '|');
    if (row.paper.size() > table.columns.size()) throw Error("row " + words + ": more numbers than columns");
    row.paper.resize(table.columns.size());
    Variables variables;
    for (const std::string& argument : words_of(arguments)) variables[std::to_string(variables.size() + 1)] = argument;
    for (const Column& column : table.columns) row.cells.push_back(cell_of(substituted(column.cell, variables)));
    table.rows.push_back(row);
  }

  // "CausalRN: 16 = [CausalRN; 16 letters], 32 = [CausalRN; 32 letters]"
  void add_curve(const std::string& words) {
    if (plan_.plots.empty()) throw Error("curve " + words + ": expected a plot before it");
    const auto [name, points] = halves(words, ": ");
    Plot::Curve curve{name, {}};
    for (std::string point : split(points, ']')) {  // labels may contain commas
      if (point = trimmed(point.substr(std::min(point.size(), point.find_first_of("0123456789")))); point.empty())
        continue;
      const auto [x, reference] = halves(point + "]", "=");
      const std::optional<double> number = parse_number(x);
      if (!number) throw Error("curve " + words + ": expected X = [ROW; COLUMN]");
      curve.points.emplace_back(*number, side(reference).cell.value());
    }
    plan_.plots.back().curves.push_back(curve);
  }

  bool read_claim(const std::string& keyword, const std::string& words) {
    if (keyword == "claim") {
      plan_.claims.emplace_back();
      plan_.claims.back().says = words;
      return true;
    }
    if (plan_.claims.empty()) return false;
    Claim& claim = plan_.claims.back();
    if (keyword == "need") {
      claim.needs.push_back(comparison(words));
    } else if (keyword == "if") {
      claim.conditions.push_back(comparison(words));
    } else if (keyword == "open") {
      claim.open = words;
    } else if (keyword == "number") {
      claim.number = words;
    } else if (keyword == "spread") {
      claim.spread = parse_number(words).value_or(0);
    } else if (keyword == "reduced") {
      claim.reduced = true;
    } else if (keyword == "remark") {
      claim.remarks.push_back(words);
    } else {
      return false;
    }
    return true;
  }

  // "[A; b] < 1.5 * [C; d]"; a condition also has ": its meaning if it does not hold"
  Comparison comparison(const std::string& whole) {
    const size_t end =
        std::min(whole.find(": ", whole.rfind(']') == std::string::npos ? 0 : whole.rfind(']')), whole.size());
    const std::string words = whole.substr(0, end);
    Comparison comparison;
    if (end < whole.size()) comparison.unmet = trimmed(whole.substr(end + 2));
    for (const char* relation : {" each< ", " !~", " ~", " < ", " > "}) {
      const size_t at = words.find(relation);
      if (at == std::string::npos) continue;
      comparison.relation = trimmed(relation);
      std::string right = words.substr(at + std::string(relation).size());
      if (comparison.relation.back() == '~') {
        const auto [factor, rest] = halves(right, " ");
        comparison.within = parse_number(factor).value_or(0);
        right = rest;
      }
      comparison.left = side(words.substr(0, at));
      comparison.right = side(right);
      if (comparison.relation == ">") {
        std::swap(comparison.left, comparison.right);
        comparison.relation = "<";
      }
      return comparison;
    }
    throw Error(whole + ": expected A < B, A > B, A each< B, A ~FACTOR B or A !~FACTOR B");
  }

  // A number, [ROW; COLUMN], best [ROW; COLUMN], mean […], each optionally with FACTOR * in front.
  Side side(const std::string& whole) {
    std::string words = trimmed(whole);
    double factor = 1;
    if (const size_t times = words.find(" * "); times != std::string::npos) {
      factor = parse_number(words.substr(0, times)).value_or(0);
      words = trimmed(words.substr(times + 3));
    }
    Side side;
    if (const std::optional<double> number = parse_number(words)) {
      side.number = *number;
    } else {
      const size_t open = words.find('[');
      if (open == std::string::npos || words.back() != ']') throw Error(words + ": expected a number or [ROW; COLUMN]");
      side = plan_.side_of(words.substr(open + 1, words.size() - open - 2));
      const std::string of = trimmed(words.substr(0, open));
      if (!of.empty() && of != "best" && of != "mean") throw Error(words + ": expected best or mean before [");
      side.of = of.empty() ? Side::Of::SEEDS : of == "best" ? Side::Of::BEST : Side::Of::MEAN;
    }
    side.factor = factor;
    return side;
  }

  Plan& plan_;
  const std::string size_;
  std::string within_, plan_cost_;  // the size that the statements belong to
  Variables variables_;
};

// Generated by the Makefile from experiments/*.txt: {"copy-curves", "title …"}, …
const std::pair<const char*, const char*> TEXTS[] = {
#include "reproduction/experiments.inc"
};

Experiment experiment_of_text(const std::string& name, const std::string& text) {
  Experiment experiment{name, text, {}};
  for (const std::string& statement : statements_of(text))
    if (statement.rfind("size ", 0) == 0) experiment.sizes.push_back(halves(statement.substr(5), ":").first);
  return experiment;
}

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
  for (const std::string& statement : statements_of(text)) {
    try {
      reader.read(statement);
    } catch (const Error& error) {
      throw Error(name + ".txt, " + statement.substr(0, 60) + ": " + error.what());
    }
  }
  return plan;
}

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = [] {
    std::vector<Experiment> list;
    for (const auto& [name, text] : TEXTS) list.push_back(experiment_of_text(name, text));
    const auto place = [](const Experiment& experiment) {  // the position of its paper
      const std::string key = experiment.plan(experiment.sizes.at(0)).paper;
      return std::find_if(PAPERS.begin(), PAPERS.end(), [&](const Paper& paper) { return paper.key == key; });
    };
    std::stable_sort(list.begin(), list.end(),
                     [&](const Experiment& a, const Experiment& b) { return place(a) < place(b); });
    return list;
  }();
  return all;
}

Experiment experiment_of_file(const std::string& path) {
  const size_t slash = path.rfind('/'), begin = slash == std::string::npos ? 0 : slash + 1;
  return experiment_of_text(path.substr(begin, path.size() - begin - 4), read_regular_file(path));
}

std::vector<Experiment> chosen_experiments(const std::vector<std::string>& words) {
  std::vector<Experiment> chosen;
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments()) names.push_back(experiment.name);
  for (const std::string& word : words) {
    if (word.size() > 4 && word.substr(word.size() - 4) == ".txt") {
      chosen.push_back(experiment_of_file(word));
      continue;
    }
    const size_t before = chosen.size();
    for (const Experiment& experiment : experiments())
      if (word == "all" || experiment.name.rfind(word, 0) == 0) chosen.push_back(experiment);
    if (chosen.size() > before) continue;
    const std::string near = nearest_word(word, names);
    throw UsageError("unknown experiment " + word +
                     (near.empty() ? "; ./reproduce list shows all" : " (did you mean " + near + "?)"));
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
  std::string quoted = "\"";
  for (const char c : word) {
    if (c == '"' || c == '\\' || c == '$' || c == '`') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

bool is_of_part(const std::string& run, const std::string& part) {
  return run == part || run.rfind(part + "-", 0) == 0;
}

}  // namespace petroglyph
