#include "reproduction/run_experiment.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "base/atomic_file.h"
#include "base/cadence.h"
#include "base/error.h"
#include "base/folder_lock.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "reproduction/cells.h"
#include "train/checkpoint.h"
#include "train/device.h"

namespace petroglyph {

namespace {

namespace fs = std::filesystem;

const char* const CHECKPOINT = "model.safetensors";

// The option for a command's output folder; empty: it only prints.
std::string output_option(const PlannedRun& run) {
  if (run.program == "generate") return "";
  if (run.program != "inspect" || run.words[0] == "positions") return "--name";
  return run.words[0] == "counts" || run.words[0] == "lemma1" ? "" : "--out";
}

// All checkpoints in a folder and its subfolders.
std::set<fs::path> checkpoints_in(const std::string& folder) {
  std::set<fs::path> found;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(folder, none))
    if (entry.path().filename() == CHECKPOINT) found.insert(entry.path());
  return found;
}

// Their fingerprints: "causal_rn f8227c176a004670, transformer 41b580f6617ef248".
std::string weights_in(const std::string& folder) {
  std::vector<std::string> weights;
  for (const fs::path& path : checkpoints_in(folder)) {
    const std::string name = fs::relative(path.parent_path(), folder).string();
    weights.push_back((name == "." ? "" : name + " ") + fingerprint_of(SafetensorsFile(path.string())));
  }
  return join(weights, ", ");
}

// The files of a run that the page needs.
std::set<std::string> wanted_files(const Plan& plan, const std::string& run) {
  std::set<std::string> files;
  for (const Table& table : plan.tables)
    for (const Row& row : table.rows)
      for (const Cell& cell : row.cells)
        if (is_of_part(run, cell.part)) files.insert(cell.file);
  for (const ShownFile& shown : plan.shown)
    if (run == shown.part) files.insert(shown.file);
  files.erase("");  // the log is already in the folder
  return files;
}

// ---- Another program ------------------------------------------------------------------------------------------------

constexpr std::chrono::milliseconds POLL(100);  // the longest delay of the output and of a Ctrl-C

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw Error(path + ": " + what + ": " + std::strerror(errno));
}

// Prints the log from byte `begin` on; returns where it ends. pread: the child's output moves the file's position.
off_t print_from(int log, off_t begin) {
  char buffer[4096];
  for (ssize_t n; (n = pread(log, buffer, sizeof buffer, begin)) > 0; begin += n)
    std::fwrite(buffer, 1, static_cast<size_t>(n), stdout);
  std::fflush(stdout);
  return begin;
}

std::string last_line_of(const std::string& log) {
  std::string last;
  for (const std::string& line : split(read_file(log), '\n'))
    if (!line.empty()) last = line.substr(line.rfind('\r') + 1);
  return last;
}

