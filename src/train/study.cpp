#include "train/study.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <thread>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/program.h"
#include "base/text.h"
#include "cpu/parallel.h"
#include "train/checkpoint.h"
#include "train/device.h"
#include "train/process.h"

namespace petroglyph {

namespace {

const char* const SAMPLES = "checksum_of_samples";
const char* const HEADER = "name,model,budget,setting,parameters,tokens,steps,loss,perplexity,weights";

}  // namespace

void StudySettings::declare(Options& options) {
  options.section("Training");
  options.add("batch", &run.batch, 1, 1 << 20, "samples that go through a model at a time");
  options.add("accumulate", &run.accumulate, 1, 1 << 16, "batches whose gradients are averaged into one step");
  options
      .add("shards", &run.shards, 1, 1 << 16,
           "parts of a batch; where mpirun started several processes, they train each run together, one after another")
      .may_lack();
  options.add("lr", &run.rate.peak, 0, 1e3, "learning rate after the warm-up, which takes a tenth of each run's steps");
  options.add("lr-floor", &run.rate.floor, 0, 1e3, "where the cosine over each run's steps ends");
  options.add("weight-decay", &run.adamw.weight_decay, 0, 10, "AdamW's decay of the weights, times the learning rate");
  options.add("clip", &run.adamw.clip, 0, 1e9, "largest global norm of the gradient; 0: none");
  options.add("seed", &run.seed, 0, std::numeric_limits<uint64_t>::max(), "initial weights and samples");
  options.add("eval-samples", &run.eval_samples, 1, 1 << 24, "samples of the evaluation at a run's end");
  options.section("Runs");
  options.add("name", &run.name, "the folder runs/NAME; default: the first free one").placeholder("NAME").may_change();
  options.add("resume", &run.resume, "goes on with runs/NAME: runs that are done stay as they are").may_change();
  options.add("save-every", &run.save_every, 1, 1 << 30, "steps between checkpoints").may_change();
  options.add("keep-weights", &keep_weights, "keeps the last checkpoint of every run").may_differ().may_lack();
  options.add("processes", &processes, 0, 1024, "runs at a time; 0: one for each core of the CPU, one on a GPU")
      .may_change();
  declare_device(options, &run.device);
  options.add("threads", &run.threads, 0, 1024, "CPU threads of each run; 0: the cores divided by the runs")
      .may_change();
}

Study::Study(StudySettings& settings, Options& options, const std::string& default_name)
    : settings_(settings), options_(options), program_(settings.run.program) {
  const std::string name = group_folder(settings.run, default_name);
  folder_ = "runs/" + name;
  settings.run.name = name;
  settings.run.group = name + "/";
  const std::string saved = folder_ + "/study.json";  // train() writes it
  if (!settings.run.resume) return;
  const std::string before = settings.run.ranks->first_says([&] {
    if (!is_there(saved)) throw Error(folder_ + ": there is no study.json: no study was begun in this folder");
    lock_.emplace(folder_);
    remove_leftovers(folder_);
    return read_regular_file(saved);
  });
  read_settings(Json::parse(before, saved), saved, options);
}

void Study::read_settings(const Json& all, const std::string& path, Options& options) {
  if (!all.is(Json::Kind::Object)) throw Error(path + ": " + name_of(all.kind()) + ", expected an object");
  Json shaped = Json::object();
  for (const Json::Member& member : all.members())
    if (member.first != SAMPLES) shaped.set(member.first, member.second);
  if (const Json* samples = all.find(SAMPLES)) {
    if (!samples->is(Json::Kind::String))
      throw Error(path + ": its " + SAMPLES + " is " + name_of(samples->kind()) + ", expected a string");
    samples_ = samples->string();
  }
  options.restore(shaped, path);
  tells_what_it_keeps_ = shaped.find("keep-weights") != nullptr || options.given("keep-weights");
}

// What is done has learned from the text as it was; a run that begins now would stand beside it in one table.
void Study::check_samples(const std::string& samples) {
  if (!samples_.empty() && samples_ != samples)
    throw Error(folder_ + ": its samples are not those that it has learned from so far: were the data changed?");
  samples_ = samples;
}

// The next process that ended, and how; a signal that came to us alone is passed on to all once.
pid_t Study::wait_for_one(const std::map<pid_t, StudyRun*>& busy, int* status) {
  for (;;) {
    const pid_t ended = waitpid(-1, status, WNOHANG);
    if (ended < 0) throw Error(std::string("the runs cannot be waited for: ") + std::strerror(errno));
    if (ended > 0) return ended;
    if (interrupted() && !passed_on_) {
      passed_on_ = true;
      for (const auto& [process, run] : busy) kill(process, SIGTERM);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void Study::begin(std::vector<StudyRun>& runs) {
  if (!lock_) {
    if (!claim_folder(folder_)) check_new_run(folder_);
    lock_.emplace(folder_);
  }
  read_points(runs);
  const auto has_kept = [&](const StudyRun& run) { return run.done() && is_there(weights_of(run)); };
  if (!tells_what_it_keeps_) settings_.keep_weights = std::any_of(runs.begin(), runs.end(), has_kept);
  Json saved = options_.to_json();
  saved.set(SAMPLES, samples_);
  write_file_atomically(folder_ + "/study.json", saved.text() + "\n");
  for (const StudyRun& run : runs)
    if (run.done()) remove_weights(run);
}

// By all ranks together: a rank is no process to fork.
bool Study::train_in_turn(std::vector<StudyRun>& runs) {
  Ranks& ranks = *settings_.run.ranks;
  device_ = settings_.run.device;
  if (ranks.first()) begin(runs);
  for (StudyRun& run : runs) {
    ranks.broadcast(&run.loss, sizeof run.loss);
    if (run.done()) continue;
    if (train_one(run, 1) != 0) return false;
    if (ranks.first()) {
      finish(run);
      write_points(runs);
      remove_weights(run);
      show(run, runs);
    }
    ranks.broadcast(&run.loss, sizeof run.loss);
  }
  return true;
}

bool Study::train(std::vector<StudyRun>& runs, const std::string& samples) {
  const InterruptGuard guard;
  settings_.run.check_shards();
  check_samples(samples);
  if (settings_.run.ranks->count() > 1) return train_in_turn(runs);
  begin(runs);
  const bool on_cpu = describe_device(settings_.run.device, 1).rfind("CPU", 0) == 0;
  device_ = on_cpu ? "cpu" : settings_.run.device;  // no run asks, and says why, once more
  const int cores = on_cpu || device_ == "reference" ? available_threads() : 1;
  const int processes = settings_.processes > 0 ? settings_.processes : cores;
  std::map<pid_t, StudyRun*> busy;
  std::string failed;
  auto next = runs.begin();
  for (;;) {
    while (next != runs.end() && next->done()) ++next;
    const bool more = next != runs.end() && !interrupted() && failed.empty();
    if (more && static_cast<int>(busy.size()) < processes) {
      busy[start(*next, processes)] = &*next;
      ++next;
      continue;
    }
    if (busy.empty()) break;
    int status = 0;
    const pid_t ended = wait_for_one(busy, &status);
    const auto found = busy.find(ended);
    if (found == busy.end()) continue;
    StudyRun& run = *found->second;
    busy.erase(found);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      finish(run);
      write_points(runs);
      remove_weights(run);
      show(run, runs);
    } else if (!interrupted() && !(WIFEXITED(status) && WEXITSTATUS(status) == INTERRUPTED_STATUS)) {
      failed = WIFEXITED(status) ? text("ended with status %d", WEXITSTATUS(status))
                                 : text("was ended by signal %d", WTERMSIG(status));
      failed = folder_ + "/" + run.name + ": this run " + failed;
    } else {
      next = runs.end();
    }
  }
  if (!failed.empty()) throw Error(failed);
  return std::all_of(runs.begin(), runs.end(), [](const StudyRun& run) { return run.done(); });
}

int Study::start(const StudyRun& run, int processes) const {
  return in_a_process(program_, [&] { return train_one(run, processes); });
}

// In the process of its own. Where several speak at once, none does.
int Study::train_one(const StudyRun& run, int processes) const {
  RunSettings settings = settings_.run;
  settings.name = run.name;
  settings.device = device_;
  settings.steps = run.steps;
  settings.eval_every = static_cast<int>(std::clamp<int64_t>(run.steps, 1, 1 << 30));
  settings.stop_at = 2;
  settings.schedule = "cosine";
  settings.rate.warmup = run.steps / 10;
  settings.quiet = processes > 1;
  settings.resume =
      goes_on_in_group(*settings.ranks, settings.group.substr(0, settings.group.size() - 1), run.name, true);
  if (settings.threads == 0 && processes > 1) settings.threads = std::max(1, available_threads() / processes);
  if (settings.quiet && !std::freopen("/dev/null", "w", stdout)) throw Error("/dev/null: cannot be written");
  Options options(program_, "");
  settings.declare(options);
  Run training(settings, options, run.name);
  settings.save_every = settings_.run.save_every;  // may change, where that of a run by itself may not
  training.prepare(run.model, run.config, *run.task);
  if (training.model().parameters.size() != run.parameters)
    throw Error(text("%s: %s parameters, counted as %s", run.name.c_str(),
                     with_commas(training.model().parameters.size()).c_str(), with_commas(run.parameters).c_str()));
  if (!training.train()) return INTERRUPTED_STATUS;
  if (!settings_.keep_weights && settings.ranks->first())
    std::printf("model.safetensors is removed once its numbers are in %s/points.csv; --keep-weights keeps it\n",
                folder_.c_str());
  return 0;
}

void Study::finish(StudyRun& run) const {
  const std::string folder = folder_ + "/" + run.name;
  const CsvTable log = read_csv(folder + "/log.csv");
  if (log.rows() > 0 && log.column("step").back() == static_cast<double>(run.steps))
    run.loss = log.column("eval_loss").back();
  if (!run.done()) throw Error(folder + "/log.csv: has no evaluation at step " + with_commas(run.steps));
  run.weights = fingerprint_of(SafetensorsFile(checkpoint_path(folder)));
}

// Of a run whose row is written.
std::string Study::weights_of(const StudyRun& run) const { return folder_ + "/" + run.name + "/model.safetensors"; }

void Study::remove_weights(const StudyRun& run) const {
  if (settings_.keep_weights) return;
  for (const std::string& path : {weights_of(run), folder_ + "/" + run.name + "/previous.safetensors"})
    std::filesystem::remove(path);
}

void Study::show(const StudyRun& run, const std::vector<StudyRun>& runs) const {
  const auto done = std::count_if(runs.begin(), runs.end(), [](const StudyRun& r) { return r.done(); });
  std::printf("%3d of %zu  %-36s %13s parameters %13s tokens   loss %.4f\n", static_cast<int>(done), runs.size(),
              run.name.c_str(), with_commas(run.parameters).c_str(),
              with_commas(static_cast<int64_t>(run.tokens)).c_str(), run.loss);
  std::fflush(stdout);
}

void Study::write_points(const std::vector<StudyRun>& runs) const {
  std::string csv = std::string(HEADER) + "\n";
  for (const std::string& row : other_rows_) csv += row + "\n";
  for (const StudyRun& r : runs) {
    if (!r.done()) continue;
    csv += r.name + "," + r.model + "," + (r.budget > 0 ? number_text(r.budget, 9) : "") + "," +
           number_text(r.setting, 9) + "," + std::to_string(r.parameters) + "," + number_text(r.tokens, 15) + "," +
           std::to_string(r.steps) + "," + number_text(r.loss, 9) + "," + number_text(std::exp(r.loss), 9) + "," +
           r.weights + "\n";
  }
  if (lock_) lock_->check();
  write_file_atomically(folder_ + "/points.csv", csv);
}

void Study::read_points(std::vector<StudyRun>& runs) {
  const std::string path = folder_ + "/points.csv";
  if (!std::filesystem::exists(path)) return;
  const std::vector<std::string> lines = split(read_regular_file(path), '\n');
  if (lines.empty() || lines[0] != HEADER) throw Error(path + ": expected the columns " + HEADER);
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::vector<std::string> cells = split(lines[i], ',');
    const std::string where = path + ":" + std::to_string(i + 1);
    const std::optional<double> loss = cells.size() == 10 ? parse_number(cells[7]) : std::nullopt;
    if (!loss) throw Error(where + ": expected 10 cells, the eighth of them a loss");
    const auto run = std::find_if(runs.begin(), runs.end(), [&](const StudyRun& r) { return r.name == cells[0]; });
    if (run == runs.end()) {
      other_rows_.push_back(lines[i]);
      continue;
    }
    if (parse_integer(cells[4]) != run->parameters || parse_integer(cells[6]) != run->steps)
      throw Error(where + ": " + cells[4] + " parameters and " + cells[6] + " steps, this configuration has " +
                  std::to_string(run->parameters) + " and " + std::to_string(run->steps));
    run->loss = *loss;
    run->weights = cells[9];
  }
}

std::string weights_of_study(const std::string& folder) {
  const std::string path = folder + "/points.csv";
  std::vector<std::string> lines = split(read_regular_file(path), '\n');
  if (lines[0] != HEADER) throw Error(path + ": expected the columns " + HEADER);
  // Whatever the order in which the runs were asked for.
  std::sort(lines.begin() + 1, lines.end());
  Checksum checksum;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::vector<std::string> cells = split(lines[i], ',');
    const std::string named = cells.front() + " " + cells.back() + "\n";
    checksum.update(named.data(), named.size());
  }
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
