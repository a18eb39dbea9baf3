// Trains a model to recognize a regular language and tests it on strings far longer than it has seen. Table 1 of "Transformer
// Working Memory Enables Regular Language Reasoning And Natural Language Length Extrapolation".

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "analysis/length_report.h"
#include "analysis/length_test.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "train/regular_run.h"

namespace petroglyph {
namespace {

int stopped(const std::string& words, const std::string& group) {
  std::printf("go on with: ./train_regular%s --resume --name %s\n", words.c_str(), group.c_str());
  return INTERRUPTED_STATUS;
}

// Before the first language is learned: what is wrong with the last one's test shows at once.
void check_tests(const std::vector<std::string>& words, const std::vector<std::string>& tasks) {
  for (const std::string& task : tasks) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--task", task});
    const RegularRun run(all);
    if (!run.regular.next_symbol()) run.test_lengths();
  }
}

int train_regular(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const RegularRun common(words);
  const std::string group = group_folder(common.settings, "regular");
  const std::vector<std::string> tasks = common.regular.tasks();
  const std::string first = tasks[0] + "-seed-" + std::to_string(common.regular.seeds.at(0));
  if (common.settings.resume && !std::filesystem::exists("runs/" + group + "/" + first))
    throw Error("runs/" + group + ": has no run " + first +
                "; --resume wants the --task, --all-tasks and --seeds of before");
  if (!common.settings.resume) check_tests(words, tasks);
  std::vector<TestResult> results;
  for (const std::string& task : tasks) {
    for (const int seed : common.regular.seeds) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--task", task, "--seed", std::to_string(seed)});
      RegularRun run(all);
      run.prepare(group);
      const bool finished = run.run->train();
      const InterruptGuard guard;
      if (finished) results.push_back(test_lengths(run));
      if (!finished || interrupted()) {
        std::string given;
        for (const std::string& word : words) given += " " + word;
        return stopped(given, group);
      }
      if (tasks.size() * common.regular.seeds.size() == 1)
        std::printf("weights %016llx\n", static_cast<unsigned long long>(run.run->model().parameters.fingerprint()));
    }
  }
  report_lengths("runs/" + group, common.regular, results);
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("train_regular", [&] { return petroglyph::train_regular(argc, argv); });
}
