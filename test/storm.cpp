// Storms: runs that are killed at random moments, processes that meet in one folder, experiments that are killed while
// their children run. The result of every run is bit-identical to an undisturbed one.
//
//   storm [--kills N] [--rounds N] [--seed N]     make storm: long; make test: a minute's part

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/options.h"
#include "base/program.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "check.h"
#include "dice.h"
#include "shell.h"

namespace petroglyph {
namespace {

void pause_for(double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }

// ---- Runs -----------------------------------------------------------------------------------------------------------

const std::string SIZES =
    " --width 8 --batch 2 --eval-samples 4 --eval-every 5 --threads 1 --device cpu --save-every 1";

// The disturbed command. Its folder is runs/a, or those of the experiment.
struct Scenario {
  std::string name, command;
  bool several = false;  // several runs: the same command continues them
};

std::vector<Scenario> scenarios() {
  return {
      {"copy", "train_copy --name a --model rnn --hidden 8 --length 3 --steps 40 --stop-at 2" + SIZES},
      {"comparison",
       "train_copy --name a --compare rnn:hidden=8,transformer --layers 1 --length 3 --steps 20 --stop-at 2 "
       "--evaluate-lengths 2" +
           SIZES,
       true},
      {"text",
       "train_text --name a --data ../text --model rnn --hidden 8 --context 8 --sample-length 0 --steps 40" + SIZES},
      {"regular",
       "train_regular --name a --seeds 1,2 --model rnn --train-length 6 --test-from 7 --test-to 9 --test-strings 4 "
       "--steps 20" +
           SIZES,
       true},
      {"study",
       "scaling --name a --budgets 4e6 --widths 4,8,16 --models mlp_lm --context 4 --embedding 4 --heads 1 --batch 8 "
       "--eval-samples 8 --data ../text --threads 1 --save-every 1 --device cpu",
       true},
      {"experiment", "reproduce run ../tiny.txt", true}};
}

// Two commands of another program; the second one needs the first one's folder.
const std::string TINY =
    "title Tiny\npaper copying, table 0\nshows It shows.\nsize quick, seconds: Small.\n"
    "set SIZE = --model rnn --hidden 8 --length 3 --steps 20 --stop-at 2 --width 8 --batch 2 --eval-samples 4 "
    "--eval-every 5\n"
    "run train: ./train_copy {SIZE} --save-every 1\n"
    "run again: ./train_copy --init @train/model.safetensors --seed 7 {SIZE}\n";

// Processes of a scenario in a folder of its own.
class Place {
 public:
  Place(std::string folder, const Scenario& scenario) : folder_(std::move(folder)), scenario_(scenario) {
    std::filesystem::create_directories(folder_);
  }

  pid_t begin(bool resumed) const {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) become(resumed);
    return child;
  }

  // Whether there is a checkpoint to resume from.
  bool begun() const {
    if (scenario_.several) return std::filesystem::exists(folder_ + "/runs");
    return std::filesystem::exists(folder_ + "/runs/a/model.safetensors");
  }
  // Nothing, where it was killed before it began to write.
  std::string said() const {
    return std::filesystem::exists(folder_ + "/said") ? read_bytes(folder_ + "/said") : std::string();
  }
  bool is_locked() const { return said().find(" is at work in this folder") != std::string::npos; }
  void clear() const { std::filesystem::remove_all(folder_ + "/runs"); }
  const std::string& folder() const { return folder_; }

  // Opens whatever lies there as a reader would; the number of files, or an Error.
  size_t read_all() const {
    size_t files = 0;
    std::error_code none;
    for (std::filesystem::recursive_directory_iterator entry(folder_ + "/runs", none), end; entry != end;
         entry.increment(none)) {
      const std::filesystem::path path = entry->path();
      try {
        if (path.extension() == ".safetensors") SafetensorsFile file(path.string());
        if (path.filename() == "log.csv") read_csv(path.string());
      } catch (const Error&) {
        if (std::filesystem::exists(path)) throw;  // else it was put aside while we looked
      }
      ++files;
    }
    return files;
  }

 private:
  [[noreturn]] void become(bool resumed) const {
    const std::string more = resumed && !scenario_.several ? " --resume" : "";
    const std::string command = "cd '" + folder_ + "' && exec " + scenario_.command + more + " > said 2>&1";
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(126);
  }

  std::string folder_;
  Scenario scenario_;
};

// Waits so long at most; −1: it has not ended.
int wait_a_while(pid_t process, double seconds) {
  const auto start = Clock::now();
  for (int status = 0; seconds_since(start) < seconds; pause_for(0.001)) {
    if (waitpid(process, &status, WNOHANG) == process)
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return -1;
}

// What differs between two places; empty: nothing that a run must give again.
std::string difference(const std::string& whole, const std::string& disturbed) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(whole + "/runs")) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().filename().string(), own = entry.path().string().substr(whole.size());
    const std::string extension = entry.path().extension().string();
    const bool told = name == "runs.csv" || name == ".lock" || extension == ".log" || name == "previous.safetensors" ||
                      name == "index.html";
    if (told) continue;
    const auto rows = [&](const std::string& place) {
      return name == "log.csv" ? log_rows(place + own) : read_bytes(place + own);
    };
    const bool same = rows(whole) == rows(disturbed);
    if (!same) return own;
  }
  return "";
}

// ---- The storms -----------------------------------------------------------------------------------------------------

class Storm {
 public:
  Storm(Test& test, uint64_t seed) : test_(test), dice_(seed) {
    std::string text;
    for (int i = 0; i < 2000; ++i) text += "abcde"[i * i % 5], text += i % 7 ? ' ' : '\n';
    folder_.write("text", text);
    folder_.write("tiny.txt", TINY);
  }

