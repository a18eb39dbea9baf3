// A program as a test meets it: run by a shell in an empty folder of its own.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

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

// Shell text: waits until a condition holds, or until the program in the background, whose number is $child, has ended:
// then what comes next fails rather than waits for ever.
inline std::string wait_until(const std::string& condition) {
  return "until " + condition + " || ! kill -0 $child 2>/dev/null; do sleep 0.02; done; ";
}
// The same for a file of more lines than that.
inline std::string wait_for_lines(const std::string& file, int lines) {
  return wait_until("[ $(cat " + file + " 2>/dev/null | wc -l) -gt " + std::to_string(lines) + " ]");
}

// A program in a folder of its own. Shell text finds the programs beside it by their names.
class Shell : public TemporaryFolder {
 public:
  explicit Shell(const std::string& program) : program_(program) {}

  // `before` is shell text that comes first, such as "ulimit -f 1;".
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    return script(before + " '" + program_ + "' " + arguments);
  }
  Outcome script(const std::string& commands) const {
    const std::string folder = std::filesystem::path(program_).parent_path().string();
    const std::string found = folder.empty() ? "" : "PATH='" + folder + "':$PATH; ";
    const std::string command = "cd '" + path() + "' && { " + found + commands + "\n} 2>&1";
    std::FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) throw std::runtime_error("cannot start a shell");
    Outcome outcome;
    char buffer[4096];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.output.append(buffer, n);
    const int status = pclose(pipe);
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return outcome;
  }
  // Of a run, without the seconds.
  std::string log(const std::string& run) const { return log_rows(file("runs/" + run + "/log.csv")); }

 private:
  std::string program_;
};

// What an output must contain: one text or several.
struct Words {
  std::vector<std::string> all;

  Words(const char* words) : all{words} {}
  Words(const std::string& words) : all{words} {}
  Words(std::initializer_list<std::string> words) : all(words) {}
};

// A class of checks of programs derives from this one.
class ProgramChecks {
 public:
  explicit ProgramChecks(Test& test) : test_(test) {}

 protected:
  // Runs the shell's program, which must exit with this status and print these words.
  Outcome expect(const Shell& shell, const std::string& name, const std::string& arguments, int status,
                 const Words& words, const std::string& before = "") {
    return check(name, shell.run(arguments, before), status, words);
  }
  // The same of shell text.
  Outcome expect_script(const Shell& shell, const std::string& name, const std::string& commands, int status,
                        const Words& words) {
    return check(name, shell.script(commands), status, words);
  }
  void leaves(const Shell& shell, const std::string& folder, std::initializer_list<const char*> names) {
    for (const char* name : names) test_.check(std::string("leaves ") + name, shell.exists(folder + name));
  }
  // Each of these files is the same in both folders.
  void same_files(const Shell& shell, const std::string& name, const std::string& folder, const std::string& other,
                  std::initializer_list<const char*> files) {
    for (const char* file : files) test_.equal(name + file, shell.read(folder + file), shell.read(other + file));
  }
  Outcome check(const std::string& name, Outcome outcome, int status, const Words& words) {
    bool good = outcome.status == status;
    for (const std::string& some : words.all) good = good && outcome.prints(some);
    test_.check(name, good, "status " + std::to_string(outcome.status) + ", printed: " + outcome.output);
    return outcome;
  }

  Test& test_;
};

}  // namespace petroglyph
