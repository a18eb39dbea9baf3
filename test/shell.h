// A program as a test meets it: run by a shell in an empty folder of its own.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <deque>
#include <functional>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/safetensors.h"
#include "base/text.h"
#include "check.h"

namespace petroglyph {

struct Outcome {
  int status;
  std::string output;  // of both streams

  bool prints(const std::string& words) const { return output.find(words) != std::string::npos; }
  std::string weights() const {  // the last line's fingerprint
    const size_t at = output.rfind("weights ");
    if (at == std::string::npos) throw std::runtime_error("no weights are said: " + output);
    return output.substr(at + 8, 16);
  }
};

// A run's log without its last column, the seconds, which are others in every run.
inline std::string log_rows(const std::string& path) {
  std::string rows;
  std::istringstream lines(read_bytes(path));
  for (std::string line; std::getline(lines, line);) rows += line.substr(0, line.rfind(',')) + "\n";
  return rows;
}

// A table in which words may stand, by row and column.
struct Cells {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;

  explicit Cells(const std::string& bytes) {
    std::istringstream lines(bytes);
    for (std::string line; std::getline(lines, line);) rows.push_back(split(line, ','));
    names = rows.at(0);
    rows.erase(rows.begin());
  }
  const std::string& at(size_t row, const std::string& column) const {
    return rows.at(row).at(static_cast<size_t>(std::find(names.begin(), names.end(), column) - names.begin()));
  }
  double number(size_t row, const std::string& column) const {  // NaN where there is none
    return parse_number(at(row, column)).value_or(std::nan(""));
  }
};

// Shell text: waits until a condition holds, or until the program in the background, whose number is $child, has ended:
// then what comes next fails rather than waits for ever.
inline std::string wait_until(const std::string& condition) {
  return "until " + condition + " || ! kill -0 $child 2>/dev/null; do sleep 0.02; done; ";
}
// The same for a file of more lines than that.
inline std::string wait_for_lines(const std::string& file, int lines) {
  return wait_until("[ $(cat " + file + " 2>/dev/null | wc -l) -gt " + std::to_string(lines) + " ]");
}

// A copy of a checkpoint with other metadata and tensors.
using ChangeMetadata = std::function<std::string(const std::string& key, const std::string& value)>;
using ChangeTensor =
    std::function<void(const std::string& name, std::vector<int64_t>& shape, std::vector<float>& values)>;
inline void change_checkpoint(const std::string& path, const std::string& to, const ChangeMetadata& metadata,
                              const ChangeTensor& tensor = {}) {
  SafetensorsWriter writer;
  std::deque<std::vector<float>> kept;
  const SafetensorsFile file(path);
  for (const auto& [key, value] : file.metadata()) writer.metadata(key, metadata ? metadata(key, value) : value);
  for (const std::string& name : file.names()) {
    std::vector<int64_t> shape = file.entry(name).shape;
    std::vector<float>& values = kept.emplace_back(file.read_as_float(name));
    if (tensor) tensor(name, shape, values);
    writer.add(name, shape, values.data());
  }
  writer.save(to);
}

// What an output must contain: one text or several.
struct Words {
  std::vector<std::string> all;

  Words(const char* words) : all{words} {}
  Words(const std::string& words) : all{words} {}
  Words(std::initializer_list<std::string> words) : all(words) {}
};

// The arguments of a program, its exit status, and what it prints.
struct Command {
  std::string arguments;
  int status;
  Words words;
};

// A program of the same build as the test, in an empty folder of its own. Shell text finds all programs by their names.
class Shell : public TemporaryFolder {
 public:
  explicit Shell(Test& test, const std::string& program = "")
      : test_(test),
        folder_(std::filesystem::absolute(test.program()).parent_path().parent_path().string()),
        program_(program) {}

  const std::string& programs() const { return folder_; }

  // `before` is shell text that comes first, such as "ulimit -f 1;".
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    return script(before + program_ + " " + arguments);
  }
  Outcome script(const std::string& commands) const {
    const std::string command = "cd '" + path() + "' && { PATH='" + folder_ + "':$PATH; " + commands + "\n} 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("cannot start a shell");
    Outcome outcome;
    char buffer[4096];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.output.append(buffer, n);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
  }

  // Checks of the program, of several commands, and of shell text: they end with this status and print these words. A
  // program that fails begins its last line with its name.
  Outcome expect(const std::string& arguments, int status, const Words& words, const std::string& before = "") const {
    const Outcome outcome = run(arguments, before);
    const size_t end = outcome.output.find_last_not_of('\n') + 1, start = outcome.output.rfind('\n', end - 1) + 1;
    const bool named = status == 0 || outcome.output.compare(start, program_.size() + 2, program_ + ": ") == 0;
    return check(before + program_ + " " + arguments, outcome, status, words, named);
  }
  void expect(std::initializer_list<Command> commands) const {
    for (const Command& one : commands) expect(one.arguments, one.status, one.words);
  }
  Outcome expect_script(const std::string& commands, int status, const Words& words) const {
    return check(commands, script(commands), status, words);
  }
  void expect_script(std::initializer_list<Command> commands) const {
    for (const Command& one : commands) expect_script(one.arguments, one.status, one.words);
  }
  void leaves(const std::string& folder, std::initializer_list<const char*> names) const {
    for (const char* name : names) test_.check(std::string("leaves ") + name, exists(folder + name));
  }
  // Each of these files is the same in both folders.
  void same_files(const std::string& folder, const std::string& other, std::initializer_list<const char*> files) const {
    for (const char* file : files) test_.equal(folder + file, read(folder + file), read(other + file));
  }
  // Of a run, without the seconds.
  std::string log(const std::string& run) const { return log_rows(file("runs/" + run + "/log.csv")); }

 private:
  Outcome check(const std::string& name, Outcome outcome, int status, const Words& words, bool good = true) const {
    good = good && outcome.status == status;
    for (const std::string& some : words.all) good = good && outcome.prints(some);
    test_.check(name, good, "status " + std::to_string(outcome.status) + ", printed: " + outcome.output);
    return outcome;
  }

  Test& test_;
  std::string folder_, program_;
};

}  // namespace petroglyph
