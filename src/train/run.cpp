#include "train/run.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/text.h"
#include "figures/figure.h"
#include "train/device.h"

namespace petroglyph {

namespace {

const std::vector<std::string> COLUMNS = {"step",          "loss",      "accuracy",     "learning_rate",
                                          "gradient_norm", "eval_loss", "eval_accuracy"};
constexpr double NOT_MEASURED = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void check_run_name(const std::string& name) {
  const bool good = !name.empty() && name[0] != '.' && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  if (!good)
    throw UsageError("--name " + name + ": expected letters, digits, '-', '_' and '.', the first of them no '.'");
}

std::string free_run_name(const std::string& name) {
  std::string candidate = name;
  for (int i = 2; std::filesystem::exists("runs/" + candidate); ++i) candidate = name + "-" + std::to_string(i);
  return candidate;
}

void check_new_run(const std::string& folder) {
  if (std::filesystem::exists(folder))
    throw Error(folder + ": this run exists already; go on with it (--resume) or choose another --name");
}

bool goes_on_in_group(const std::string& group, const std::string& name, bool resumed) {
  const std::string folder = "runs/" + group + "/" + name;
  if (std::filesystem::exists(folder + "/model.safetensors")) return true;
  if (resumed && std::filesystem::exists(folder)) {
    std::string aside = folder + ".before";
    for (int i = 2; std::filesystem::exists(aside); ++i) aside = folder + ".before-" + std::to_string(i);
    std::filesystem::rename(folder, aside);
  }
  return false;
}

std::string group_folder(const RunSettings& settings, const std::string& otherwise) {
  if (settings.name.empty()) return settings.resume ? otherwise : free_run_name(otherwise);
  check_run_name(settings.name);
  if (!settings.resume) check_new_run("runs/" + settings.name);
  return settings.name;
}

bool is_snapshot(int64_t step, int64_t every) {
  if (every == 0) return false;
  if (step == 0 || step >= every) return step % every == 0;
  while (every > step) every /= 2;
  return every == step;
}

double step_reached(const CsvTable& log, double accuracy) {
  const std::vector<double>& evaluated = log.column("eval_accuracy");
  const auto first = std::find_if(evaluated.begin(), evaluated.end(), [&](double a) { return a >= accuracy; });
  return first == evaluated.end() ? NOT_MEASURED : log.column("step")[static_cast<size_t>(first - evaluated.begin())];
}

struct Run::Row {
  Measures trained{NOT_MEASURED, NOT_MEASURED};
  Measures evaluated{NOT_MEASURED, NOT_MEASURED};
  double rate = NOT_MEASURED, gradient_norm = NOT_MEASURED;
};

void RunSettings::declare(Options& options) {
  options.section("Training");
  options.add("batch", &batch, 1, 1 << 20, "samples that go through the model at a time");
  options.add("accumulate", &accumulate, 1, 1 << 16, "batches whose gradients are averaged into one step");
  options.add("steps", &steps, 0, int64_t(1) << 31, "steps at most").may_differ();
  options.add("stop-at", &stop_at, 0, 2, "ends when an evaluation's accuracy reaches this; 2: never").may_differ();
  options.add("lr", &rate.peak, 0, 1e3, "learning rate after warm-up");
  options.add("warmup", &rate.warmup, 0, int64_t(1) << 31, "steps over which the learning rate rises from 0");
  options.add("schedule", &schedule, {"constant", "cosine"}, "the learning rate after warm-up");
  options.add("lr-floor", &rate.floor, 0, 1e3, "where the cosine ends");
  options.add("beta1", &adamw.beta1, 0, 0.999999, "AdamW's decay of the mean gradient");
  options.add("beta2", &adamw.beta2, 0, 0.999999, "AdamW's decay of the mean square");
  options.add("epsilon", &adamw.epsilon, 1e-30, 1, "AdamW's guard against division by zero");
  options.add("weight-decay", &adamw.weight_decay, 0, 10,
              "AdamW's decay of matrices and tables, times the learning rate");
  options.add("clip", &adamw.clip, 0, 1e9, "largest global norm of the gradient; 0: none");
  options.add("seed", &seed, 0, std::numeric_limits<uint64_t>::max(), "initial weights and samples");
  options.add("init", &init, "starts from the parameters in this safetensors file").placeholder("FILE");
  options.section("Evaluation");
  options.add("eval-every", &eval_every, 1, 1 << 30, "steps between evaluations");
  options.add("eval-samples", &eval_samples, 1, 1 << 24, "fresh samples of one evaluation");
  options.section("Run");
  options.add("name", &name, "the folder runs/NAME; default: the first free one").placeholder("NAME").may_change();
  options.add("resume", &resume, "goes on with runs/NAME where it stopped, to the same bits").may_change();
  options.add("save-every", &save_every, 1, 1 << 30, "steps between checkpoints").may_differ();
  options
      .add("snapshots", &snapshots, 0, int64_t(1) << 31,
           "keeps the weights of every so many steps, more often at first, in snapshots/; 0: never")
      .may_differ();
  declare_device(options, &device, &threads);
  options.add("quiet", &quiet, "prints results only").may_change();
}

Run::Run(RunSettings& settings, Options& options, const std::string& default_name) : settings_(settings) {
  state_.program = settings.program;
  if (settings.resume && settings.name.empty()) settings.name = default_name;
  if (settings.name.empty()) settings.name = free_run_name(default_name);
  check_run_name(settings.name);
  folder_ = "runs/" + settings.group + settings.name;
  checkpoint_ = file("model.safetensors");
  if (settings.resume) {
    resume(options);
  } else {
    check_new_run(folder_);
  }
  settings.rate.cosine = settings.schedule == "cosine";
  settings.rate.steps = settings.steps;
  state_.options = options.to_json();
}

void Run::resume(Options& options) {
  if (std::filesystem::exists(folder_) && !std::filesystem::exists(checkpoint_))
    throw Error(folder_ + ": this run ended before its first checkpoint; remove the folder and start anew");
  const RunState saved = read_run_state(SafetensorsFile(checkpoint_), settings_.program);
  options.restore(saved.options, checkpoint_);
  if (settings_.schedule == "cosine" && saved.options.at("steps").integer() != settings_.steps)
    throw Error(text("--steps %lld: this run's cosine was laid out over %lld steps",
                     static_cast<long long>(settings_.steps),
                     static_cast<long long>(saved.options.at("steps").integer())));
  state_.step = saved_step_ = saved.step;
}

void Run::prepare(const std::string& model, const Json& config, const Task& task, RunExtras extras) {
  task_ = &task;
  extras_ = std::move(extras);
  state_.data = extras_.data;
  state_.model = model;
  state_.config = config;
  ops_ = make_device(settings_.device, settings_.threads);
  model_ = make_model(model, config, *ops_);
  optimizer_ = std::make_unique<Optimizer>(model_->parameters, *ops_, settings_.adamw);
  if (settings_.resume) {
    load_checkpoint(SafetensorsFile(checkpoint_), *model_, *optimizer_);
    find_best();
  } else {
    model_->parameters.initialize(settings_.seed);
    if (!settings_.init.empty() && load_parameters(settings_.init, *model_, extras_.new_head) && !settings_.quiet)
      std::printf("%s is for other classes: the readout starts anew\n", settings_.init.c_str());
  }
  trainer_ = std::make_unique<Trainer>(*model_, task, *optimizer_, *ops_, settings_.seed, settings_.batch,
                                       settings_.accumulate);
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (failure) throw Error(folder_ + ": cannot make this folder: " + failure.message());
  if (settings_.quiet) return;
  std::printf("%s: %s parameters, %s without embeddings and readout; %s\n", model.c_str(),
              with_commas(model_->parameters.size()).c_str(), with_commas(model_->parameters.size_of_blocks()).c_str(),
              ops_->description().c_str());
}

// The lowest evaluated loss before the step that the run goes on with.
void Run::find_best() {
  if (!std::filesystem::exists(file("log.csv"))) return;
  const CsvTable log = read_csv(file("log.csv"));
  for (size_t i = 0; i < log.rows() && log.column("step")[i] < static_cast<double>(state_.step); ++i)
    if (log.column("eval_loss")[i] < best_loss_) best_loss_ = log.column("eval_loss")[i];
}

bool Run::train() {
  const InterruptGuard guard;
  CsvLog log = settings_.resume ? CsvLog::resume(file("log.csv"), COLUMNS, state_.step)
                                : CsvLog::create(file("log.csv"), COLUMNS);
  Progress progress(state_.step, settings_.steps, settings_.quiet);
  const auto start = std::chrono::steady_clock::now();
  bool reached = false;
  for (;;) {
    const int64_t step = state_.step;
    if (is_snapshot(step, settings_.snapshots)) keep_snapshot();
    Row row;
    const bool evaluated = evaluate(row);
    reached = evaluated && row.evaluated.accuracy >= settings_.stop_at;
    const bool last = reached || step >= settings_.steps;
    if (!last) train_one(row);
    log.append(step, {row.trained.loss, row.trained.accuracy, row.rate, row.gradient_norm, row.evaluated.loss,
                      row.evaluated.accuracy});
    if (evaluated && extras_.describe) show_evaluation(progress, step, row);
    if (last || progress.due(state_.step)) progress.show(state_.step, describe(row, progress.rate()));
    if (last || interrupted()) break;
    if (state_.step % settings_.save_every == 0) log.flush_to_disk(), save();
  }
  progress.finish();
  log.flush_to_disk();
  save();
  draw();
  report(reached, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return !interrupted();
}

// Before the step's update, so that a row of the log speaks of one set of weights.
bool Run::evaluate(Row& row) {
  if (state_.step != settings_.steps && (state_.step == 0 || state_.step % settings_.eval_every != 0)) return false;
  row.evaluated = evaluate(*task_, eval_samples());
  check_finite(row.evaluated.loss);
  if (extras_.keep_best && row.evaluated.loss < best_loss_) {
    best_loss_ = row.evaluated.loss;
    save_checkpoint(file("best.safetensors"), state_, *model_, *optimizer_);
  }
  return true;
}

Measures Run::evaluate(const Task& task, int samples, double longer) {
  const int at_once = std::max(1, static_cast<int>(settings_.batch / std::max(1.0, longer)));
  return trainer_->evaluate(task, state_.step, samples, at_once);
}

void Run::train_one(Row& row) {
  row.rate = settings_.rate.at(state_.step);
  row.trained = trainer_->step(state_.step, row.rate);
  row.gradient_norm = optimizer_->gradient_norm();
  check_finite(row.trained.loss);
  check_finite(row.gradient_norm, "gradient's norm");
  ++state_.step;
}

void Run::check_finite(double value, const char* what) const {
  if (std::isfinite(value)) return;
  throw Error(text("the %s is %s at step %lld: training has diverged, try a smaller --lr; %s", what,
                   number_text(value, 3).c_str(), static_cast<long long>(state_.step),
                   saved_step_ < 0
                       ? "there is no checkpoint yet"
                       : text("%s holds step %lld", checkpoint_.c_str(), static_cast<long long>(saved_step_)).c_str()));
}

std::string Run::describe(const Row& row, double steps_a_second) const {
  std::string line;
  if (std::isfinite(row.trained.loss))
    line = text("loss %.4f  accuracy %5.1f %%  lr %.2e  |g| %.2f  %.0f samples/s", row.trained.loss,
                100 * row.trained.accuracy, row.rate, row.gradient_norm,
                steps_a_second * settings_.batch * settings_.accumulate);
  if (std::isfinite(row.evaluated.loss) && !extras_.describe)
    line += text("%sevaluated: loss %.4f  accuracy %.1f %%", line.empty() ? "" : "  ", row.evaluated.loss,
                 100 * row.evaluated.accuracy);
  return line;
}

void Run::show_evaluation(Progress& progress, int64_t step, const Row& row) const {
  if (settings_.quiet) return;
  progress.line("step " + with_commas(step) + "  " + extras_.describe(row.evaluated));
  if (!extras_.after_evaluation) return;
  for (const std::string& line : extras_.after_evaluation()) progress.line(line);
}

void Run::save() {
  if (saved_step_ == state_.step) return;
  save_checkpoint(checkpoint_, state_, *model_, *optimizer_);
  saved_step_ = state_.step;
}

void Run::keep_snapshot() {
  make_folder(file("snapshots"));
  save_weights(file(text("snapshots/step-%lld.safetensors", static_cast<long long>(state_.step))), state_, *model_);
}

void Run::draw() const {
  const CsvTable log = read_csv(file("log.csv"));
  const std::vector<double>& steps = log.column("step");
  Figure figure(state_.model + ": " + settings_.name);
  Panel& loss = figure.panel("Loss").x("step").y("cross-entropy (nats)");
  Panel& accuracy = figure.panel("Accuracy").x("step").y("accuracy").y_range(-0.02, 1.02);
  loss.noisy_line("training", steps, log.column("loss"));
  accuracy.noisy_line("training", steps, log.column("accuracy"));

  const Evaluations evaluated(log);
  loss.line("evaluation", evaluated.steps, evaluated.losses);
  accuracy.line("evaluation", evaluated.steps, evaluated.accuracies);
  if (chance() > 0) accuracy.level("chance", chance());
  figure.save(file("curve.svg"));
}

void Run::report(bool reached, double seconds) const {
  if (interrupted()) {
    std::printf("interrupted after step %s\n", with_commas(state_.step).c_str());
    if (settings_.group.empty())
      std::printf("go on with: ./%s --resume --name %s\n", settings_.program.c_str(), settings_.name.c_str());
  } else {
    report_milestones();
    std::printf("%s at step %s, in %s\n", reached ? "reached its accuracy" : "done", with_commas(state_.step).c_str(),
                duration_text(seconds).c_str());
  }
  if (!settings_.quiet) std::printf("saved %s (log.csv, model.safetensors, curve.svg)\n", folder_.c_str());
}

// "accuracy 50 % at step 95, 90 % at step 100, 99 % at step 100": the first evaluations that reached them.
void Run::report_milestones() const {
  const CsvTable log = read_csv(file("log.csv"));
  std::string line;
  for (const double milestone : {0.5, 0.9, 0.99, 1.0}) {
    const double step = step_reached(log, milestone);
    if (!std::isfinite(step)) break;
    line += text("%s%.0f %% at step %.0f", line.empty() ? "evaluated accuracy " : ", ", 100 * milestone, step);
  }
  if (!line.empty()) std::printf("%s\n", line.c_str());
}

}  // namespace petroglyph
