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

std::vector<std::string> dry_words(const Command& command, const std::string& folder) {
  std::vector<std::string> words = full_words(command, folder);
  for (const std::string& word : words_of(short_words(command))) words.push_back(word);
  return words;
}

void DryRun::run(const Experiment& experiment, const Scale& scale) const {
  const InterruptGuard guard;
  const std::string folder = "runs/dry-" + name_of(scale.size) + "-" + experiment.name;
  remove_runs(folder);
  make_folder(folder);
  std::printf("%s, %s\n", experiment.name.c_str(), name_of(scale.size).c_str());
  const Plan plan = experiment.plan(scale);
  for (const Command& command : plan.commands) {
    std::vector<std::string> words = dry_words(command, folder);
    if (trains(command)) words.insert(words.end(), more.begin(), more.end());
    if (command.has_device) words.insert(words.end(), {"--device", device});
    const std::string log = folder + "/" + command.part + ".log";
    const auto start = std::chrono::steady_clock::now();
    const ChildOutcome outcome = run_child(programs + "/" + command.program, words, log, true);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (interrupted()) break;
    if (outcome.status != 0)
      throw Error(text("%s: %s ended with status %d: %s", experiment.name.c_str(),
                       command_line(command, folder).c_str(), outcome.status, outcome.last_line.c_str()));
    std::printf("  %-20s works, %.1f s for two steps, peak %.2f GB\n", command.part.c_str(), seconds,
                outcome.peak_bytes / 1e9);
    print_sizes(log, command.part, plan);
  }
  remove_runs(folder);
}

}  // namespace petroglyph
