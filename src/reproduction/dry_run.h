// A try at an experiment before it costs days: all its commands, trainings with two steps at the smallest batch, studies by a
// list of their runs.
#pragma once

#include <string>
#include <vector>

#include "reproduction/child.h"
#include "reproduction/experiment.h"
#include "reproduction/record.h"

namespace petroglyph {

struct DryRun {
  std::string programs;                // the folder of the other programs
  std::string device = "auto";         // of those that compute
  int threads = 0;                     // 0: all
  std::vector<std::string> more = {};  // words for every training program, such as smaller sizes for a test
  bool compare_sizes = true;           // with the paper's

  // Says for every command that it works, how many parameters its models have, and what it took. What it leaves in runs/ is removed
  // again. Throws Error where a command fails, and where a model is not as large as the paper's.
  void run(const Experiment& experiment, const Scale& scale) const;

  // What each command would take on this machine, in seconds: measured over a few steps at its own batch, or of a study over a
  // small part of it; without evaluations and tests. 0 of those that do not train, or for a number of steps that their words do not
  // tell. Of those that a record has as done, what they took.
  std::vector<double> seconds_of(const Experiment& experiment, const Scale& scale, const Record* begun = nullptr) const;
  // Says that of an experiment's quick and evening plans.
  void print_seconds(const Experiment& experiment) const;

 private:
  ChildOutcome start(const Command& command, const std::string& folder, const std::string& short_words) const;
  double seconds_for(const Command& command, const std::string& folder, const std::string& short_words) const;
  double seconds_of_steps(const Command& command, const std::string& folder) const;
  double seconds_of_study(const Command& command, const std::string& folder) const;
};

// A line of a program's words that says how large a model is: "causal_rn: 1,355,520 parameters, 1,331,712 without …".
struct SaidSize {
  std::string model;
  double parameters = 0, of_blocks = 0;
};
std::vector<SaidSize> said_sizes(const std::string& log);

// Of a part whose models are as large as that; what is wrong, or nothing.
std::string wrong_size(const std::vector<ModelSize>& paper, const std::string& part, const std::vector<SaidSize>& ours);

}  // namespace petroglyph
