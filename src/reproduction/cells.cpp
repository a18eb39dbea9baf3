#include "reproduction/cells.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

using Fields = std::vector<std::string>;

// Splits a line at commas; fields "in quotes" may contain commas and doubled quotes.
Fields fields_of(const std::string& line) {
  Fields fields = {""};
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool doubled = quoted && line.compare(i, 2, "\"\"") == 0;
    if (line[i] == '"' && !doubled) {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += line[i];
      i += doubled;
    }
  }
  return fields;
}

// A CSV table with text fields. base/log.h reads tables of numbers.
class WordTable {
 public:
  explicit WordTable(const std::string& path) : path_(path) {
    for (const std::string& line : split(read_file(path), '\n')) {
      if (!line.empty()) rows_.push_back(fields_of(line));
      if (!line.empty() && rows_.back().size() != rows_[0].size())
        throw Error(text("%s: row %zu has %zu fields, expected %zu", path.c_str(), rows_.size(), rows_.back().size(),
                         rows_[0].size()));
    }
    if (rows_.empty()) throw Error(path + ": empty, expected a first line with the names of columns");
  }
  size_t column(const std::string& name) const {
    const auto found = std::find(rows_[0].begin(), rows_[0].end(), name);
    if (found == rows_[0].end())
      throw Error(path_ + ": no column " + name + ", expected one of " + join(rows_[0], ", "));
    return static_cast<size_t>(found - rows_[0].begin());
  }
  // The rows that have these values in these columns.
  std::vector<Fields> where(const std::vector<std::pair<std::string, std::string>>& words) const {
    std::vector<Fields> found;
    for (size_t i = 1; i < rows_.size(); ++i)
      if (std::all_of(words.begin(), words.end(),
                      [&](const auto& word) { return rows_[i][column(word.first)] == word.second; }))
        found.push_back(rows_[i]);
    return found;
  }

 private:
  std::string path_;
  std::vector<Fields> rows_;
};

constexpr double NO_NUMBER = std::numeric_limits<double>::quiet_NaN();
constexpr double NEVER = std::numeric_limits<double>::infinity();

bool is_percent(const std::string& format) { return format[0] == '%' || format == "best%"; }

void add_rows(const Cell& cell, const WordTable& table, Numbers& numbers) {
  for (const Fields& row : table.where(cell.where)) {
    double sum = 0;
    for (const std::string& column : cell.words) sum += parse_number(row[table.column(column)]).value_or(NO_NUMBER);
    if (cell.format == "steps" && !std::isfinite(sum)) {
      numbers.last_step = parse_number(row[table.column("last_step")]).value_or(0);
      sum = NEVER;
    }
    if (std::isnan(sum)) continue;
    numbers.values.push_back(is_percent(cell.format)            ? 100 * sum
                             : cell.format.rfind("exp", 0) == 0 ? std::exp(sum)
                                                                : sum);
  }
}

// The number after the last of the words, which are searched one after the other.
void add_said(const Cell& cell, const std::string& log, Numbers& numbers) {
  size_t at = 0;
  for (const std::string& words : cell.words) {
    at = log.find(words, at);
    if (at == std::string::npos) return;
    at += words.size();
  }
  at = log.find_first_not_of(" \n", at);
  if (at == std::string::npos) return;
  const std::string word = log.substr(at, log.find_first_not_of("0123456789.-", at) - at);
  if (const std::optional<double> number = parse_number(word)) numbers.values.push_back(*number);
}

int digits_of(const std::string& format) {
  const char last = format.back();
  return last >= '0' && last <= '9' ? last - '0' : 1;
}

}  // namespace

size_t Measured::done() const {
  return static_cast<size_t>(std::count_if(runs.begin(), runs.end(), [](const RunRecord& run) { return run.done; }));
}

std::string Measured::path(const std::string& run, const std::string& file) const {
  std::string name = file.empty() ? run + ".log" : run + "-" + file;
  std::replace(name.begin(), name.end(), '/', '-');
  return folder + "/" + name;
}

Measured read_measured(const Plan& plan, const std::string& folder) {
  Measured measured{plan, folder, {}};
  const std::string path = folder + "/runs.csv";
  if (!is_there(path)) return measured;
  const WordTable table(path);
  for (const Fields& row : table.where({})) {
    const auto field = [&](const char* name) { return row[table.column(name)]; };
    measured.runs.push_back({field("run"), field("command"), parse_number(field("seconds")).value_or(0),
                             field("done") == "yes", field("weights"), field("machine")});
  }
  return measured;
}

void write_runs(const std::string& folder, const std::vector<RunRecord>& runs) {
  std::string table = "run,command,seconds,done,weights,machine\n";
  for (const RunRecord& run : runs)
    table += run.name + "," + csv_cell(run.command) + text(",%.0f,%s,", run.seconds, run.done ? "yes" : "no") +
             csv_cell(run.weights) + "," + csv_cell(run.machine) + "\n";
  write_file_atomically(folder + "/runs.csv", table);
}

Numbers numbers_of(const Cell& cell, const Measured& measured) {
  Numbers numbers;
  for (const RunRecord& run : measured.runs) {
    if (!is_of_part(run.name, cell.part)) continue;
    ++numbers.runs;
    numbers.missing += !run.done;
    const std::string path = measured.path(run.name, cell.file);
    if (!run.done || !is_there(path)) continue;
    if (cell.file.empty())
      add_said(cell, read_file(path), numbers);
    else
      add_rows(cell, WordTable(path), numbers);
  }
  return numbers;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::string shown_number(const std::string& format, double value) {
  if (std::isinf(value)) return "not reached";
  if (format == "steps") return with_commas(std::llround(value));
  if (format == "e1") return text("%.1e", value);
  return text("%.*f", digits_of(format), format[0] == 'M' ? value / 1e6 : value);
}

std::string shown(const Cell& cell, const Numbers& numbers) {
  const std::vector<double>& values = numbers.values;
  if (values.empty()) return "";
  const auto reached = std::count_if(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  if (reached == 0) return "not in " + with_commas(std::llround(numbers.last_step));
  if (reached < static_cast<long>(values.size())) return text("by %td of %zu seeds only", reached, values.size());
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const std::string mean = shown_number(cell.format, mean_of(values));
  if (cell.format == "best%") return shown_number("%1", *most) + " / " + mean;
  const std::string from = shown_number(cell.format, *least), to = shown_number(cell.format, *most);
  if (values.size() == 1 || (from == to && cell.format[0] == 'M')) return mean;
  return mean + (from == to ? text(" (each of %zu)", values.size()) : " (" + from + " to " + to + ")");
}

std::string with_numbers(const std::string& words, const Measured& measured) {
  std::string out = words;
  for (size_t at; (at = out.find("{[")) != std::string::npos;) {
    const size_t end = out.find("]}", at);
    if (end == std::string::npos) throw Error(words + ": expected {[ROW; COLUMN]}");
    const Cell cell = *measured.plan.side_of(out.substr(at + 2, end - at - 2)).cell;
    const std::string number = shown(cell, numbers_of(cell, measured));
    if (number.empty()) return "";
    out.replace(at, end + 2 - at, number);
  }
  return out;
}

}  // namespace petroglyph
