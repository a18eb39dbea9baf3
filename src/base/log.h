// The log of a run: a CSV file with one row a step, which a killed or resumed run never spoils.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "base/checksum.h"

namespace petroglyph {

class CsvLog {
 public:
  // A new log; the first column is the step. An existing file is an Error.
  static CsvLog create(const std::string& path, const std::vector<std::string>& columns);

  // Continues a log whose checkpoint stands at `step`: the rows of steps 0 … step−1 stay byte for byte, later ones are
  // dropped. Throws Error, with nothing changed, if one of them is missing, if they do not have `checksum` (empty: not
  // known), or if the columns differ. At step 0 a missing file is created.
  static CsvLog resume(const std::string& path, const std::vector<std::string>& columns, int64_t step,
                       const std::string& checksum = "");

  // Adds a row: the step and the other columns with 9 digits, enough for every float. When append() returns, it is in
  // the file.
  void append(int64_t step, const std::vector<double>& values);
  // Of all rows so far, but for a last column called seconds, which is another in every run.
  std::string checksum() const { return checksum_.hex(); }
  // Before a checkpoint is saved, so that the log never ends before it.
  void flush_to_disk() {
    if (file_) file_->flush_to_disk();
  }

 private:
  CsvLog(const std::string& path, const std::vector<std::string>& columns);
  void open();

  std::string path_;
  bool timed_;  // the last column is called seconds
  Checksum checksum_;
  std::optional<std::string> covered_;  // the rows that the checkpoint covers: the file before the first new row
  std::unique_ptr<OutputFile> file_;
};

// A number as a log has it: nine digits, and counts whole.
std::string log_text(double value);

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
