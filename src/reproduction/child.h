// Runs another program without a shell, prints its output and writes it to a log.
#pragma once

#include <string>
#include <vector>

namespace petroglyph {

struct ChildOutcome {
  int status = 0;         // 128 + the signal's number if a signal ended it
  std::string last_line;  // of its output
};

// The child appends its standard output and standard error to the log, from which they are printed here. A Ctrl-C in
// this program is passed on to the child once (base/interrupt.h: an InterruptGuard must exist). So the child can
// finish its current work and print how to resume.
ChildOutcome run_child(const std::string& program, const std::vector<std::string>& words, const std::string& log);

}  // namespace petroglyph
