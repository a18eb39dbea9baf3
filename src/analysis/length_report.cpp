#include "analysis/length_test.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/atomic_file.h"
#include "base/text.h"
#include "figures/figure.h"

namespace petroglyph {

namespace {

// The results of each language's runs; results of one language are consecutive.
std::vector<std::vector<TestResult>> by_task(const std::vector<TestResult>& results) {
  std::vector<std::vector<TestResult>> groups;
  for (const TestResult& r : results) {
    if (groups.empty() || groups.back()[0].task != r.task) groups.emplace_back();
    groups.back().push_back(r);
  }
  return groups;
}

// Table 2: the mean over the seeds.
void report_probabilities(const std::string& folder, const std::vector<int>& probabilities,
                          const std::vector<TestResult>& runs) {
  std::string csv = "lengths,probability,accuracy\n";
  std::printf("%-20s %22s", runs[0].task.c_str(), "symbols 1 in");
  for (const int percent : probabilities) std::printf(" %6d %%", percent);
  for (const bool same : {true, false}) {
    std::printf("\n%-20s %22s", "", same ? "at the training length" : "longer");
    for (size_t p = 0; p < probabilities.size(); ++p) {
      double mean = 0;
      for (const TestResult& r : runs)
        mean += (same ? r.same_by_probability : r.longer_by_probability)[p] / static_cast<double>(runs.size());
      std::printf(" %6.2f %%", 100 * mean);
      csv += text("%s,%s,%s\n", same ? "same" : "longer", number_text(probabilities[p] / 100.0, 9).c_str(),
                  number_text(mean, 9).c_str());
    }
  }
  std::printf("\n");
  write_keeping(folder + "/probabilities.csv", csv);
}

// Printed beside the accuracy: the accuracy at the training length and that of a constant answer.
void print_run(const TestResult& r) {
  std::printf("%-20s %6llu %5.0f to %-5.0f %8.2f %%", r.task.c_str(), static_cast<unsigned long long>(r.seed),
              r.from.front(), r.to.back(), 100 * r.mean());
  if (std::isfinite(r.same_length)) std::printf(" %12.2f %%", 100 * r.same_length);
  if (!r.one_answer.empty()) std::printf(" %8.2f %%", 100 * TestResult::mean_of(r.one_answer));
  std::printf("\n");
  for (size_t i = 0; r.from[0] != r.to[0] && i < r.to.size(); ++i)  // windows
    std::printf("%-27s %5.0f to %-5.0f %8.2f %%\n", "", r.from[i], r.to[i], 100 * r.accuracies[i]);
}

}  // namespace

void report_lengths(const std::string& folder, const RegularSettings& s, const std::vector<TestResult>& results) {
  std::string csv = "task,seed,from,to,accuracy,one_answer,same_length\n";
  Figure figure(s.model.model + ": accuracy on strings longer than those of the training");
  figure.caption(folder);
  std::printf("\n%-20s %6s %14s %10s %14s %10s\n", "", "seed", "lengths  ", "accuracy", "as in training", "one answer");
  for (const std::vector<TestResult>& runs : by_task(results)) {
    Panel& panel = figure.panel(runs[0].task).x("length (symbols)").y("accuracy").y_range(-0.02, 1.02);
    double sum = 0, best = 0, worst = 1;
    for (const TestResult& r : runs) {
      print_run(r);
      csv += text("%s,%llu,%.0f,%.0f,%s,%s,%s\n", r.task.c_str(), static_cast<unsigned long long>(r.seed),
                  r.from.front(), r.to.back(), number_text(r.mean(), 9).c_str(),
                  r.one_answer.empty() ? "" : cell_text(TestResult::mean_of(r.one_answer)).c_str(),
                  cell_text(r.same_length).c_str());
      panel.line("seed " + std::to_string(r.seed), r.to, r.accuracies);
      sum += r.mean();
      best = std::max(best, r.mean());
      worst = std::min(worst, r.mean());
    }
    if (!runs[0].one_answer.empty()) panel.level("one answer", TestResult::mean_of(runs[0].one_answer));
    if (runs.size() > 1)
      std::printf("%-20s %zu seeds: best %.2f %%, mean %.2f %%, worst %.2f %%\n", runs[0].task.c_str(), runs.size(),
                  100 * best, 100 * sum / static_cast<double>(runs.size()), 100 * worst);
    if (!runs[0].longer_by_probability.empty()) report_probabilities(folder, s.probabilities, runs);
  }
  write_keeping(folder + "/results.csv", csv);
  figure.save(folder + "/lengths.svg");
  std::printf("saved %s (results.csv, lengths.svg%s, and a run each)\n", folder.c_str(),
              s.probabilities.empty() ? "" : ", probabilities.csv");
}

}  // namespace petroglyph
