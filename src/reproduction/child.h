// Runs another program without a shell, prints its output and writes it to a log.
#pragma once

#include <string>
#include <vector>

namespace petroglyph {

struct ChildOutcome {
  int status = 0;         // 128 + the signal's number if a signal ended it
  std::string last_line;  // of its output
};

// The child's standard output and standard error are printed, unless `quiet` is set, and appended to the log. A
// Ctrl-C in this program is passed on to the child once (base/interrupt.h: an InterruptGuard must exist). So the
// child can finish its current work and print how to resume.
ChildOutcome run_child(const std::string& program, const std::vector<std::string>& words, const std::string& log,
                       bool quiet = false);

// The folder of the running program; from argv[0] if the system does not report it.
std::string program_folder(const char* argv0);

}  // namespace petroglyph
