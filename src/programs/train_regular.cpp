// Trains a model to recognize a regular language and tests it on strings that are much longer than the training
// strings. Table 1 of "Transformer Working Memory Enables Regular Language Reasoning And Natural Language Length
// Extrapolation".

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

int train_regular(const std::vector<std::string>& words, const std::shared_ptr<Ranks>& ranks) {
  RegularRun first(words);
  first.settings.ranks = ranks;
  const std::string name = name_of_runs(first.settings, "regular");
  std::vector<Variant> runs = first.runs();
  const InterruptGuard guard;
  std::vector<TestResult> results;
  const bool finished = train_variants<RegularRun>(words, first.settings, name, runs,
                                                   [&](RegularRun& run) { results.push_back(test_lengths(run)); });
  if (!finished) return interrupted_runs(name);
  if (runs.size() == 1) std::printf("weights %s\n", runs[0].weights.c_str());
  if (!ranks->first()) return 0;
  report_lengths("runs/" + name, first.regular, results);
  write_runs_page("runs/" + name, "Regular languages: " + first.regular.model.model, names_of(runs));
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_ranks("train_regular", argc, argv, petroglyph::train_regular);
}
