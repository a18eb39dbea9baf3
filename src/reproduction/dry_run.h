// A try at an experiment before it costs days: all its commands, two steps each at the smallest batch.
#pragma once

#include <string>
#include <vector>

#include "reproduction/experiment.h"

namespace petroglyph {

struct DryRun {
  std::string programs;                // the folder of the other programs
  std::string device = "auto";         // of those that compute
  std::vector<std::string> more = {};  // words for every training program, such as smaller sizes for a test

  // Says for every command that it works, how many parameters its models have, and what it took. What it leaves in runs/ is removed
  // again. Throws Error where a command fails.
  void run(const Experiment& experiment, const Scale& scale) const;
};

// A command's words, and behind them those that make it short. The last one counts.
std::vector<std::string> dry_words(const Command& command, const std::string& folder);

}  // namespace petroglyph
