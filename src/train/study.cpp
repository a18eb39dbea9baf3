#include "train/study.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/folder_lock.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/program.h"
#include "base/text.h"
#include "cpu/parallel.h"
#include "train/checkpoint.h"
#include "train/device.h"
#include "train/process.h"

namespace petroglyph {

void StudySettings::declare(Options& options) {
  options.section("Training");
  options.add("batch", &run.batch, 1, 1 << 20, "samples that go through a model at a time");
  options.add("accumulate", &run.accumulate, 1, 1 << 16, "batches whose gradients are averaged into one step");
  options.add("shards", &run.shards, 1, 1 << 16,
              "parts of a batch; processes started by mpirun train each run together, one run after another");
  options.add("lr", &run.rate.peak, 0, 1e3, "learning rate after the warm-up, which takes a tenth of each run's steps");
  options.add("lr-floor", &run.rate.floor, 0, 1e3, "where the cosine over each run's steps ends");
  options.add("weight-decay", &run.adamw.weight_decay, 0, 10, "AdamW's decay of the weights, times the learning rate");
  options.add("clip", &run.adamw.clip, 0, 1e9, "largest global norm of the gradient; 0: none");
  options.add("seed", &run.seed, 0, std::numeric_limits<uint64_t>::max(), "initial weights and samples");
  options.add("eval-samples", &run.eval_samples, 1, 1 << 24, "samples of the evaluation at a run's end");
  options.section("Runs");
  options
      .add("name", &run.name,
           "the folder runs/NAME; default: the first free one. With the name of an earlier study, "
           "finished runs are skipped and the others continue")
      .placeholder("NAME");
  options.add("save-every", &run.save_every, 1, 1 << 30, "steps between checkpoints");
  options.add("processes", &processes, 0, 1024, "runs at a time; 0: one for each core of the CPU, one on a GPU");
  declare_device(options, &run.device);
  options.add("threads", &run.threads, 0, 1024, "CPU threads of each run; 0: the cores divided by the runs");
}

Study::Study(const StudySettings& settings, const std::string& name, std::string data)
    : settings_(settings), name_(name), data_(std::move(data)) {
  settings_.run.check_shards();
}

bool Study::train(std::vector<StudyRun>& runs) {
  const InterruptGuard guard;
  Ranks& ranks = *settings_.run.ranks;
  std::optional<FolderLock> lock;  // inherited by the runs, which may outlive a parent that is killed
  if (ranks.first()) {
    make_folder(folder());
    lock.emplace(folder());
  }
  for (StudyRun& run : runs) ranks.from_first([&] { return read_result(run); });
  for (StudyRun& run : runs) ranks.broadcast(&run.loss, sizeof run.loss);
  const bool finished = ranks.count() > 1 ? train_in_turn(runs) : train_in_processes(runs);
  if (finished && ranks.first()) write_points(runs);
  return finished;
}

// By all ranks together: a rank may not fork.
bool Study::train_in_turn(std::vector<StudyRun>& runs) {
  for (StudyRun& run : runs) {
    if (run.finished()) continue;
    if (train_one(run) != 0) return false;
    if (settings_.run.ranks->first()) keep_result(run, runs);
    settings_.run.ranks->broadcast(&run.loss, sizeof run.loss);
  }
  return true;
}

namespace {

// The next process that ends. A signal that came to this process alone is passed on to all of them once.
pid_t wait_for_one(const std::map<pid_t, StudyRun*>& busy, int* status) {
  for (bool passed_on = false;;) {
    const pid_t ended = waitpid(-1, status, WNOHANG);
    if (ended < 0) throw Error(std::string("the runs cannot be waited for: ") + std::strerror(errno));
    if (ended > 0) return ended;
    if (interrupted() && !passed_on) {
      passed_on = true;
      for (const auto& [process, run] : busy) kill(process, SIGTERM);
    }
    usleep(10000);
  }
}

}  // namespace

bool Study::train_in_processes(std::vector<StudyRun>& runs) {
  const bool on_cpu = describe_device(settings_.run.device, 1).rfind("CPU", 0) == 0;
  if (on_cpu && settings_.run.device == "auto")
    settings_.run.device = "cpu";  // so that the runs do not each print why they take the CPU
  const int cores = on_cpu || settings_.run.device == "reference" ? available_threads() : 1;
  if (settings_.processes == 0) settings_.processes = cores;
  if (settings_.run.threads == 0 && settings_.processes > 1)
    settings_.run.threads = std::max(1, available_threads() / settings_.processes);
  std::map<pid_t, StudyRun*> busy;
  std::string failed;
  auto next = runs.begin();
  for (;;) {
    while (next != runs.end() && next->finished()) ++next;
    const bool more = next != runs.end() && !interrupted() && failed.empty();
    if (more && static_cast<int>(busy.size()) < settings_.processes) {
      const StudyRun& run = *next;
      busy[in_a_process(settings_.run.program, [&] { return train_one(run); })] = &*next++;
      continue;
    }
    if (busy.empty()) break;
    int status = 0;
    const auto found = busy.find(wait_for_one(busy, &status));
    if (found == busy.end()) continue;
    StudyRun& run = *found->second;
    busy.erase(found);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
      keep_result(run, runs);
    else if (WIFEXITED(status) && WEXITSTATUS(status) == INTERRUPTED_STATUS)
      next = runs.end();
    else if (!interrupted())
      failed = folder() + "/" + run.name + ": this run " +
               (WIFEXITED(status) ? text("ended with status %d", WEXITSTATUS(status))
                                  : text("was ended by signal %d", WTERMSIG(status)));
  }
  if (!failed.empty()) throw Error(failed);
  return std::all_of(runs.begin(), runs.end(), [](const StudyRun& run) { return run.finished(); });
}

RunSettings Study::settings_of(const StudyRun& run) const {
  RunSettings settings = settings_.run;
  settings.group = name_ + "/";
  settings.name = run.name;
  settings.steps = run.steps;
  settings.eval_every = static_cast<int>(std::clamp<int64_t>(run.steps, 1, 1 << 30));
  settings.stop_at = 2;
  settings.schedule = "cosine";
  settings.rate.warmup = run.steps / 10;
  settings.quiet = settings_.processes > 1;
  return settings;
}

int Study::train_one(const StudyRun& run) const {
  RunSettings settings = settings_of(run);
  if (settings.quiet && !std::freopen("/dev/null", "w", stdout)) throw Error("/dev/null: cannot be written");
  Options options(settings.program, "");
  settings.declare(options);
  Run training(settings, options, run.name);
  RunExtras extras;
  extras.data = Json::object().set("samples", data_);
  training.prepare(run.model, run.config, *run.task, extras);
  return training.train() ? 0 : INTERRUPTED_STATUS;
}

// The result of a finished run, from its folder. False if it is not finished: then the run itself checks its settings.
bool Study::read_result(StudyRun& run) const {
  const std::string path = folder() + "/" + run.name + "/model.safetensors",
                    log_path = folder() + "/" + run.name + "/log.csv";
  if (!is_there(path) || !is_there(log_path)) return false;
  const SafetensorsFile file(path);
  const RunState state = read_run_state(file, settings_.run.program);
  const CsvTable log = read_csv(log_path);
  if (state.step != run.steps || log.rows() == 0 || log.column("step").back() != static_cast<double>(run.steps))
    return false;
  RunSettings settings = settings_of(run);
  Options options(settings.program, "");
  settings.declare(options);
  options.restore(state.options, path, true);
  const Json* const samples = state.data.find("samples");
  if (state.config.text() != run.config.text() || !samples || samples->text() != Json(data_).text())
    throw Error(path + ": its model or its samples are others than this command's; choose another --name");
  run.loss = log.column("eval_loss").back();
  run.weights = fingerprint_of(file);
  return run.finished();
}

void Study::keep_result(StudyRun& run, const std::vector<StudyRun>& runs) const {
  if (!read_result(run))
    throw Error(folder() + "/" + run.name + "/log.csv: has no evaluation at step " + with_commas(run.steps));
  write_points(runs);
  const auto finished = std::count_if(runs.begin(), runs.end(), [](const StudyRun& r) { return r.finished(); });
  std::printf("%3d of %zu  %-36s %13s parameters %13s tokens   loss %.4f\n", static_cast<int>(finished), runs.size(),
              run.name.c_str(), with_commas(run.parameters).c_str(),
              with_commas(static_cast<int64_t>(run.tokens)).c_str(), run.loss);
  std::fflush(stdout);
}

void Study::write_points(const std::vector<StudyRun>& runs) const {
  std::string csv = "name,model,budget,setting,parameters,tokens,steps,loss,perplexity,weights\n";
  for (const StudyRun& r : runs) {
    if (!r.finished()) continue;
    csv += r.name + "," + r.model + "," + (r.budget > 0 ? number_text(r.budget, 9) : "") + "," +
           number_text(r.setting, 9) + "," + std::to_string(r.parameters) + "," + number_text(r.tokens, 15) + "," +
           std::to_string(r.steps) + "," + number_text(r.loss, 9) + "," + number_text(std::exp(r.loss), 9) + "," +
           r.weights + "\n";
  }
  write_file_atomically(folder() + "/points.csv", csv);
}

std::string weights_of_study(const std::vector<StudyRun>& runs) {
  std::vector<std::string> rows;
  for (const StudyRun& run : runs) rows.push_back(run.name + " " + run.weights + "\n");
  std::sort(rows.begin(), rows.end());
  Checksum checksum;
  for (const std::string& row : rows) checksum.update(row.data(), row.size());
  return checksum.hex();
}

int64_t ParameterCounter::count(const std::string& model, Json config, const std::string& key, int64_t value) {
  config.set(key, 1);
  const std::string family = model + config.text();
  if (counted_.find(family) == counted_.end()) {
    const auto ops = make_device("cpu", 1);
    const int64_t one = make_model(model, config, *ops)->parameters.size();
    config.set(key, 2);
    counted_[family] = {one, make_model(model, config, *ops)->parameters.size()};
  }
  const auto [one, two] = counted_[family];
  return one + (value - 1) * (two - one);
}

}  // namespace petroglyph
