// Trains a model to recognize a regular language and tests it on strings that are much longer than the training
// strings. Table 1 of "Transformer Working Memory Enables Regular Language Reasoning And Natural Language Length
// Extrapolation".

#include <algorithm>
#include <cstdio>
#include <memory>

#include "analysis/length_test.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "train/compare.h"
#include "train/regular_run.h"
#include "train/run_folder.h"

namespace petroglyph {
namespace {

// One of the runs, prepared for training.
std::unique_ptr<RegularRun> prepared(const std::vector<std::string>& words, const std::string& name,
                                     const std::string& task, int seed, const std::shared_ptr<Ranks>& ranks,
                                     bool quiet) {
  auto run = std::make_unique<RegularRun>(words);
  run->regular.task = task;
  run->settings.seed = static_cast<uint64_t>(seed);
  run->settings.ranks = ranks;
  run->settings.quiet |= quiet;
  run->prepare(name);
  return run;
}

int train_regular(const std::vector<std::string>& words, const std::shared_ptr<Ranks>& ranks) {
  RegularRun first(words);
  first.settings.ranks = ranks;
  const std::vector<std::string> tasks = first.regular.tasks();
  first.check_combination(tasks);
  const std::string name = name_of_runs(first.settings, "regular");
  const InterruptGuard guard;
  for (const std::string& task : tasks)  // reports an error in the last task before the first one is trained
    for (const int seed : first.regular.seeds) {
      prepared(words, name, task, seed, ranks, true);
      if (ranks->any(interrupted())) return INTERRUPTED_STATUS;
    }
  std::vector<TestResult> results;
  std::vector<std::string> names;
  for (const std::string& task : tasks) {
    for (const int seed : first.regular.seeds) {
      const auto run = prepared(words, name, task, seed, ranks, false);
      names.push_back(run->settings.name);
      const bool finished = run->run->train();
      if (finished) results.push_back(test_lengths(*run));
      if (ranks->any(!finished || interrupted())) return interrupted_runs(name);
      if (tasks.size() * first.regular.seeds.size() == 1)
        std::printf("weights %s\n", fingerprint_text(run->run->model()).c_str());
    }
  }
  if (!ranks->first()) return 0;
  report_lengths("runs/" + name, first.regular, results);
  write_runs_page("runs/" + name, "Regular languages: " + first.regular.model, names);
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_ranks("train_regular", argc, argv, petroglyph::train_regular);
}
