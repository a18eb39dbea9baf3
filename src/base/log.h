// The log of a run: a CSV file with one row a step, which a killed or resumed run never spoils.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/atomic_file.h"

namespace petroglyph {

class CsvLog {
 public:
  // A new log; the first column is the step. An existing file is an Error unless `replace`.
  static CsvLog create(const std::string& path, const std::vector<std::string>& columns, bool replace = false);

  // Goes on with a log: rows from `step` on (and a last row that was cut off) are dropped, the rest stays byte for
  // byte. A missing file is started anew; a file with other columns is an Error.
  static CsvLog resume(const std::string& path, const std::vector<std::string>& columns, int64_t step);

  // Adds a row: the step and the other columns with 9 digits, enough for every float. When append() returns, it is in
  // the file.
  void append(int64_t step, const std::vector<double>& values);
  // Before a checkpoint is saved, so that the log never ends before it.
  void flush_to_disk() { file_.flush_to_disk(); }

 private:
  CsvLog(const std::string& path, size_t columns);

  std::string path_;
  size_t columns_;
  OutputFile file_;
};

// A CSV file of numbers in memory. An empty cell is NaN; a last row that was cut off is left out.
struct CsvTable {
  std::vector<std::string> names;
  std::vector<std::vector<double>> columns;
  std::string path;

  const std::vector<double>& column(const std::string& name) const;  // throws when there is none
  size_t rows() const { return columns.empty() ? 0 : columns.front().size(); }
};
CsvTable read_csv(const std::string& path);

// The rows of a run's log that have an evaluation.
struct Evaluations {
  std::vector<double> steps, losses, accuracies;

  explicit Evaluations(const CsvTable& log);
};

}  // namespace petroglyph
