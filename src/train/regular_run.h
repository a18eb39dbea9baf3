// A run on a regular language: its options, training and test strings, and model.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/options.h"
#include "tasks/regular_languages.h"
#include "train/compare.h"
#include "train/model_options.h"
#include "train/run.h"

namespace petroglyph {

struct RegularSettings {
  std::string task = "parity_check", protocol = "answer", form = "chunked";
  bool all_tasks = false, leading_plus = false, near_misses = false;
  std::vector<int> seeds, probabilities;
  int train_length = 0, test_low = 0, test_high = 0, every = 1, strings = 512;
  ModelOptions model;

  void declare(Options& options);
  bool next_symbol() const { return protocol == "next"; }
};

// The longest training string, and the shortest and longest of the test.
struct Lengths {
  int train, test_low, test_high;
};

// One run and all its settings: the words of a command line, a language, a seed.
struct RegularRun {
  Options options{"train_regular",
                  "Trains models to recognize regular languages, and tests them on longer strings. An rnn takes 20,000 "
                  "steps at a rate of 3e-3 by default."};
  RegularSettings regular;
  RunSettings settings;
  std::unique_ptr<Task> task;
  std::optional<Run> run;

  explicit RegularRun(const std::vector<std::string>& words);

  // Those of the command line: each language with each seed. --all-tasks are all languages, or those that have members.
  std::vector<Variant> runs() const;

  // Makes the model; continues the run if its folder has a checkpoint.
  void prepare();

  RegularLanguage language(int shortest, int longest, float ones = 0.5f, bool near_misses = false) const;
  Lengths lengths() const;
  // The lengths of the test. Throws UsageError if none has members: a model that always answers no would be right on
  // all.
  std::vector<int> test_lengths() const;

  // --protocol next: windows of as many lengths as those of the training, itself and two of longer strings.
  static constexpr int WINDOWS = 3;
  std::pair<int, int> window(int i) const;
  NextSymbol next_symbols(int i) const;
};

// The language that the checkpoint `path` was trained on, in strings of so many symbols. Throws Error if the checkpoint
// has none.
RegularLanguage language_learned(const std::string& path, const RunState& state, int length);

}  // namespace petroglyph
