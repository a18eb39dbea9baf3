#include "reproduction/dry_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <numeric>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/folder_lock.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "reproduction/child.h"
#include "reproduction/choice.h"
#include "reproduction/record.h"

namespace petroglyph {

namespace {

bool has(const Command& command, const char* word) {
  return std::find(command.words.begin(), command.words.end(), word) != command.words.end();
}

// What makes each program's tests short. The stride stays odd: with members, and without too many lengths.
std::string short_tests(const Command& command) {
  const bool lengths = has(command, "--evaluate-lengths");
  const std::string few = lengths ? " --evaluate-lengths 8" : "";
  if (command.program == "train_text") return few + " --snapshots 0" + (lengths ? " --length-windows 1" : "");
  if (command.program == "train_regular") return " --test-strings 1 --test-every 49";
  return command.program == "train_image" ? " --maps 1" : few;
}

// What makes the commands of each program short.
std::string short_words(const Command& command) {
  const std::string steps = std::string(" --batch ") + (command.program == "train_regular" ? "2" : "1") +
                            " --accumulate 1 --steps 2 --eval-every 2 --eval-samples 1" + short_tests(command);
  const std::string subcommand = command.words.empty() ? "" : command.words[0];
  if (command.program == "train_copy" || command.program == "train_image") return steps;
  if (command.program == "train_text") return steps + " --epochs 0";
  if (command.program == "train_regular") return steps + (has(command, "--seed") ? "" : " --seeds 1");
  if (command.program == "scaling") return " --list";
  if (command.program == "generate") return " --length 2";
  if (subcommand == "attention") return " --windows 1";
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
  const std::optional<std::string> word = word_behind(words, option);
  return word ? parse_number(*word).value_or(0) : 0;
}

// The number of a word such as 6e7,2e8: their sum.
double sum_behind(const std::vector<std::string>& words, const std::string& option) {
  double sum = 0;
  for (const std::string& word : split(word_behind(words, option).value_or(""), ','))
    sum += parse_number(word).value_or(0);
  return sum;
}

bool as_large(const ModelSize& paper, const SaidSize& ours) {
  const double counted = paper.counts == ModelSize::Counts::ALL ? ours.parameters : ours.of_blocks;
  return std::abs(counted / (1e6 * paper.millions) - 1) <= paper.margin;
}

// A folder of a try, made anew and removed again with what its commands left, however it ends. One process at a time tries one.
// Runs that are there without it are somebody else's.
class TryFolder {
 public:
  TryFolder(const std::string& path, const Plan& plan) : path_(path), plan_(plan), lock_(made(path, plan)) {
    remove_parts();
  }
  TryFolder(const TryFolder&) = delete;
  TryFolder& operator=(const TryFolder&) = delete;
  ~TryFolder() {
    remove_parts();
    std::error_code none;
    std::filesystem::remove_all(path_, none);
  }
  const std::string& path() const { return path_; }

 private:
  void remove_parts() const {
    std::error_code none;
    for (const Command& command : plan_.commands) std::filesystem::remove_all(part_folder(path_, command.part), none);
  }
  // Where it is there a try was killed, and the parts are what that left.
  static const std::string& made(const std::string& path, const Plan& plan) {
    for (const Command& command : plan.commands)
      if (const std::string part = part_folder(path, command.part); !is_there(path) && is_there(part))
        std::printf("%s was there: it is %s now\n", part.c_str(), put_aside(part).c_str());
    make_folder(path);
    return path;
  }