// Runs another program without a shell. It appends its standard output and standard error to the log, from which they
// are printed here. A Ctrl-C in this program is passed on to the child once (base/interrupt.h: an InterruptGuard must
// exist). So the child can finish its current work and print how to resume. Returns its exit status, or 128 + the
// number of the signal that ended it.
int run_child(const std::string& program, const std::vector<std::string>& words, const std::string& log) {
  if (access(program.c_str(), X_OK) != 0) fail(program, "cannot be run; make builds it");
  std::vector<std::string> all = {program};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  for (std::string& word : all) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int output = open(log.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (output < 0) fail(log, "cannot be opened");
  off_t printed = lseek(output, 0, SEEK_END);
  std::fflush(stdout);
  const pid_t parent = getpid(), child = fork();
  if (child == 0) {  // only calls that are allowed between fork and exec
    end_with_parent(parent);
    if (dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0) execv(program.c_str(), pointers.data());
    _exit(127);
  }
  if (child < 0) close(output), fail(program, "cannot be started");
  int status = 0;
  for (bool ended = false, passed_on = false; !ended;) {
    std::this_thread::sleep_for(POLL);
    if (interrupted() && !passed_on) kill(child, SIGINT), passed_on = true;
    ended = waitpid(child, &status, WNOHANG) == child;
    printed = print_from(output, printed);
  }
  close(output);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// ---- An experiment --------------------------------------------------------------------------------------------------

class Running {
 public:
  Running(const Plan& plan, const std::string& programs, const std::string& device)
      : plan_(plan), programs_(programs), device_(device), folder_(folder_of(plan)), machine_(describe_device(device)) {
    make_folder(folder_);
    lock_.emplace(folder_);
    remove_leftovers(folder_);
    measured_ = read_measured(plan, folder_);
    std::vector<RunRecord> planned;
    for (const PlannedRun& run : plan.runs) planned.push_back(record_of(run));
    measured_.runs = planned;
  }

  int run() {
    const InterruptGuard guard;
    lock_->check();
    write_runs(folder_, measured_.runs);
    for (size_t i = 0; i < plan_.runs.size(); ++i)
      if (!measured_.runs[i].done && !run(plan_.runs[i], measured_.runs[i])) return INTERRUPTED_STATUS;
    return 0;
  }

 private:
  // The stored record of a run. A run that was started with another command is not resumed.
  RunRecord record_of(const PlannedRun& run) const {
    RunRecord record{run.name, command_line(plan_, run), 0, false, "", ""};
    for (const RunRecord& before : measured_.runs) {
      if (before.name != run.name) continue;
      if (before.command != record.command && (before.done || is_there(folder_ + "." + run.name)))
        throw Error(folder_ + ": " + run.name + " was run with another command (" + before.command + "): expected " +
                    record.command + ". Move this folder and " + folder_ + ".* away to start again");
      if (before.command == record.command) record = before;
    }
    return record;
  }

  bool run(const PlannedRun& run, RunRecord& record) {
    std::vector<std::string> words = command_words(plan_, run);
    const std::string own = folder_ + "." + run.name, log = measured_.path(run.name, "");
    const std::string option = output_option(run);
    const bool resumed = option == "--name" && !checkpoints_in(own).empty();
    if (has_device(run)) words.insert(words.end(), {"--device", device_});  // no part of the record
    if (is_there(own + "/" + CHECKPOINT)) words.push_back("--resume");
    if (!option.empty() && !resumed && is_there(own)) put_aside(own);  // without a checkpoint it cannot be resumed
    if (!resumed) {
      record.seconds = 0;
      fs::remove(log);
    }
    std::printf("\n%s: %s\n", plan_.name.c_str(), record.command.c_str());
    const double start = steady_seconds();
    const int status = run_child(programs_ + "/" + run.program, words, log);
    const std::string last_line = last_line_of(log);
    record.seconds += steady_seconds() - start;
    record.machine = machine_;
    record.done = status == 0 && !interrupted();
    if (record.done) keep(run, record, own, last_line);
    lock_->check();
    write_runs(folder_, measured_.runs);
    if (interrupted() || status == INTERRUPTED_STATUS) return false;
    if (status != 0)
      throw Error(
          text("%s: %s ended with status %d: %s", plan_.name.c_str(), run.program.c_str(), status, last_line.c_str()));
    return true;
  }

  // Stores the fingerprint of the trained weights, or the one that the program printed at its end, and copies the
  // files that the pages need.
  void keep(const PlannedRun& run, RunRecord& record, const std::string& own, const std::string& last_line) const {
    const std::string printed = "weights ";
    record.weights = last_line.rfind(printed, 0) == 0 ? last_line.substr(printed.size()) : weights_in(own);
    for (const std::string& file : wanted_files(plan_, run.name))
      if (is_there(own + "/" + file))
        write_file_atomically(measured_.path(run.name, file), read_file(own + "/" + file));
  }

  const Plan& plan_;
  const std::string programs_, device_, folder_, machine_;
  std::optional<FolderLock> lock_;  // locks the folder and so everything that the commands write
  Measured measured_;
};

}  // namespace

int run_plan(const Plan& plan, const std::string& programs, const std::string& device) {
  return Running(plan, programs, device).run();
}

bool has_device(const PlannedRun& run) {
  const std::set<std::string> without = {"counts", "lemma1", "neurons"};
  return run.program != "inspect" || without.count(run.words[0]) == 0;
}

std::string folder_of(const Plan& plan) { return "runs/reproduce-" + plan.size + "-" + plan.name; }

std::vector<std::string> command_words(const Plan& plan, const PlannedRun& run) {
  std::vector<std::string> words;
  const std::string own = folder_of(plan) + "." + run.name;
  for (const std::string& word : run.words)
    words.push_back(word[0] == '@' ? folder_of(plan) + "." + word.substr(1) : word);
  const std::string option = output_option(run);
  if (option == "--out") words.insert(words.end(), {option, own});
  if (option == "--name") words.insert(words.end(), {option, own.substr(std::strlen("runs/"))});
  return words;
}

std::string command_line(const Plan& plan, const PlannedRun& run) {
  std::string line = "./" + run.program;
  for (const std::string& word : command_words(plan, run)) line += " " + as_word(word);
  return line;
}

}  // namespace petroglyph
