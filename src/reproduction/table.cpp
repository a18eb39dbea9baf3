#include "reproduction/table.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

double number_in(const std::string& word) { return parse_number(word).value_or(NOT_A_NUMBER); }

// All records of a file, the first one the names.
std::vector<std::vector<std::string>> records_of(const std::string& bytes) {
  std::vector<std::vector<std::string>> records;
  std::vector<std::string> record;
  std::string field;
  bool quoted = false;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (quoted) {
      if (c == '"' && i + 1 < bytes.size() && bytes[i + 1] == '"') {
        field += '"', ++i;
      } else if (c == '"') {
        quoted = false;
      } else {
        field += c;
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == ',' || c == '\n') {
      record.push_back(std::move(field));
      field.clear();
      if (c == '\n') records.push_back(std::move(record)), record.clear();
    } else {
      field += c;
    }
  }
  if (!field.empty() || !record.empty()) {
    record.push_back(std::move(field));
    records.push_back(std::move(record));
  }
  return records;
}

// The column's numbers in the rows that the cell wants.
std::vector<double> numbers_of(const Cell& cell, const WordTable& table) {
  const size_t column = table.column(cell.column);
  std::vector<double> numbers;
  for (const std::vector<std::string>& row : table.where(cell.where)) numbers.push_back(number_in(row[column]));
  return numbers;
}

std::optional<WordTable> table_of(const Cell& cell, const Finder& find) {
  const std::string path = find(cell.file);
  if (!std::filesystem::exists(path)) return std::nullopt;
  return read_word_table(path);
}

// A step that a comparison's variant reached, or how many it took in vain.
std::string shown_step(const Cell& cell, const WordTable& table) {
  const double step = numbers_of(cell, table).front();
  if (std::isfinite(step)) return with_commas(static_cast<int64_t>(step));
  const double last = number_in(table.where(cell.where).front()[table.column("last_step")]);
  return std::isfinite(last) ? "not in " + with_commas(static_cast<int64_t>(last)) : "";
}

// Of the rows' numbers the one that the form means; NaN where there is none.
double value_of(const Cell& cell, const std::vector<double>& numbers) {
  if (numbers.empty()) return NOT_A_NUMBER;
  switch (cell.form) {
    case Cell::Form::PERCENT: return 100 * numbers.front();
    case Cell::Form::PERPLEXITY: return std::exp(numbers.front());
    case Cell::Form::BEST: return 100 * *std::max_element(numbers.begin(), numbers.end());
    case Cell::Form::BEST_MEAN:
    case Cell::Form::MEAN: return 100 * mean_of(numbers);
    default: return numbers.front();
  }
}

// As the form shows it.
std::string shown_number(const Cell& cell, double x) {
  switch (cell.form) {
    case Cell::Form::STEP: return with_commas(std::llround(x));
    case Cell::Form::SCIENTIFIC: return text("%.1e", x);
    case Cell::Form::MILLIONS: return text("%.*f", cell.digits, x / 1e6);
    case Cell::Form::BEST:
    case Cell::Form::MEAN: return text("%.1f", x);
    default: return text("%.*f", cell.digits, x);
  }
}

// Of one of all rows: those of each file that has some.
std::vector<std::vector<double>> rows_by_file(Cell cell, const Finder& find) {
  std::vector<std::string> files = {cell.file};
  files.insert(files.end(), cell.others.begin(), cell.others.end());
  std::vector<std::vector<double>> found;
  for (const std::string& file : files) {
    cell.file = file;
    const std::optional<WordTable> table = table_of(cell, find);
    if (table && !table->where(cell.where).empty()) found.push_back(numbers_of(cell, *table));
  }
  return found;
}

std::vector<double> numbers_of_rows(const Cell& cell, const Finder& find) {
  std::vector<double> numbers;
  for (const std::vector<double>& some : rows_by_file(cell, find))
    numbers.insert(numbers.end(), some.begin(), some.end());
  return numbers;
}

