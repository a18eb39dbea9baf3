#include "base/log.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// Calls line(text with its newline, number from 1) for each whole line; a last one without a newline was cut off.
template <class Function>
void for_each_line(std::string_view content, Function line) {
  int number = 0;
  for (size_t at = 0, end; (end = content.find('\n', at)) != std::string_view::npos; at = end + 1) {
    line(content.substr(at, end + 1 - at), ++number);
  }
}

std::optional<double> cell_value(std::string_view cell) {
  constexpr double INFINITE = std::numeric_limits<double>::infinity();
  if (cell.empty() || cell == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (cell == "inf") return INFINITE;
  if (cell == "-inf") return -INFINITE;
  return parse_number(cell);
}

// A row as the checksum sees it: without the last cell of one that is `timed`, and with one kind of line end.
void absorb_row(Checksum& checksum, std::string_view line, bool timed) {
  line = trim(line);
  if (timed) line = line.substr(0, line.rfind(','));
  checksum.update(line.data(), line.size());
  checksum.update("\n", 1);
}

}  // namespace

std::string log_text(double value) {
  const bool a_count = std::fabs(value) >= 1e9 && std::fabs(value) < 1e15 && value == std::floor(value);
  return a_count ? exact_text(value) : number_text(value, 9);
}

CsvLog::CsvLog(const std::string& path, const std::vector<std::string>& columns)
    : path_(path), timed_(columns.back() == "seconds") {}

CsvLog CsvLog::create(const std::string& path, const std::vector<std::string>& columns) {
  if (is_there(path)) throw Error(path + ": a log is here already, of another run; nothing was changed");
  write_file_atomically(path, join(columns, ",") + "\n");
  return CsvLog(path, columns);
}

CsvLog CsvLog::resume(const std::string& path, const std::vector<std::string>& columns, int64_t step,
                      const std::string& checksum) {
  const std::string stands = ", and the checkpoint stands at step " + with_commas(step) + "; nothing was changed";
  if (!is_there(path)) {
    if (step > 0) throw Error(path + ": is missing" + stands);
    return create(path, columns);
  }
  const bool timed = columns.back() == "seconds";
  const std::string content = read_file(path), header = join(columns, ",");
  std::string covered;
  int64_t next = 0;
  Checksum rows;
  for_each_line(content, [&](std::string_view line, int number) {
    if (number == 1) {
      if (trim(line) != header) throw Error(path + ":1: expected the columns " + header + "; nothing was changed");
      covered += line;
      return;
    }
    if (next == step) return;
    absorb_row(rows, line, timed);
    covered += line;
    ++next;
  });
  if (next < step) throw Error(path + ": ends before the row of step " + with_commas(next) + stands);
  if (!checksum.empty() && rows.hex() != checksum)
    throw Error(path + ": its rows before step " + with_commas(step) +
                " are not those that the checkpoint was saved with; nothing was changed");
  if (covered.empty()) covered = header + "\n";
  CsvLog log(path, columns);
  if (covered != content) log.covered_ = covered;
  log.checksum_ = rows;
  return log;
}

// Rows after the checkpoint's step are dropped when the first new one is added, so that a command that is refused
// changes nothing.
void CsvLog::open() {
  if (covered_) write_file_atomically(path_, *covered_);
  covered_.reset();
  file_ = std::make_unique<OutputFile>(path_, OutputFile::Mode::Append);
}

void CsvLog::append(int64_t step, const std::vector<double>& values) {
  std::string row = std::to_string(step);
  for (double value : values) row += "," + log_text(value);
  if (!file_) open();
  file_->write(row + "\n");
  absorb_row(checksum_, row, timed_);
}

const std::vector<double>& CsvTable::column(const std::string& name) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return columns[i];
  }
  throw Error(path + ": it has no column " + name + ", only " + join(names, ", "));
}

CsvTable read_csv(const std::string& path) {
  CsvTable table;
  table.path = path;
  for_each_line(read_file(path), [&](std::string_view line, int number) {
    const std::vector<std::string> cells = split(trim(line), ',');
    if (number == 1) {
      table.names = cells;
      table.columns.resize(cells.size());
      return;
    }
    for (size_t i = 0; i < table.names.size(); ++i) {
      const std::optional<double> value =
          cells.size() == table.names.size() ? cell_value(cells[i]) : std::optional<double>();
      if (!value) throw Error(text("%s:%d: expected a row of %zu numbers", path.c_str(), number, table.names.size()));
      table.columns[i].push_back(*value);
    }
  });
  if (table.names.empty()) throw Error(path + ": expected a line of column names");
  return table;
}

Evaluations::Evaluations(const CsvTable& log) {
  for (size_t i = 0; i < log.rows(); ++i) {
    if (!std::isfinite(log.column("eval_loss")[i])) continue;
    steps.push_back(log.column("step")[i]);
    losses.push_back(log.column("eval_loss")[i]);
    accuracies.push_back(log.column("eval_accuracy")[i]);
  }
}

}  // namespace petroglyph