  void kills(int wanted) {
    const auto start = Clock::now();
    int kills = 0, runs = 0, anew = 0;
    size_t files = 0;
    while (kills < wanted && good_) {
      const Scenario scenario = all_[static_cast<size_t>(runs) % all_.size()];
      const double length = undisturbed(scenario);
      const Place place(folder_.file("k-" + scenario.name), scenario);
      for (int of_run = 0; good_;) {
        if (!place.begun()) anew += of_run > 0, place.clear();
        const pid_t child = place.begin(place.begun());
        const int ended = wait_a_while(child, of_run < 40 ? (0.02 + dice_.part()) * length / 2 : 600);
        if (ended == 1 && place.is_locked()) {  // children of a parent that was killed are still saving
          pause_for(0.02);
          continue;
        }
        if (ended >= 0) {
          expect(scenario.name + ": a run that goes on ends well", ended == 0, place.said());
          break;
        }
        constexpr int SIGNALS[] = {SIGKILL, SIGKILL, SIGKILL, SIGTERM, SIGINT};
        const int number = SIGNALS[dice_.below(5)];
        kill(child, number);
        const int status = wait_for(child);
        ++kills, ++of_run;
        expect(scenario.name + ": ends by its signal, or saves",
               status == 128 + number || status == INTERRUPTED_STATUS || status == 0,
               text("status %d: ", status) + place.said());
        if (status == 0) break;
        files += read_all(place);
      }
      compare(place, scenario);
      ++runs;
    }
    std::printf(
        "     storm of kills: %d kills of %d runs (%d begun anew, before their first checkpoint), %zu files read, %.0f "
        "s\n",
        kills, runs, anew, files, seconds_since(start));
    test_.check("every killed run ends with the same bits", good_);
  }

  void meetings(int rounds) {
    const auto start = Clock::now();
    int refused = 0, killed = 0, done = 0;
    for (; done < rounds && good_; ++done) {
      const Scenario scenario = all_[static_cast<size_t>(done) % all_.size()];
      const double length = undisturbed(scenario);
      const Place place(folder_.file("m-" + scenario.name), scenario);
      std::vector<pid_t> processes;
      for (int i = 0; i < 4; ++i) {
        processes.push_back(place.begin(place.begun()));
        pause_for(dice_.part() * length / 3);
        if (dice_.below(2)) kill(processes[dice_.below(processes.size())], SIGKILL);
      }
      for (const pid_t process : processes) {
        const int status = wait_for(process);
        refused += status == 1;
        killed += status == 128 + SIGKILL;
        expect(scenario.name + ": ends well, is refused or killed",
               status == 0 || status == 1 || status == 128 + SIGKILL, text("status %d: ", status) + place.said());
      }
      int status = -1;
      for (int tries = 0; tries < 200 && status != 0; ++tries) {
        if (tries > 2) pause_for(0.1);
        if (!place.begun()) place.clear();
        status = wait_for(place.begin(place.begun()));
      }
      expect(scenario.name + ": the last process ends well", status == 0, place.said());
      read_all(place);
      compare(place, scenario);
    }
    std::printf("     storm of processes: %d rounds of five processes in one folder, %d refused, %d killed, %.0f s\n",
                done, refused, killed, seconds_since(start));
    test_.check("every folder that several processes met in has the same bits", good_);
  }

 private:
  // The scenario once, for comparison; how long it takes.
  double undisturbed(const Scenario& scenario) {
    const Place place(folder_.file("w-" + scenario.name), scenario);
    const auto known = lengths_.find(scenario.name);
    if (known != lengths_.end()) return known->second;
    const auto start = Clock::now();
    const int status = wait_for(place.begin(false));
    expect(scenario.name + ": undisturbed", status == 0, place.said());
    return lengths_[scenario.name] = seconds_since(start);
  }

  void compare(const Place& place, const Scenario& scenario) {
    const std::string differs = difference(folder_.file("w-" + scenario.name), place.folder());
    expect(scenario.name + ": has the same bits", differs.empty(), differs);
    if (good_) place.clear();
  }

  size_t read_all(const Place& place) {
    try {
      return place.read_all();
    } catch (const std::exception& error) {
      expect("every file is whole", false, error.what());
      return 0;
    }
  }

  // Counted together: thousands of lines, one for each kill, would not help.
  void expect(const std::string& name, bool condition, const std::string& details) {
    if (condition || !good_) return;
    good_ = test_.check(name, false, details);
  }

  Test& test_;
  Dice dice_;
  TemporaryFolder folder_;
  std::vector<Scenario> all_ = scenarios();
  std::map<std::string, double> lengths_;
  bool good_ = true;
};

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  return run_program("storm", [&] {
    int kills = 24, rounds = 6;
    uint64_t seed = 1;
    Options options("storm", "Kills runs and lets processes meet, at random.");
    options.add("kills", &kills, 0, 1 << 30, "runs to kill");
    options.add("rounds", &rounds, 0, 1 << 30, "meetings of processes in one folder");
    options.add("seed", &seed, 0, 1 << 30, "other moments");
    options.parse({argv + 1, argv + argc});
    work_in_memory();
    Test test(1, argv);
    const std::string programs = std::filesystem::absolute(argv[0]).parent_path().parent_path().string();
    setenv("PATH", (programs + ":" + std::getenv("PATH")).c_str(), 1);
    if (kills > 0) test.run("kills", [&] { Storm(test, seed).kills(kills); });
    if (rounds > 0) test.run("meetings", [&] { Storm(test, seed + 1).meetings(rounds); });
    return test.finish();
  });
}
