// Repeats the papers' experiments with the other programs, and compares the results with the papers' numbers.
//
//   ./reproduce list [NAME…]             the experiments; with names: their commands
//   ./reproduce run NAME… | all          --quick, the default, --medium or --full
//   ./reproduce report                   RESULTS.md and a page for each experiment

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/options.h"
#include "programs/subcommands.h"
#include "reproduction/report.h"
#include "reproduction/run_experiment.h"

namespace petroglyph {
namespace {

void list_experiment(const Experiment& experiment) {
  const Plan first = experiment.plan(experiment.sizes.at(0));
  print("%s: %s (%s, %s)\n  %s\n", first.name.c_str(), first.title.c_str(), first.paper.c_str(), first.where.c_str(),
        first.shows.c_str());
  for (const std::string& size : experiment.sizes) {
    const Plan plan = experiment.plan(size);
    print("\n  --%s: %s\n%s", size.c_str(), plan.cost.c_str(),
          plan.about.empty() ? "" : ("  " + plan.about + "\n").c_str());
    for (const PlannedRun& run : plan.runs) print("    %s\n", command_line(plan, run).c_str());
  }
}

int list(const std::vector<std::string>& words) {
  const std::vector<std::string> none = {""};  // no argument is empty
  std::vector<std::string> names = none;
  Options options("reproduce list", "Shows which figures and tables there are, or with names: their commands.");
  options.positional("NAME", &names, "an experiment, the beginning of several, or all");
  options.parse(words);
  if (names != none) {
    for (const Experiment& experiment : chosen_experiments(names)) list_experiment(experiment);
    return 0;
  }
  for (const Experiment& experiment : experiments()) {
    const Plan plan = experiment.plan(experiment.sizes.at(0));
    print("%-22s %s, %s: %s\n", plan.name.c_str(), plan.paper.c_str(), plan.where.c_str(), plan.title.c_str());
    for (const std::string& size : experiment.sizes)
      print("%-22s   --%s: %s\n", "", size.c_str(), experiment.plan(size).cost.c_str());
  }
  return 0;
}

// Runs one experiment and prints its results. Returns the exit status.
int run_one(const Experiment& experiment, const std::string& size, const std::string& programs,
            const std::string& device) {
  const Plan plan = experiment.plan(size);
  const int status = run_plan(plan, programs, device);
  if (status != 0) return status;
  const Measured measured = read_measured(plan, folder_of(plan));
  print("\n%s: %s\n\n", plan.name.c_str(), plan.title.c_str());
  for (const Table& table : plan.tables) print("%s", markdown_table(table, measured).c_str());
  for (const Claim& claim : plan.claims) {
    const Verdict verdict = verdict_of(claim, measured);
    if (verdict.word == "not run") continue;
    print("  %s: %s (%s)\n", claim.says.c_str(), verdict.word.c_str(),
          (verdict.reason.empty() ? verdict.number : verdict.reason).c_str());
  }
  return 0;
}

int run(const std::vector<std::string>& words, const std::string& programs) {
  std::vector<std::string> names;
  std::string device = "auto";
  bool quick = false, medium = false, full = false;
  Options options("reproduce run", "Runs experiments of the papers, and resumes them; what is done stays.");
  options.positional("NAME", &names, "an experiment of ./reproduce list, the beginning of several, a FILE.txt, or all");
  options.add("quick", &quick, "small models: minutes on two cores; the default");
  options.add("medium", &medium, "the papers' models where two cores can train them, with fewer steps: hours");
  options.add("full", &full, "the papers' sizes: minutes to weeks on a GPU");
  options.add_device(&device);
  options.parse(words);
  if (quick + medium + full > 1) throw UsageError("--quick, --medium and --full: expected one of them");
  const std::string size = full ? "full" : medium ? "medium" : "quick";
  const std::vector<Experiment> wanted = chosen_experiments(names);
  std::vector<std::string> failed;
  size_t begun = 0;
  for (const Experiment& experiment : wanted) {
    if (std::count(experiment.sizes.begin(), experiment.sizes.end(), size) == 0) continue;
    ++begun;
    try {
      if (const int status = run_one(experiment, size, programs, device)) {
        print("interrupted in %s; the same command resumes it\n", experiment.name.c_str());
        return status;
      }
    } catch (const Error& error) {
      if (wanted.size() == 1) throw;
      print("\n%s\n", error.what());
      failed.push_back(error.what());
    }
  }
  if (begun == 0)
    throw UsageError("--" + size + ": " + join(names, " ") + " has no such size, expected one of " +
                     join(wanted.at(0).sizes, ", "));
  if (!failed.empty()) throw Error(join(failed, "; "));
  return 0;
}

int report(const std::vector<std::string>& words) {
  bool keep = false;
  Options options("reproduce report", "Writes RESULTS.md and a page for each experiment to runs/report/.");
  options.add("keep", &keep, "writes to results/: keeps the numbers of what was run");
  options.parse(words);
  const std::string out = keep ? "results" : "runs/report";
  make_folder(out);
  const size_t count = write_report(out);
  print("saved %s/RESULTS.md (%zu of %zu experiments were run)\n", out.c_str(), count, experiments().size());
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  const std::vector<Subcommand> subcommands = {
      {"list", "which figures and tables there are, how long they take, their commands", list},
      {"run", "runs some or all of them, and resumes what was stopped",
       [&](const std::vector<std::string>& words) {
         std::error_code none;  // where there is no /proc; a program that PATH has found knows no folder from argv[0]
         const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", none);
         return run(words, (none ? std::filesystem::absolute(argv[0]) : self).parent_path().string());
       }},
      {"report", "writes RESULTS.md and a page for each experiment", report}};
  return run_program("reproduce", [&] {
    return run_subcommand("reproduce", "Repeats the papers' experiments and shows their numbers beside ours.",
                          subcommands, argc, argv);
  });
}