  const std::string path_;
  const Plan& plan_;
  const FolderLock lock_;
};

// Whether a training that is not done begins with what this one leaves.
bool starts_another(const Plan& plan, const Record* begun, size_t i) {
  const std::string left = "@" + plan.commands[i].part;
  for (size_t other = i + 1; other < plan.commands.size(); ++other) {
    const std::vector<std::string>& words = plan.commands[other].words;
    const bool measured = plan.commands[other].kind == Command::Kind::TRAINS;
    if (measured && !(begun && begun->done(other)) &&
        std::any_of(words.begin(), words.end(),
                    [&](const std::string& word) { return (word + "/").rfind(left + "/", 0) == 0; }))
      return true;
  }
  return false;
}

}  // namespace

std::vector<SaidSize> said_sizes(const std::string& log) {
  const std::string all = " parameters, ", blocks = " without embeddings";
  std::vector<SaidSize> sizes;
  for (const std::string& line : split(log, '\n')) {
    const size_t colon = line.find(": "), first = line.find(all), second = line.find(blocks);
    if (first == std::string::npos || second == std::string::npos || colon > first) continue;
    const auto number = [](std::string words) {
      words.erase(std::remove(words.begin(), words.end(), ','), words.end());
      return parse_number(words).value_or(0);
    };
    const size_t begin = first + all.size();
    sizes.push_back({line.substr(0, colon), number(line.substr(colon + 2, first - colon - 2)),
                     number(line.substr(begin, second - begin))});
  }
  return sizes;
}

std::string wrong_size(const std::vector<ModelSize>& paper, const std::string& part,
                       const std::vector<SaidSize>& ours) {
  for (const ModelSize& size : paper) {
    if (size.part != part) continue;
    if (std::none_of(ours.begin(), ours.end(),
                     [&](const SaidSize& one) { return one.model == size.model && as_large(size, one); }))
      return text("no %s of %s million parameters, as in the paper (within %s %%)", size.model.c_str(),
                  number_text(size.millions, 4).c_str(), number_text(100 * size.margin, 2).c_str());
  }
  for (const SaidSize& one : ours) {
    const auto of_model = [&](const ModelSize& size) { return size.part == part && size.model == one.model; };
    if (std::any_of(paper.begin(), paper.end(), of_model) &&
        std::none_of(paper.begin(), paper.end(),
                     [&](const ModelSize& size) { return of_model(size) && as_large(size, one); }))
      return text("a %s of %s parameters, in the paper there is none", one.model.c_str(),
                  with_commas(static_cast<int64_t>(one.parameters)).c_str());
  }
  return "";
}

// A command with its own words and behind them those that make it short: the last one counts. Throws Error where it fails.
ChildOutcome DryRun::start(const Command& command, const std::string& folder, const std::string& short_words) const {
  std::vector<std::string> words = full_words(command, folder);
  for (const std::string& word : words_of(short_words)) words.push_back(word);
  if (trains(command)) words.insert(words.end(), more.begin(), more.end());
  if (command.has_device) words.insert(words.end(), {"--device", device, "--threads", std::to_string(threads)});
  const ChildOutcome outcome =
      run_child(programs + "/" + command.program, words, folder + "/" + command.part + ".log", true);
  if (outcome.status != 0 && !interrupted())
    throw Error(text("%s ended with status %d: %s", command_line(command, folder).c_str(), outcome.status,
                     outcome.last_line.c_str()));
  return outcome;
}

void DryRun::run(const Experiment& experiment, const Scale& scale) const {
  const InterruptGuard guard;
  const Plan plan = experiment.plan(scale);
  const TryFolder tried("runs/dry-" + name_of(scale.size) + "-" + experiment.name, plan);
  const std::string& folder = tried.path();
  std::printf("%s, %s\n", experiment.name.c_str(), name_of(scale.size).c_str());
  for (const Command& command : plan.commands) {
    const auto begin = std::chrono::steady_clock::now();
    const ChildOutcome outcome = start(command, folder, short_words(command));
    const double seconds = seconds_since(begin);
    if (interrupted()) break;
    std::printf("  %-21s works, %.1f s%s, peak %.2f GB\n", command.part.c_str(), seconds,
                trains(command) ? " for two steps" : "", outcome.peak_bytes / 1e9);
    const std::string log = folder + "/" + command.part + ".log";
    print_sizes(log, command.part, plan);
    if (!compare_sizes) continue;
    if (const std::string wrong = wrong_size(plan.model_sizes, command.part, said_sizes(read_file(log)));
        !wrong.empty())
      throw Error(text("%s --%s, %s: %s", experiment.name.c_str(), name_of(scale.size).c_str(), command.part.c_str(),
                       wrong.c_str()));
  }
}

// Of one start of it.
double DryRun::seconds_for(const Command& command, const std::string& folder, const std::string& short_words) const {
  std::filesystem::remove_all(part_folder(folder, command.part));  // others may start from what it leaves
  const auto begin = std::chrono::steady_clock::now();
  start(command, folder, short_words);
  return seconds_since(begin);
}

constexpr double ENOUGH = 2;  // seconds by which one of two runs has to be longer to tell something

// The difference of two runs. More steps are taken where that tells too little, unless they would take long.
double DryRun::seconds_of_steps(const Command& command, const std::string& folder) const {
  constexpr int FEW = 2, MORE = 5, TIMES = 10;
  constexpr double MOST = 20;  // seconds
  const double steps = number_behind(command.words, "--steps");
  const auto seconds = [&](int some) {
    const std::string number = std::to_string(some);
    const std::string rarely = " --eval-every " + number + " --eval-samples 1" + short_tests(command);
    return seconds_for(command, folder, " --steps " + number + (trains(command) ? rarely : ""));
  };
  const double few = seconds(FEW);
  for (int more = MORE;; more *= TIMES) {
    const double all = seconds(FEW + more), each = all / (FEW + more);
    if (all - few < ENOUGH && TIMES * more <= steps && TIMES * more * each <= MOST && !interrupted()) continue;
    return steps * (all > few ? (all - few) / more : each);
  }
}

// All models of a study on a small part of its tokens or operations, and on a larger one.
double DryRun::seconds_of_study(const Command& command, const std::string& folder) const {
  constexpr double LESS = 1.0 / 600, LARGEST = 0.2;
  for (const char* option : {"--budgets", "--tokens"}) {
    const double all = sum_behind(command.words, option);
    if (all == 0) continue;
    const auto seconds = [&](double part) {
      return seconds_for(command, folder, std::string(" ") + option + " " + number_text(part * all, 6));
    };
    const double less = seconds(LESS);
    for (double part = 3 * LESS;; part *= 5) {
      const double longer = seconds(part) - less;
      if (longer >= ENOUGH || 5 * part > LARGEST || interrupted()) return std::max(0.0, longer) / (part - LESS);
    }
  }
  return 0;
}

// What decides how long a command takes: its words but the seed.
std::string without_seed(const Command& command) {
  std::vector<std::string> words = command.words;
  const auto seed = std::find(words.begin(), words.end(), "--seed");
  if (seed != words.end()) words.erase(seed, seed + 2);
  std::string all = command.program;
  for (const std::string& word : words) all += " " + word;
  return all;
}

std::vector<double> DryRun::seconds_of(const Experiment& experiment, const Scale& scale, const Record* begun) const {
  const InterruptGuard guard;
  const Plan plan = experiment.plan(scale);
  const TryFolder tried("runs/measured-" + name_of(scale.size) + "-" + experiment.name, plan);
  const std::string& folder = tried.path();
  std::vector<double> all;
  std::map<std::string, double> known;
  for (size_t i = 0; i < plan.commands.size(); ++i) {
    const Command& command = plan.commands[i];
    if (begun && begun->done(i) && !starts_another(plan, begun, i)) {
      all.push_back(begun->commands[i].seconds);
      continue;
    }
    const bool asks = command.kind == Command::Kind::NAMES;  // models that it trains for it
    const bool steps = (trains(command) || asks) && number_behind(command.words, "--steps") > 0;
    const auto [found, is_new] = known.try_emplace(without_seed(command), 0);
    if (is_new && !interrupted())
      found->second = command.program == "scaling" ? seconds_of_study(command, folder)
                      : steps                      ? seconds_of_steps(command, folder)
                                                   : 0;
    if (is_new && !interrupted() && found->second == 0 && starts_another(plan, begun, i))
      seconds_for(command, folder, short_words(command));
    all.push_back(found->second);
  }
  return all;
}

void DryRun::print_seconds(const Experiment& experiment) const {
  for (const Scale::Size size : {Scale::Size::QUICK, Scale::Size::EVENING}) {
    Scale scale;
    scale.size = size;
    if (!has_plan(experiment, size)) continue;
    std::printf("  %-21s --%s: ", experiment.name.c_str(), name_of(size).c_str());
    std::fflush(stdout);
    const std::vector<double> seconds = seconds_of(experiment, scale);
    if (interrupted()) return;
    std::printf("about %s of training on this machine\n",
                duration_text(std::accumulate(seconds.begin(), seconds.end(), 0.0)).c_str());
  }
}

}  // namespace petroglyph
