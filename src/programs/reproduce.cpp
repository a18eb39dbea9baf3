// Does the papers' experiments again with the other programs, and shows the papers' numbers beside ours.
//
//   ./reproduce list [NAME…]             what there is, and with names: its commands
//   ./reproduce run NAME… | all          --quick, the default, or --full
//   ./reproduce report                   runs/report/index.html; with --results DIR also a page for a repository

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "reproduction/child.h"
#include "reproduction/page.h"
#include "reproduction/record.h"

namespace petroglyph {
namespace {

std::vector<std::string> names_of_experiments() {
  std::vector<std::string> names;
  for (const Experiment& experiment : experiments()) names.push_back(experiment.name);
  return names;
}

// "all", names, and what names begin with: copy for copy-pre-norm and its sisters. Each once, in the order of the table.
std::vector<const Experiment*> chosen(const std::vector<std::string>& words) {
  std::vector<const Experiment*> found;
  const auto means = [](const std::string& word, const Experiment& experiment) {
    return word == "all" || word == experiment.name || experiment.name.rfind(word + "-", 0) == 0;
  };
  for (const std::string& word : words) {
    const auto& all = experiments();
    if (std::any_of(all.begin(), all.end(), [&](const Experiment& e) { return means(word, e); })) continue;
    const std::string near = nearest_word(word, names_of_experiments());
    throw UsageError("unknown experiment " + word +
                     (near.empty() ? "; ./reproduce list shows all" : " (did you mean " + near + "?)"));
  }
  for (const Experiment& experiment : experiments())
    if (std::any_of(words.begin(), words.end(), [&](const std::string& word) { return means(word, experiment); }))
      found.push_back(&experiment);
  return found;
}

// ---- list -----------------------------------------------------------------------------------------------------------

void list_one(const Experiment& experiment) {
  std::printf("%s: %s\n  %s, %s\n  %s\n", experiment.name.c_str(), experiment.title.c_str(), experiment.paper.c_str(),
              experiment.where.c_str(), experiment.shows.c_str());
  for (const bool full : {false, true}) {
    Scale scale;
    scale.full = full;
    if (full && experiment.full.empty()) continue;
    if (full && !experiment.data.empty()) scale.text = scale.validation = scale.images = "FILE";
    const Plan plan = experiment.plan(scale);
    std::printf("\n  --%s: %s\n  %s\n", full ? "full" : "quick", (full ? experiment.full : experiment.quick).c_str(),
                plan.size.c_str());
    for (const Command& command : plan.commands)
      std::printf("    %s\n", command_line(command, folder_of(experiment.name, scale)).c_str());
  }
}

int list(const std::vector<std::string>& words) {
  std::vector<std::string> names;
  Options options("reproduce list", "Shows which figures and tables there are, or with names: their commands.");
  if (!words.empty()) options.positional("NAME", &names, "an experiment, the beginning of several, or all");
  options.parse(words);
  if (!names.empty()) {
    bool first = true;
    for (const Experiment* experiment : chosen(names)) {
      if (!first) std::printf("\n");
      first = false;
      list_one(*experiment);
    }
    return 0;
  }
  std::string paper;
  for (const Experiment& experiment : experiments()) {
    if (experiment.paper != paper) std::printf("%s%s\n", paper.empty() ? "" : "\n", experiment.paper.c_str());
    paper = experiment.paper;
    std::string done;
    for (const Record& record : records_of(experiment.name))
      done +=
          std::string(done.empty() ? "  [" : ", ") + edition_of(record.scale) + (record.done() ? " done" : " begun");
    std::printf("  %-20s %s, %s%s\n", experiment.name.c_str(), experiment.where.c_str(), experiment.title.c_str(),
                done.empty() ? "" : (done + "]").c_str());
    std::printf("  %-20s quick: %s; full: %s%s\n", "", experiment.quick.c_str(),
                experiment.full.empty() ? "as quick" : experiment.full.c_str(),
                experiment.data.empty() ? "" : (", wants " + experiment.data).c_str());
  }
  return 0;
}

// ---- run ------------------------------------------------------------------------------------------------------------

struct RunOptions {
  std::vector<std::string> names;
  bool quick = false;
  Scale scale;
  std::string device = "auto";
  int threads = 0;
  bool quiet = false;

