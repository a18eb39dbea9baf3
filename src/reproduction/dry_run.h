// A try at an experiment before it costs days: all its commands, two steps each at the smallest batch.
#pragma once

#include <string>
#include <vector>

#include "reproduction/child.h"
#include "reproduction/experiment.h"

namespace petroglyph {

struct DryRun {
  std::string programs;                // the folder of the other programs
  std::string device = "auto";         // of those that compute
  std::vector<std::string> more = {};  // words for every training program, such as smaller sizes for a test

  // Says for every command that it works, how many parameters its models have, and what it took. What it leaves in runs/ is removed
  // again. Throws Error where a command fails.
  void run(const Experiment& experiment, const Scale& scale) const;

  // What its training programs would take on this machine, in seconds: measured over a few steps of each at its own batch, without
  // evaluations and tests. Those that learn for a number of steps that their words do not tell are not in it.
  double seconds_of(const Experiment& experiment, const Scale& scale) const;
  // Says that of an experiment's quick and evening plans.
  void print_seconds(const Experiment& experiment) const;

 private:
  ChildOutcome start(const Command& command, const std::string& folder, const std::string& short_words) const;
};

}  // namespace petroglyph
