// Does the papers' experiments again with the other programs, and shows the papers' numbers beside ours.
//
//   ./reproduce list [NAME…]             what there is, and with names: its commands
//   ./reproduce run NAME… | all          --quick, the default, --evening or --full
//   ./reproduce draw FOLDER              figures of a folder of results, from its CSV files
//   ./reproduce report                   runs/report/index.html; with --results DIR also a page for a repository

#include <algorithm>
#include <cstdio>

#include "base/atomic_file.h"
#include "base/error.h"
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

namespace petroglyph {
namespace {

int list(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  Options options("reproduce list", "Shows which figures and tables there are, or with names: their commands.");
  if (!words.empty()) options.positional("NAME", &names, "an experiment, the beginning of several, or all");
  options.parse(words);
  if (!names.empty()) {
    bool first = true;
    for (const Experiment* experiment : chosen_experiments(names)) {
      if (!first) std::printf("\n");
      first = false;
      list_experiment(*experiment);
    }
    return 0;
  }
  list_experiments();
  return 0;
}

// ---- run ------------------------------------------------------------------------------------------------------------

struct RunOptions {
  std::vector<std::string> names;
  bool quick = false, evening = false, full = false;
  Scale scale;
  std::string device = "auto";
  int threads = 0;
  bool quiet = false, dry = false;

  void declare(Options& options) {
    options.positional("NAME", &names, "an experiment of ./reproduce list, the beginning of several, or all");
    options.section("Size");
    options.add("quick", &quick, "small models: minutes on two cores; the default");
    options.add("evening", &evening,
                "the papers' models, with fewer steps or smaller batches: an hour or a few on two cores");
    options.add("full", &full, "the papers' sizes: days, or hours on a GPU");
    options.add("dry-run", &dry, "tries each command with two steps at the smallest batch, and leaves nothing");
    options.section("Data");
    options.add("data", &scale.text, "text to learn from; default: stories of our own").placeholder("FILE");
    options.add("val", &scale.validation, "text for evaluations; default: the end of --data").placeholder("FILE");
    options
        .add("tokenizer", &scale.tokenizer,
             "of --data: a file of ./tokenize, or a folder with GPT-2's two; default: characters")
        .placeholder("NAME");
    options
        .add("cifar", &scale.images, "a folder with the files of data/cifar10.sh and its like; default: drawn shapes")
        .placeholder("FOLDER");
    options.section("Run");
    declare_device(options, &device, &threads);
    options.add("quiet", &quiet, "prints results only");
  }

  void set_size() {
    if (quick + evening + full > 1) throw UsageError("--quick, --evening and --full: expected one of the three");
    scale.size = full ? Scale::Size::FULL : evening ? Scale::Size::EVENING : Scale::Size::QUICK;
  }

  std::string again() const {
    std::string words = "./reproduce run " + join(names, " ") + " --" + name_of(scale.size);
    for (const auto& [option, value] : {std::pair("data", scale.text),
                                        {"val", scale.validation},
                                        {"tokenizer", scale.tokenizer},
                                        {"cifar", scale.images}})
      if (!value.empty()) words += std::string(" --") + option + " " + as_word(value);
    if (device != "auto") words += " --device " + device;
    return words + (threads > 0 ? " --threads " + std::to_string(threads) : "");
  }
};

// One experiment and the table of what it gave; the exit status, not 0 where it was interrupted.
int run_one(const Experiment& experiment, const Scale& scale, const Conductor& conductor) {
  const int status = conductor.run(experiment, scale);
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
  given.set_size();
  for (const auto& [option, value] :
       {std::pair("--val ", given.scale.validation), {"--tokenizer ", given.scale.tokenizer}})
    if (given.scale.text.empty() && !value.empty())
      throw UsageError(option + value + " without --data: expected text to learn from too");
  const std::vector<const Experiment*> wanted = chosen_experiments(given.names);
  const Conductor conductor{programs, given.device, given.threads, given.quiet};
  std::string missing, failed;
  for (const Experiment* experiment : wanted) {
    const Scale scale = scale_for(*experiment, given.scale);
    if (scale.evening() && !has_plan(*experiment, scale.size)) {
      if (wanted.size() == 1) throw UsageError(experiment->name + " --evening: has none, expected --quick or --full");
      continue;
    }
    if (scale.full() && !experiment->data.empty() && !scale.has_data()) {
      if (wanted.size() == 1) throw UsageError(experiment->name + " --full: expected " + experiment->data);
      missing += "\n  " + experiment->name + " wants " + experiment->data;
      continue;
    }
    try {
      if (given.dry) {
        DryRun{conductor.programs, given.device}.run(*experiment, scale);
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

// A page that has not these words is not of ours.
void check_page(const std::string& path, const std::string& words, bool force) {
  if (is_there(path) && read_regular_file(path).find(words) == std::string::npos) check_replaced(path, force);
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
  check_page(out + "/index.html", "<h1>" + page.title + "</h1>", force);
  if (!results.empty()) check_page(results + "/RESULTS.md", "written by `./reproduce report", force);
  write_html(page, out);
  const auto count = std::count_if(page.sections.begin(), page.sections.end(),
                                   [](const PageSection& section) { return !section.commands.empty(); });
  std::printf("saved %s/index.html (%lld of %zu sections were run)\n", out.c_str(), static_cast<long long>(count),
              page.sections.size());
  if (results.empty()) return 0;
  write_markdown(page, results);
  std::printf("saved %s/RESULTS.md\n", results.c_str());
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
  if (name == "list") return list(words);
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
