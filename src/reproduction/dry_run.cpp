#include "reproduction/dry_run.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "reproduction/child.h"
#include "reproduction/choice.h"
#include "reproduction/record.h"

namespace petroglyph {

namespace {

// What makes the commands of each program short. The stride stays odd: with members, and without too many lengths.
const std::string TWO_STEPS = " --batch 1 --accumulate 1 --steps 2 --eval-every 2 --eval-samples 1";
std::string short_words(const Command& command) {
  const bool lengths =
      std::find(command.words.begin(), command.words.end(), "--evaluate-lengths") != command.words.end();
  const std::string steps = TWO_STEPS + (lengths ? " --evaluate-lengths 8" : "");
  const std::string subcommand = command.words.empty() ? "" : command.words[0];
  if (command.program == "train_copy") return steps;
  if (command.program == "train_text") return steps + " --epochs 0 --snapshots 0 --length-windows 1";
  if (command.program == "train_regular") return TWO_STEPS + " --test-strings 1 --test-every 49 --seeds 1";
  if (command.program == "train_image") return TWO_STEPS + " --maps 1";
  if (command.program == "scaling") return " --list";
  if (command.program == "generate") return " --length 2";
  return subcommand == "positions" ? " --trials 1 --steps 1" : "";
}

bool trains(const Command& command) { return command.program.rfind("train_", 0) == 0; }

// The lines of a log that say how large models are, or a study's runs, each once, and what the paper says of them.
void print_sizes(const std::string& log, const std::string& part, const Plan& plan) {
  std::vector<std::string> seen;
  for (const std::string& whole : split(read_file(log), '\n')) {
    if (whole.find(" parameters, ") == std::string::npos && whole.find(" GB") == std::string::npos) continue;
    const std::string line = whole.substr(0, whole.find(';'));
    if (std::find(seen.begin(), seen.end(), line) != seen.end()) continue;
    seen.push_back(line);
    std::printf("    %s\n", line.c_str());
  }
  for (const ModelSize& size : plan.model_sizes)
    if (size.part == part)
      std::printf("    the paper: %s, %s million%s\n", size.model.c_str(), number_text(size.millions, 4).c_str(),
                  size.remark.empty() ? "" : ("; " + size.remark).c_str());
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The number behind an option; 0 where it is not given.
double number_behind(const std::vector<std::string>& words, const std::string& option) {
  const auto found = std::find(words.begin(), words.end(), option);
  return found == words.end() ? 0 : parse_number(*(found + 1)).value_or(0);
}

// Removes what lies in runs/ under a name or begins with it and a point.
void remove_runs(const std::string& folder) {
  std::filesystem::remove_all(folder);
  std::error_code none;
  std::vector<std::filesystem::path> parts;
  for (const auto& entry : std::filesystem::directory_iterator("runs", none))
    if (entry.path().string().rfind(folder + ".", 0) == 0) parts.push_back(entry.path());
  for (const auto& part : parts) std::filesystem::remove_all(part);
}

}  // namespace

// A command with its own words and behind them those that make it short: the last one counts. Throws Error where it fails.
ChildOutcome DryRun::start(const Command& command, const std::string& folder, const std::string& short_words) const {
  std::vector<std::string> words = full_words(command, folder);
  for (const std::string& word : words_of(short_words)) words.push_back(word);
  if (trains(command)) words.insert(words.end(), more.begin(), more.end());
  if (command.has_device) words.insert(words.end(), {"--device", device});
  const ChildOutcome outcome =
      run_child(programs + "/" + command.program, words, folder + "/" + command.part + ".log", true);
  if (outcome.status != 0 && !interrupted())
    throw Error(text("%s ended with status %d: %s", command_line(command, folder).c_str(), outcome.status,
                     outcome.last_line.c_str()));
  return outcome;
}

void DryRun::run(const Experiment& experiment, const Scale& scale) const {
  const InterruptGuard guard;
  const std::string folder = "runs/dry-" + name_of(scale.size) + "-" + experiment.name;
  remove_runs(folder);
  make_folder(folder);
  std::printf("%s, %s\n", experiment.name.c_str(), name_of(scale.size).c_str());
  const Plan plan = experiment.plan(scale);
  for (const Command& command : plan.commands) {
    const auto begin = std::chrono::steady_clock::now();
    const ChildOutcome outcome = start(command, folder, short_words(command));
    const double seconds = seconds_since(begin);
    if (interrupted()) break;
    std::printf("  %-20s works, %.1f s for two steps, peak %.2f GB\n", command.part.c_str(), seconds,
                outcome.peak_bytes / 1e9);
    print_sizes(folder + "/" + command.part + ".log", command.part, plan);
  }
  remove_runs(folder);
}

double DryRun::seconds_of(const Experiment& experiment, const Scale& scale) const {
  const InterruptGuard guard;
  constexpr int FEW = 2, MORE = 7;
  const std::string folder = "runs/measured-" + name_of(scale.size) + "-" + experiment.name;
  double total = 0;
  remove_runs(folder);
  make_folder(folder);
  for (const Command& command : experiment.plan(scale).commands) {
    const double steps = number_behind(command.words, "--steps");
    if (!trains(command) || steps == 0) continue;
    std::vector<double> seconds;
    for (const int some : {FEW, MORE}) {
      std::filesystem::remove_all(part_folder(folder, command.part));  // others may start from what it leaves
      const auto begin = std::chrono::steady_clock::now();
      const std::string few = std::to_string(some);
      const bool regular = command.program == "train_regular";
      start(command, folder,
            " --steps " + few + " --eval-every " + few + " --eval-samples 1" +
                (regular ? " --test-strings 1 --test-every 49" : ""));
      seconds.push_back(seconds_since(begin));
    }
    if (interrupted()) break;
    total += std::max(0.0, seconds[1] - seconds[0]) / (MORE - FEW) * steps;
  }
  remove_runs(folder);
  return total;
}

void DryRun::print_seconds(const Experiment& experiment) const {
  for (const Scale::Size size : {Scale::Size::QUICK, Scale::Size::EVENING}) {
    Scale scale;
    scale.size = size;
    if (!has_plan(experiment, size)) continue;
    std::printf("  %-20s --%s: ", experiment.name.c_str(), name_of(size).c_str());
    std::fflush(stdout);
    std::printf("about %s of training on this machine\n", duration_text(seconds_of(experiment, scale)).c_str());
  }
}

}  // namespace petroglyph