// The number behind some words of a log, as it stands there.
std::optional<std::string> said(const Cell& cell, const std::string& path) {
  if (!std::filesystem::exists(path)) return std::nullopt;
  const std::string log = read_file(path);
  size_t at = 0;
  const auto go_behind = [&](const std::string& words) {
    if (at != std::string::npos) at = log.find(words, at);
    if (at != std::string::npos) at += words.size();
  };
  for (const auto& word : cell.where) go_behind(word.second);
  go_behind(cell.column);
  if (at != std::string::npos) at = log.find_first_not_of(' ', at);
  if (at == std::string::npos) return std::nullopt;
  const std::string number = log.substr(at, log.find_first_not_of("0123456789.-", at) - at);
  return number.empty() ? std::nullopt : std::optional<std::string>(number);
}

// Of each seed whose file is there, NaN where it did not reach a step.
std::vector<double> cell_seeds(const Cell& cell, const Finder& find) {
  std::vector<double> numbers;
  for (size_t seed = 0; seed <= cell.others.size(); ++seed) {
    const Cell one = of_one_seed(cell, seed);
    if (cell.form == Cell::Form::SAID) {
      const double number = number_in(said(one, find(one.file)).value_or(""));
      if (!std::isnan(number)) numbers.push_back(number);
      continue;
    }
    const std::optional<WordTable> table = table_of(one, find);
    if (!table || table->where(cell.where).empty()) continue;
    const double number = value_of(one, numbers_of(one, *table));
    if (cell.form == Cell::Form::STEP || !std::isnan(number)) numbers.push_back(number);
  }
  return numbers;
}

// Seeds that were not run, or whose loss is not a number.
std::string lacking(const Cell& cell, size_t found) {
  const size_t all = 1 + cell.others.size();
  if (found >= all) return "";
  return found == 1 ? ", one seed" : text(", %zu of %zu seeds", found, all);
}

// "100.0 / 98.2", or one of the two.
std::optional<std::string> shown_of_rows(const Cell& cell, const Finder& find) {
  const std::vector<double> numbers = numbers_of_rows(cell, find);
  if (numbers.empty() || !std::isfinite(mean_of(numbers))) return std::nullopt;
  const std::string shown =
      cell.form == Cell::Form::BEST_MEAN
          ? text("%.1f / %.1f", 100 * *std::max_element(numbers.begin(), numbers.end()), 100 * mean_of(numbers))
          : shown_number(cell, value_of(cell, numbers));
  return shown + lacking(cell, rows_by_file(cell, find).size());
}

// Of steps that some seeds did not reach, how many did.
std::optional<std::string> shown_of_all(const Cell& cell, const Finder& find) {
  const std::vector<double> numbers = cell_seeds(cell, find);
  if (cell.form == Cell::Form::SAID) return shown_seeds(cell, numbers);
  if (numbers.empty()) return std::nullopt;
  const auto missed = std::count_if(numbers.begin(), numbers.end(), [](double x) { return std::isnan(x); });
  if (missed == 0) return shown_seeds(cell, numbers);
  if (missed == static_cast<long>(numbers.size())) {
    const std::optional<WordTable> first = table_of(cell, find);
    const bool found = first && !numbers_of(cell, *first).empty();
    return (found ? shown_step(cell, *first) : std::string("by none")) + lacking(cell, numbers.size());
  }
  const size_t planned = planned_numbers(cell);
  return text("by %zu of %zu seeds only", numbers.size() - static_cast<size_t>(missed), numbers.size()) +
         (numbers.size() < planned ? text(", %zu planned", planned) : "");
}

}  // namespace

size_t WordTable::column(const std::string& name) const {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw Error(path + ": no column " + name + ", expected one of " + join(names, ", "));
  return static_cast<size_t>(found - names.begin());
}

std::vector<std::vector<std::string>> WordTable::where(
    const std::vector<std::pair<std::string, std::string>>& words) const {
  std::vector<std::vector<std::string>> found;
  for (const std::vector<std::string>& row : rows) {
    const bool wanted = std::all_of(words.begin(), words.end(),
                                    [&](const auto& word) { return row[column(word.first)] == word.second; });
    if (wanted) found.push_back(row);
  }
  return found;
}

