// Does the papers' experiments again with the other programs, and shows the papers' numbers beside ours.
//
//   ./reproduce list [NAME…]             what there is, and with names: its commands
//   ./reproduce run NAME… | all          --quick, the default, --evening or --full
//   ./reproduce draw FOLDER              figures of a folder of results, from its CSV files
//   ./reproduce report                   runs/report/index.html; with --results DIR also a page for a repository

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "base/version.h"
#include "reproduction/child.h"
#include "reproduction/choice.h"
#include "reproduction/draw.h"
#include "reproduction/dry_run.h"
#include "reproduction/page.h"
#include "reproduction/run_experiments.h"
#include "reproduction/run_options.h"

namespace petroglyph {
namespace {

int list(const std::vector<std::string>& words, const std::string& programs) {
  const std::vector<std::string> none = {""};  // which no argument is
  std::vector<std::string> names = none;
  bool measured = false;
  std::string device = "auto";
  int threads = 0;
  Options options("reproduce list", "Shows which figures and tables there are, or with names: their commands.");
  options.positional("NAME", &names, "an experiment, the beginning of several, or all");
  options.add("measure", &measured, "shows what the quick and the evening plans would take, by a few steps of each");
  declare_device(options, &device, &threads);
  options.only_with("device", "measure", {"true"});
  options.only_with("threads", "measure", {"true"});
  options.parse(words);
  options.refuse_without_effect();
  if (names == none && measured) throw UsageError("--measure: of which experiments? expected NAME, or all");
  if (names == none) return list_experiments(), 0;
  const DryRun dry{programs, device, threads};
  bool first = true;
  for (const Experiment* experiment : chosen_experiments(names)) {
    if (measured) {
      dry.print_seconds(*experiment);
      if (interrupted()) return INTERRUPTED_STATUS;
      continue;
    }
    if (!first) std::printf("\n");
    first = false;
    list_experiment(*experiment);
  }
  return 0;
}

int run(const std::vector<std::string>& words, const std::string& programs) {
  RunOptions given;
  Options options("reproduce run", "Runs experiments of the papers from start to end; what is done already stays.");
  given.declare(options);
  options.parse(words);
  given.finish();
  return run_experiments(given, programs);
}

int report(const std::vector<std::string>& words) {
  std::string out = "runs/report", results;
  bool force = false;
  Options options("reproduce report", "Makes a page of all that was run.");
  options.add("out", &out, "its folder").placeholder("FOLDER");
  options
      .add("results", &results,
           "also writes a small page for a repository, with figures and tables, into this folder; what it keeps of "
           "other runs stays")
      .placeholder("FOLDER");
  declare_force(options, &force);
  options.parse(words);
  const Page page = make_page(experiments(), results);
  save_page(page, out, results, force);
  for (const std::string& folder : page.stale)
    print("left out: %s, run with other commands than its experiment has today\n", folder.c_str());
  return 0;
}

int draw(const std::vector<std::string>& words) {
  std::string results;
  Options options("reproduce draw", "Draws figures of a folder of results again, from the CSV files in it.");
  options.positional("FOLDER", &results, "what report --results made, as results/ of the repository");
  options.parse(words);
  for (const std::string& file : draw_results(results)) print("drew %s\n", file.c_str());
  return 0;
}

const char* const HELP =
    "Usage: reproduce SUBCOMMAND [options]\n"
    "Does the papers' experiments again and shows their numbers beside ours; `reproduce SUBCOMMAND --help` says "
    "how.\n\n"
    "  list      which figures and tables there are, what they cost, which data they need\n"
    "  run       runs some or all of them, and goes on where it was stopped\n"
    "  report    makes a page of what was run\n"
    "  draw      draws figures of a folder of results again, from the numbers in it\n";

int reproduce(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  const std::string name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h") return std::fputs(HELP, stdout), 0;
  if (name == "--version") return std::puts(version().c_str()), 0;
  if (name == "list") return list(words, program_folder(argv[0]));
  if (name == "run") return run(words, program_folder(argv[0]));
  if (name == "report") return report(words);
  if (name == "draw") return draw(words);
  throw UsageError("unknown subcommand " + name + ", expected one of list, run, report, draw");
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("reproduce", [&] { return petroglyph::reproduce(argc, argv); });
}
