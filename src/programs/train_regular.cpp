// Trains a model to recognize a regular language and tests it on strings far longer than it has seen. Table 1 of "Transformer
// Working Memory Enables Regular Language Reasoning And Natural Language Length Extrapolation".

#include <algorithm>
#include <cstdio>
#include <memory>

#include "analysis/length_report.h"
#include "analysis/length_test.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "train/group.h"
#include "train/regular_run.h"

namespace petroglyph {
namespace {

// The group knows the words that it was begun with.
int stopped(const std::string& group) {
  std::printf("go on with: %s --resume --name %s\n", called("train_regular").c_str(), group.c_str());
  return INTERRUPTED_STATUS;
}

// One of the runs, ready to learn.
std::unique_ptr<RegularRun> ready(const RegularRun& first, const Group& group, const std::string& task, int seed,
                                  bool quiet) {
  auto run = std::make_unique<RegularRun>(group.words());
  run->regular.task = task;
  run->settings.seed = static_cast<uint64_t>(seed);
  run->settings.resume = first.settings.resume;
  run->settings.ranks = first.settings.ranks;
  run->settings.quiet |= quiet;
  run->prepare(group.name());
  return run;
}

int train_regular(int argc, char** argv, const std::shared_ptr<Ranks>& ranks) {
  const std::vector<std::string> given(argv + std::min(argc, 1), argv + argc);
  RegularRun first(given);
  first.settings.ranks = ranks;
  Group group(first.settings, first.options, "regular", given, {"task", "all-tasks", "seeds"});
  const RegularRun common(group.words());
  const std::vector<std::string> tasks = common.regular.tasks();
  first.check_combination(tasks);
  const InterruptGuard guard;
  for (const std::string& task : tasks)  // before the first one learns: what is wrong with the last one shows at once
    for (const int seed : common.regular.seeds) {
      ready(first, group, task, seed, true);
      if (ranks->any(interrupted())) return INTERRUPTED_STATUS;
    }
  std::vector<TestResult> results;
  for (const std::string& task : tasks) {
    for (const int seed : common.regular.seeds) {
      group.check();
      const auto run = ready(first, group, task, seed, false);
      group.begin();
      const bool finished = run->run->train();
      if (finished) results.push_back(test_lengths(*run));
      if (ranks->any(!finished || interrupted())) return stopped(group.name());
      if (tasks.size() * common.regular.seeds.size() == 1)
        std::printf("weights %016llx\n", static_cast<unsigned long long>(run->run->model().parameters.fingerprint()));
    }
  }
  group.check();
  if (ranks->first()) report_lengths(group.folder(), common.regular, results);
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_ranks("train_regular", argc, argv,
                               [&](const auto& ranks) { return petroglyph::train_regular(argc, argv, ranks); });
}