  void declare(Options& options) {
    options.positional("NAME", &names, "an experiment of ./reproduce list, the beginning of several, or all");
    options.section("Size");
    options.add("quick", &quick, "small models: minutes on two cores; the default");
    options.add("full", &scale.full, "the papers' sizes: days, or hours on a GPU");
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

  std::string again() const {
    std::string words = "./reproduce run " + join(names, " ") + (scale.full ? " --full" : " --quick");
    for (const auto& [option, value] : {std::pair("data", scale.text),
                                        {"val", scale.validation},
                                        {"tokenizer", scale.tokenizer},
                                        {"cifar", scale.images}})
      if (!value.empty()) words += std::string(" --") + option + " " + as_word(value);
    if (device != "auto") words += " --device " + device;
    return words + (threads > 0 ? " --threads " + std::to_string(threads) : "");
  }
};

// Data that an experiment does not use are none of its business.
Scale scale_for(const Experiment& experiment, const Scale& wanted) {
  Scale scale = wanted;
  if (experiment.data.find("--data") == std::string::npos) scale.text = scale.validation = scale.tokenizer = "";
  if (experiment.data.find("--cifar") == std::string::npos) scale.images = "";
  return scale;
}

// One experiment and the table of what it gave; the exit status, not 0 where it was interrupted.
int run_one(const Experiment& experiment, const Scale& scale, const Conductor& conductor) {
  const int status = conductor.run(experiment, scale);
  if (status != 0) return status;
  const auto record = read_record(folder_of(experiment.name, scale));
  std::printf("\n%s: %s\n%s", experiment.name.c_str(), experiment.title.c_str(),
              plain_rows(section_of(experiment, &*record)).c_str());
  return 0;
}

int run(const std::vector<std::string>& words, const std::string& programs) {
  RunOptions given;
  Options options("reproduce run", "Runs experiments of the papers from start to end; what is done already stays.");
  given.declare(options);
  options.parse(words);
  if (given.quick && given.scale.full) throw UsageError("--quick and --full: expected one of the two");
  for (const auto& [option, value] :
       {std::pair("--val ", given.scale.validation), {"--tokenizer ", given.scale.tokenizer}})
    if (given.scale.text.empty() && !value.empty())
      throw UsageError(option + value + " without --data: expected text to learn from too");
  const std::vector<const Experiment*> wanted = chosen(given.names);
  const Conductor conductor{programs, given.device, given.threads, given.quiet};
  std::string missing, failed;
  for (const Experiment* experiment : wanted) {
    const Scale scale = scale_for(*experiment, given.scale);
    if (scale.full && !experiment->data.empty() && !scale.has_data()) {
      if (wanted.size() == 1) throw UsageError(experiment->name + " --full: expected " + experiment->data);
      missing += "\n  " + experiment->name + " wants " + experiment->data;
      continue;
    }
    try {
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
  Options options("reproduce report", "Makes a page of all that was run.");
  options.add("out", &out, "its folder").placeholder("FOLDER");
  options
      .add("results", &results, "also writes a small page for a repository, with figures and tables, into this folder")
      .placeholder("FOLDER");
  options.parse(words);
  const Page page = make_page(experiments());
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

const char* const HELP =
    "Usage: reproduce SUBCOMMAND [options]\n"
    "Does the papers' experiments again and shows their numbers beside ours; `reproduce SUBCOMMAND --help` says "
    "how.\n\n"
    "  list      which figures and tables there are, what they cost, which data they need\n"
    "  run       runs some or all of them, and goes on where it was stopped\n"
    "  report    makes a page of what was run\n";

int reproduce(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  const std::string name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h") return std::fputs(HELP, stdout), 0;
  if (name == "list") return list(words);
  if (name == "run") return run(words, program_folder(argv[0]));
  if (name == "report") return report(words);
  throw UsageError("unknown subcommand " + name + ", expected one of list, run, report");
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("reproduce", [&] { return petroglyph::reproduce(argc, argv); });
}