WordTable read_word_table(const std::string& path) {
  WordTable table;
  table.path = path;
  table.rows = records_of(read_file(path));
  if (table.rows.empty()) throw Error(path + ": empty, expected a first line with the names of columns");
  table.names = table.rows.front();
  table.rows.erase(table.rows.begin());
  for (size_t i = 0; i < table.rows.size(); ++i)
    if (table.rows[i].size() != table.names.size())
      throw Error(text("%s: row %zu has %zu fields, expected %zu", path.c_str(), i + 2, table.rows[i].size(),
                       table.names.size()));
  return table;
}

double mean_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double x : numbers) sum += x;
  return sum / static_cast<double>(numbers.size());
}

std::optional<std::string> shown_seeds(const Cell& cell, const std::vector<double>& numbers) {
  if (numbers.empty()) return std::nullopt;
  const std::string mean = shown_number(cell, mean_of(numbers));
  if (numbers.size() == 1) return mean + lacking(cell, 1);
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  const std::string from = shown_number(cell, *least), to = shown_number(cell, *most);
  return mean + (from == to ? text(" (each of %zu)", numbers.size()) : " (" + from + " to " + to + ")") +
         lacking(cell, numbers.size());
}

bool lacks_rows(const Cell& cell, const Finder& find) {
  return cell.of_all_rows() && rows_by_file(cell, find).size() < 1 + cell.others.size();
}

std::optional<std::string> shown_cell(const Cell& cell, const Finder& find) {
  if (cell.of_all_rows()) return shown_of_rows(cell, find);
  if (!cell.others.empty()) return shown_of_all(cell, find);
  if (cell.form == Cell::Form::SAID) return said(cell, find(cell.file));
  const std::optional<WordTable> table = table_of(cell, find);
  if (!table) return std::nullopt;
  const std::vector<double> numbers = numbers_of(cell, *table);
  if (numbers.empty()) return std::nullopt;
  if (cell.form == Cell::Form::STEP) return shown_step(cell, *table);
  const double x = value_of(cell, numbers);
  return std::isfinite(x) ? std::optional<std::string>(shown_number(cell, x)) : std::nullopt;
}

double cell_number(const Cell& cell, const Finder& find) {
  if (cell.of_all_rows()) return value_of(cell, numbers_of_rows(cell, find));
  if (!cell.others.empty()) {
    const std::vector<double> numbers = cell_seeds(cell, find);
    return numbers.empty() ? NOT_A_NUMBER : mean_of(numbers);
  }
  if (cell.form == Cell::Form::SAID) return number_in(said(cell, find(cell.file)).value_or(""));
  const std::optional<WordTable> table = table_of(cell, find);
  return table ? value_of(cell, numbers_of(cell, *table)) : NOT_A_NUMBER;
}

std::string distance(const std::string& paper, const std::string& ours) {
  const std::vector<std::string> theirs = split(paper, '/'), here = split(ours, '/');
  if (theirs.size() != here.size()) return "";
  std::vector<std::string> parts;
  for (size_t i = 0; i < theirs.size(); ++i) {
    const std::string word(trim(theirs[i]));
    const std::string mean(trim(std::string_view(here[i]).substr(0, here[i].find(" ("))));  // without its seeds' range
    const std::optional<double> a = parse_number(word), b = parse_number(mean);
    if (!a || !b) return "";
    const size_t point = word.find('.');
    const int digits = point == std::string::npos ? 0 : static_cast<int>(word.size() - point - 1);
    std::string apart = text("%.*f", digits, std::fabs(*b - *a));
    const bool none = apart.find_first_not_of("0.") == std::string::npos;
    parts.push_back((none ? "±" : *b > *a ? "+" : "−") + apart);
  }
  return join(parts, " / ");
}

}  // namespace petroglyph
