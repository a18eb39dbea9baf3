// Another program, run without a shell: what it says is shown and kept.
#pragma once

#include <string>
#include <vector>

namespace petroglyph {

struct ChildOutcome {
  int status = 0;         // 128 and the signal's number where a signal ended it
  std::string last_line;  // of what it said
};

// Both streams of the child are shown, unless it shall be quiet, and appended to the log. While it runs, a Ctrl-C here
// (base/interrupt.h: an InterruptGuard must live) is passed on once, so that the child finishes what it must and says
// how to go on.
ChildOutcome run_child(const std::string& program, const std::vector<std::string>& words, const std::string& log,
                       bool quiet = false);

// The folder that the running program lies in; argv[0] where the system does not say.
std::string program_folder(const char* argv0);

}  // namespace petroglyph
