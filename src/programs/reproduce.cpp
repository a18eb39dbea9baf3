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
#include "reproduction/record.h"
#include "reproduction/run_options.h"

namespace petroglyph {
namespace {

int list(const std::vector<std::string>& words, const std::string& programs) {
  std::vector<std::string> names;
  bool measured = false;
  std::string device = "auto";
  int threads = 0;
  Options options("reproduce list", "Shows which figures and tables there are, or with names: their commands.");
  if (!words.empty()) {
    options.positional("NAME", &names, "an experiment, the beginning of several, or all");
    options.add("measure", &measured, "shows what the quick and the evening plans would take, by a few steps of each");
    declare_device(options, &device, &threads);
  }
  options.parse(words);
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
  if (names.empty()) list_experiments();
  return 0;
}

// ---- run ------------------------------------------------------------------------------------------------------------

// Before what takes hours: whether the models are the paper's, and how long each command takes. Less than a hundredth of the run.
std::vector<double> look_ahead(const Experiment& experiment, const Scale& scale, const Conductor& conductor) {
  const DryRun dry{conductor.programs, conductor.device, conductor.threads};
  if (scale.full()) dry.run(experiment, scale);
  if (interrupted()) return {};
  if (!conductor.quiet) std::printf("%s: a few steps, to tell how long it takes\n", experiment.name.c_str());
  std::fflush(stdout);
  const std::vector<double> seconds = dry.seconds_of(experiment, scale);
  const Plan plan = experiment.plan(scale);
  double all = 0;
  std::string unknown;
  for (size_t i = 0; i < seconds.size(); ++i) {
    all += seconds[i];
    if (seconds[i] == 0 && plan.commands[i].kind == Command::Kind::TRAINS) unknown += " " + plan.commands[i].part;
  }
  if (!conductor.quiet)
    std::printf("%s --%s: about %s of training on this machine, without evaluations%s\n", experiment.name.c_str(),
                name_of(scale.size).c_str(), duration_text(all).c_str(),
                unknown.empty() ? "" : (", and without" + unknown).c_str());
  return seconds;
}

// One experiment and the table of what it gave; the exit status, not 0 where it was interrupted.
int run_one(const Experiment& experiment, const Scale& scale, const Conductor& conductor) {
  const std::optional<Record> begun = read_record(folder_of(experiment.name, scale));
  const bool look = !scale.quick() && !(begun && begun->done());
  const std::vector<double> seconds = look ? look_ahead(experiment, scale, conductor) : std::vector<double>();
  if (interrupted()) return INTERRUPTED_STATUS;
  const int status = conductor.run(experiment, scale, seconds);
  if (status != 0) return status;
  const std::string folder = folder_of(experiment.name, scale);
  const Kept kept{*read_record(folder), finder_of(folder)};
  std::printf("\n%s: %s\n%s", experiment.name.c_str(), experiment.title.c_str(),
              plain_rows(section_of(experiment, &kept)).c_str());
  return 0;
}

int run(const std::vector<std::string>& words, const std::string& programs) {
  RunOptions given;
  Options options("reproduce run", "Runs experiments of the papers from start to end; what is done already stays.");
  given.declare(options);
  options.parse(words);
  given.finish();
  const std::vector<const Experiment*> wanted = chosen_experiments(given.names);
  const Conductor conductor{programs, given.device, given.threads, given.quiet};
  std::string missing, failed;
  for (const Experiment* experiment : wanted) {
    const Scale scale = scale_for(*experiment, given.scale);
    if (const std::string lack = lacking(*experiment, scale); !lack.empty()) {
      if (wanted.size() == 1) throw UsageError(experiment->name + " --" + name_of(scale.size) + ": " + lack);
      if (has_plan(*experiment, scale.size)) missing += "\n  " + experiment->name + ": " + lack;
      continue;
    }
    try {
      if (given.dry) {
        DryRun{conductor.programs, given.device, given.threads}.run(*experiment, scale);
        if (interrupted()) return INTERRUPTED_STATUS;
        continue;
      }
      if (const int status = run_one(*experiment, scale, conductor)) {
        std::printf("interrupted in %s; go on with: %s\n", experiment->name.c_str(), given.again().c_str());
        return status;
      }
    } catch (const Error& error) {  // one that fails does not keep the others from being run
      if (wanted.size() == 1) throw;
      std::printf("\n%s\n", error.what());
      failed += (failed.empty() ? "" : "; ") + std::string(error.what());
    }
  }
  if (!missing.empty()) std::printf("\nnot run:%s\n", missing.c_str());
  if (!failed.empty()) throw Error(failed);
  return 0;
}

// ---- report ---------------------------------------------------------------------------------------------------------

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
  save_page(make_page(experiments(), results), out, results, force);
  return 0;
}

// ---- draw -----------------------------------------------------------------------------------------------------------

int draw(const std::vector<std::string>& words) {
  std::string results;
  Options options("reproduce draw", "Draws figures of a folder of results again, from the CSV files in it.");
  options.positional("FOLDER", &results, "what report --results made, as results/ of the repository");
  options.parse(words);
  for (const std::string& file : draw_results(results)) std::printf("drew %s\n", file.c_str());
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
  if (name == "--completion") return std::puts("list\nrun\nreport\ndraw\n--help\n--version"), 0;
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
