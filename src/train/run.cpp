#include "train/run.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "base/atomic_file.h"
#include "base/cadence.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/text.h"
#include "base/version.h"
#include "figures/figure.h"
#include "train/device.h"
#include "train/run_page.h"

namespace petroglyph {

namespace {

const std::vector<std::string> COLUMNS = {"step",      "loss",          "accuracy", "learning_rate", "gradient_norm",
                                          "eval_loss", "eval_accuracy", "tokens",   "seconds"};
constexpr double LONGEST_BETWEEN_DRAWINGS = 60;
constexpr double NOT_MEASURED = std::numeric_limits<double>::quiet_NaN();

}  // namespace

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
  options.add("steps", &steps, 0, MOST_STEPS, "steps at most, and the length of the schedule").always();
  options
      .add("extend", &extend, 0, MOST_STEPS,
           "steps after --steps, at the schedule's last learning rate; on --resume: train longer")
      .always();
  options.add("stop-at", &stop_at, 0, 2, "ends when an evaluation's accuracy reaches this; 2: never").always();
  options.add("warmup", &rate.warmup, 0, int64_t(1) << 31,
              "steps over which the learning rate rises from 0, the rate of the first step; 0: none");
  options.add("schedule", &schedule, {"constant", "cosine"}, "the learning rate after warm-up");
  options.add("init", &init, "FILE",
              "starts from the parameters in this safetensors file, or of this run's last checkpoint");
  options.add("eval-every", &eval_every, 1, 1 << 30, "steps between evaluations");
  declare_common(options);
  options
      .add("resume", &resume,
           "continues runs/NAME where it stopped; the result is bit-identical to an uninterrupted run")
      .not_saved();
  options
      .add("snapshots", &snapshots, 0, int64_t(1) << 31,
           "keeps the weights of every so many steps, more often at first, in snapshots/; 0: never")
      .always();
  options.only_with("lr-floor", "schedule", {"cosine"});
}

void RunSettings::declare_common(Options& options) {
  options.section("Training");
  options.add("batch", &batch, 1, 1 << 20, "samples that go through the model at a time");
  options.add("accumulate", &accumulate, 1, 1 << 16, "batches whose gradients are averaged into one step");
  options.add(
      "shards", &shards, 1, 1 << 16,
      "parts of a batch, a power of two, whose gradients are added by one tree: what as many processes or fewer "
      "(mpirun -n) compute together, one computes with the same bits");
  options.add("lr", &rate.peak, 0, 1e3, "learning rate after warm-up");
  options.add("lr-floor", &rate.floor, 0, 1e3, "where the cosine ends");
  options.add("beta1", &adamw.beta1, 0, 0.999999, "AdamW's decay of the mean gradient");
  options.add("beta2", &adamw.beta2, 0, 0.999999, "AdamW's decay of the mean square");
  options.add("epsilon", &adamw.epsilon, 1e-30, 1, "AdamW's guard against division by zero");
  options.add("weight-decay", &adamw.weight_decay, 0, 10,
              "AdamW's decay of all parameters but vectors (biases, gains), times the learning rate");
  options.add("clip", &adamw.clip, 0, 1e9, "largest global norm of the gradient; 0: none");
  options.add("seed", &seed, 0, LARGEST_SEED, "initial weights and samples");
  options.add("eval-samples", &eval_samples, 1, 1 << 24,
              "samples of one evaluation: the same each time if the data are files, else new ones");
  options.section("Run");
  options
      .add(
          "name", &name, "NAME",
          "the folder runs/NAME; default: the first free one. Of several runs, with an earlier name: finished ones are "
          "skipped, the others continue")
      .not_saved();
  options.add("save-every", &save_every, 1, 1 << 30, "steps between checkpoints").always();
  options.add("save-seconds", &save_seconds, 1, 1 << 30, "and seconds, fewer at first").always();
  options.add_device(&device, &threads);
  options.add("quiet", &quiet, "prints results only").not_saved();
}

void RunSettings::check_shards() const {
  if ((shards & (shards - 1)) != 0) throw UsageError(text("--shards %d: expected a power of two", shards));
  if (batch % shards != 0) throw UsageError(text("--shards %d does not divide --batch %d", shards, batch));
  if (int64_t(batch) * accumulate > std::numeric_limits<int>::max())
    throw UsageError(text("--batch %d --accumulate %d: expected at most %s samples a step", batch, accumulate,
                          with_commas(std::numeric_limits<int>::max()).c_str()));
  const int processes = ranks->count();
  if ((processes & (processes - 1)) != 0)
    throw UsageError(text("%d processes: expected a power of two (mpirun -n 2, 4, …)", processes));
  if (shards % processes != 0)
    throw UsageError(
        text("--shards %d: %d processes need --shards %d, or a larger power of two", shards, processes, processes));
}

Run::Run(RunSettings& settings, Options& options, const std::string& default_name)
    : settings_(settings), ranks_(*settings.ranks) {
  state_.program = settings.program;
  state_.begun_on = mark_of_here();
  if (!settings.group.empty()) settings.resume = continue_in_group();
  named_here_ = !settings.resume && settings.name.empty();
  settings.name = ranks_.from_first([&] { return name_of_run(settings, default_name); });
  folder_ = "runs/" + settings.group + settings.name;
  checkpoint_ = file("model.safetensors");
  if (settings.resume) {
    resume(options);
  } else {
    ranks_.from_first([&] { return check_new_run(folder_), true; });
  }
  settings.check_shards();
  settings.rate.shape = settings.schedule == "cosine" ? Schedule::Shape::COSINE : Schedule::Shape::CONSTANT;
  settings.rate.steps = settings.steps;
  state_.options = options.to_json();
  for (const auto& [option, reason] : options.without_effect(true)) without_effect_.push_back(option);
}

// One of several runs is continued if it has a checkpoint. A folder without one, of a run that was killed early, is
// renamed.
bool Run::continue_in_group() {
  const std::string folder = "runs/" + settings_.group + settings_.name;
  return ranks_.from_first([&] {
    if (is_there(folder + "/model.safetensors")) return true;
    if (is_there(folder)) {
      FolderLock{folder};  // throws Error if another process works there
      put_aside(folder);
    }
    return false;
  });
}

// The checkpoint is opened once: its step and its weights are of one file, whatever is put in its place.
void Run::resume(Options& options) {
  const std::string header = ranks_.from_first([&] {
    if (!std::filesystem::is_directory(folder_)) throw Error(folder_ + ": there is no such run to resume");
    lock_.emplace(folder_);
    remove_leftovers(folder_);
    refuse_link(file("snapshots"));
    remove_leftovers(file("snapshots"));
    if (!is_there(checkpoint_)) refuse_without_checkpoint(folder_);
    opened_ = std::make_unique<SafetensorsFile>(checkpoint_);
    const RunState saved = read_run_state(*opened_, settings_.program);
    std::vector<std::string> chosen;  // by the checkpoint; the files of a group are those of the command line
    for (const char* option : {"data", "val", "test"})
      if (settings_.group.empty() && saved.options.find(option) && !options.given(option)) chosen.push_back(option);
    refuse_foreign_paths(*opened_, saved, chosen);
    state_.log = saved.log;
    return Json::object()
        .set("options", saved.options)
        .set("step", saved.step)
        .set("samples", saved.samples)
        .set("config", saved.config)
        .text();
  });
  const Json saved = Json::parse(header, checkpoint_);
  options.restore(saved.at("options"), checkpoint_, !settings_.group.empty());
  const int64_t steps = saved.at("options").at("steps").integer();
  if (settings_.schedule == "cosine" && steps != settings_.steps)
    throw Error(text(
        "--steps %lld: this run's cosine schedule was laid out over %s; to train longer: --resume --name %s --extend N",
        static_cast<long long>(settings_.steps), counted(steps, "step").c_str(), settings_.name.c_str()));
  state_.step = saved_step_ = saved.at("step").integer();
  state_.samples = saved.at("samples").string();
  state_.config = saved.at("config");
}

void Run::claim_folder() {
  check_folder();
  if (lock_ || !ranks_.first()) return;
  if (!make_folder(folder_)) check_new_run(folder_);  // another process has just made it
  lock_.emplace(folder_);
}

void Run::prepare(const std::string& model, const Json& config, const Task& task, RunExtras extras) {
  task_ = &task;
  extras_ = std::move(extras);
  state_.data = extras_.data;
  state_.model = model;
  if (settings_.resume && state_.config.text() != config.text())
    throw Error(checkpoint_ + ": its model is " + state_.config.text() + ", this command's " + config.text());
  state_.config = config;
  ops_ = make_device(settings_.device, settings_.threads, ranks_);
  model_ = settings_.init.empty() ? make_model(model, config, *ops_) : make_model(model, config, *ops_, settings_.init);
  optimizer_ = std::make_unique<Optimizer>(model_->parameters, *ops_, settings_.adamw);
  read_parameters();
  share_parameters();
  trainer_ = std::make_unique<Trainer>(*model_, task, *optimizer_, *ops_, settings_.seed, settings_.batch,
                                       settings_.accumulate, settings_.shards, settings_.ranks);
  check_ranks();
  check_samples();
  if (settings_.quiet) return;
  std::printf("%s: %s parameters, %s without embeddings and readout; %s%s\n", model.c_str(),
              with_commas(model_->parameters.size()).c_str(), with_commas(model_->parameters.size_of_layers()).c_str(),
              ranks_.count() > 1 ? text("%d ranks, each ", ranks_.count()).c_str() : "", ops_->description().c_str());
}

// Notices data that were changed: some samples of the first steps are compared with those at the run's start.
void Run::check_samples() {
  const std::string samples = text("%016llx", static_cast<unsigned long long>(trainer_->some_samples(0)));
  if (!state_.samples.empty() && state_.samples != samples)
    throw Error(folder_ + ": its samples are not those that it was trained on so far: expected the same data");
  state_.samples = samples;
}

// Sends to the other ranks what the first one read.
void Run::share_parameters() {
  if (ranks_.count() == 1) return;
  const auto share = [&](const Tensor& tensor) {
    std::vector<real> values = tensor.download();
    ranks_.broadcast(values.data(), values.size() * sizeof(real));
    return values;
  };
  model_->parameters.upload_all(share(model_->parameters.values()));
  optimizer_->m().upload(share(optimizer_->m()));
  optimizer_->v().upload(share(optimizer_->v()));
}

// Throws Error unless all ranks are about to do the same.
void Run::check_ranks() {
  if (ranks_.count() == 1) return;
  const std::string identity = state_.program + state_.options.text() + state_.model + state_.config.text() +
                               version() + std::to_string(sizeof(real));
  Checksum checksum;
  checksum.update(identity.data(), identity.size());
  ranks_.check_same(checksum.value(), "its options, its model or its version");
  trainer_->check_ranks(state_.step);
}

void Run::read_parameters() {
  if (settings_.resume && !ranks_.first()) return;
  if (settings_.resume) {
    load_checkpoint(*opened_, *model_, *optimizer_, *ops_);
    opened_.reset();
    read_log();
    // Not from the log, which lacks it if the run ended there and is now continued: its last row is then replaced.
    const std::string best = file("best.safetensors");
    if (extras_.keep_best && is_there(best))
      kept_loss_ = parse_number(read_run_state(SafetensorsFile(best)).evaluated_loss).value_or(kept_loss_);
    return;
  }
  model_->parameters.initialize(settings_.seed);
  if (ranks_.first() && !settings_.init.empty()) read_initial();
}

void Run::read_initial() {
  const SafetensorsFile file(checkpoint_path(settings_.init));
  const bool new_head = load_parameters(file, *model_, *ops_, extras_.new_head);
  if (new_head && !settings_.quiet)
    print("%s is for other classes: the readout is newly initialized\n", settings_.init.c_str());
}

// Reads tokens and seconds up to the step that the run continues from.
void Run::read_log() {
  log_.emplace(CsvLog::resume(file("log.csv"), COLUMNS, state_.step, state_.log));
  const CsvTable log = read_csv(file("log.csv"));
  for (size_t i = 0; i < log.rows() && log.column("step")[i] < static_cast<double>(state_.step); ++i) {
    tokens_ = static_cast<int64_t>(log.column("tokens")[i]);
    seconds_before_ = log.column("seconds")[i];
  }
}

bool Run::train() {
  const InterruptGuard guard;
  ops_->run([&] { train_and_save(); });
  return !stopped_;
}

void Run::train_and_save() {
  claim_folder();
  if (!log_ && ranks_.first()) log_.emplace(CsvLog::create(file("log.csv"), COLUMNS));
  announce();
  Progress progress(state_.step, std::max(state_.step, settings_.all_steps()),
                    {settings_.quiet, "step", 0, settings_.stop_at <= 1});
  Cadence saving(settings_.save_seconds), drawing(LONGEST_BETWEEN_DRAWINGS);
  start_ = steady_seconds();
  first_step_ = state_.step;
  for (;;) {
    const int64_t step = state_.step;
    if (is_snapshot(step, settings_.snapshots)) keep_snapshot();
    Row row;
    const bool evaluated = evaluate(row);
    if (stopped_) break;
    const bool last = ended(row);
    if (!last) train_one(row);
    append(row, !last);
    if (evaluated && extras_.describe) show_evaluation(progress, step, row);
    if (progress.due(state_.step))
      progress.show(state_.step, describe(row));
    else if (last && !extras_.describe)  // ended early, because of this row
      progress.line("step " + with_commas(state_.step) + "  " + describe(row));
    agree(saving.due());
    if (last || stopped_) break;
    if (state_.step % settings_.save_every == 0 || saves_) saving.run([&] { save(); });
    if (ranks_.first() && drawing.due()) drawing.run([&] { draw(true); });
  }
  save();
  if (!ranks_.first()) return;
  draw(false);
  report();
}

// A signal that reached one rank stops them all after the same step; the first one's clock decides when to save.
void Run::agree(bool due) {
  struct Wish {
    bool stop, save;
  };
  const std::vector<Wish> wishes = ranks_.gather(Wish{interrupted(), due});
  stopped_ = std::any_of(wishes.begin(), wishes.end(), [](const Wish& wish) { return wish.stop; });
  saves_ = wishes[0].save;
}

double Run::seconds() const { return steady_seconds() - start_; }

// The row describes the weights before the step's update; the next checkpoint covers all rows before its own step.
void Run::append(const Row& row, bool trained) {
  tokens_ += row.trained.tokens;
  if (!log_) return;
  log_->append(
      trained ? state_.step - 1 : state_.step,
      {row.trained.loss, row.trained.accuracy, row.rate, row.gradient_norm, row.evaluated.loss, row.evaluated.accuracy,
       static_cast<double>(tokens_), std::round(1e3 * (seconds_before_ + seconds())) / 1e3});
  if (trained) state_.log = log_->checksum();
}

// Before the step's update, so that all numbers in a row of the log are of one set of weights. An evaluation that a
// signal interrupts is repeated on resume.
bool Run::evaluate(Row& row) {
  const bool last = state_.step >= settings_.all_steps();  // beyond: resumed with fewer steps than were done
  if (!last && (state_.step == 0 || state_.step % settings_.eval_every != 0)) return false;
  Progress progress(0, eval_samples(), {settings_.quiet || !ranks_.first(), "evaluation sample", MOSTLY_SHORT});
  const std::optional<Measures> measured =
      trainer_->evaluate(*task_, state_.step, eval_samples(), at_once(), &progress);
  stopped_ = !measured;
  if (stopped_) return false;
  row.evaluated = *measured;
  check_finite(row.evaluated.loss);
  finite_step_ = state_.step;
  if (extras_.keep_best && ranks_.first()) keep_if_best(row.evaluated.loss);
  return true;
}

void Run::keep_if_best(double evaluated_loss) {
  RunState best = state_;
  best.evaluated_loss = log_text(evaluated_loss);
  const double logged = parse_number(best.evaluated_loss).value_or(evaluated_loss);
  if (logged >= kept_loss_) return;
  kept_loss_ = logged;
  claim_folder();
  save_checkpoint(file("best.safetensors"), best, *model_, optimizer_.get());
}

// Whether the run is over at this step, and why.
bool Run::ended(const Row& row) {
  if (row.evaluated.accuracy >= settings_.stop_at) {
    ending_ = text("Stopped at step %s: accuracy %.4g %% reached (--stop-at %g)", with_commas(state_.step).c_str(),
                   100 * row.evaluated.accuracy, settings_.stop_at);
  } else if (state_.step >= settings_.all_steps()) {
    ending_ = "Finished at step " + with_commas(state_.step);
  }
  return !ending_.empty();
}

Measures Run::evaluate(const Task& task, int samples, double longer) {
  return trainer_->evaluate(task, state_.step, samples, at_once(longer)).value_or(Measures());
}

int Run::at_once(double longer) const {
  return std::max(1, static_cast<int>(settings_.batch / settings_.shards / std::max(1.0, longer)));
}

void Run::train_one(Row& row) {
  row.rate = settings_.rate.at(state_.step);
  row.trained = trainer_->step(state_.step, row.rate);
  row.gradient_norm = optimizer_->gradient_norm();
  check_finite(row.trained.loss);
  finite_step_ = state_.step;
  check_finite(row.gradient_norm, "gradient's norm");
  ++state_.step;
}

void Run::check_finite(double value, const char* what) const {
  if (std::isfinite(value)) return;
  const std::string is = text("the %s is %s ", what, number_text(value, 3).c_str());
  if (state_.step == 0)
    throw Error(is + "before the first step: with these options, or the weights of --init, values are too large");
  std::string there = "there is no checkpoint yet";
  if (saved_step_ >= 0) there = checkpoint_ + text(" holds step %lld", static_cast<long long>(saved_step_));
  throw Error(is +
              text("at step %lld: training has diverged, try a smaller --lr; ", static_cast<long long>(state_.step)) +
              there);
}

std::string Run::describe(const Row& row) const {
  std::string line;
  if (std::isfinite(row.trained.loss))
    line = text("loss %.4f  accuracy %5.1f %%  lr %.2e  |g| %.2f", row.trained.loss, 100 * row.trained.accuracy,
                row.rate, row.gradient_norm);
  if (std::isfinite(row.evaluated.loss) && !extras_.describe)
    line += text("%sevaluated: loss %.4f  accuracy %.1f %%", line.empty() ? "" : "  ", row.evaluated.loss,
                 100 * row.evaluated.accuracy);
  return line;
}

void Run::show_evaluation(Progress& progress, int64_t step, const Row& row) {
  if (settings_.quiet || !ranks_.first()) return;
  progress.line("step " + with_commas(step) + "  " + extras_.describe(row.evaluated));
  if (!extras_.after_evaluation) return;
  sample_ = extras_.after_evaluation();
  for (const std::string& line : sample_) progress.line(line);
}

// Never saves a state that the run cannot continue from, and never overwrites the only good checkpoint.
void Run::save() {
  if (saved_step_ == state_.step) return;
  if (finite_step_ != state_.step && !trainer_->is_finite_at(state_.step)) check_finite(NOT_MEASURED);
  finite_step_ = state_.step;
  if (ranks_.count() > 1)
    ranks_.check_same(model_->parameters.fingerprint(),
                      text("its weights after step %lld", static_cast<long long>(state_.step)));
  saved_step_ = state_.step;
  if (!ranks_.first()) return;
  claim_folder();
  if (log_) log_->flush_to_disk();
  save_checkpoint(checkpoint_, state_, *model_, optimizer_.get(), file("previous.safetensors"));
}

void Run::keep_snapshot() {
  if (!ranks_.first()) return;
  claim_folder();
  make_folder(file("snapshots"));
  save_checkpoint(file(text("snapshots/step-%lld.safetensors", static_cast<long long>(state_.step))), state_, *model_);
}

void Run::draw(bool running) const {
  check_folder();
  const CsvTable log = read_csv(file("log.csv"));
  const std::vector<double>& steps = log.column("step");
  Figure figure(state_.model + ": " + settings_.name);
  Panel& loss = figure.panel("Loss").x("step").y(task_->loss_name());
  Panel& accuracy = figure.panel("Accuracy").x("step").y("accuracy").y_range(-0.02, 1.02);
  loss.noisy_line("training", steps, log.column("loss"));
  accuracy.noisy_line("training", steps, log.column("accuracy"));

  const Evaluations evaluated(log);
  loss.line("evaluation", evaluated.steps, evaluated.losses);
  accuracy.line("evaluation", evaluated.steps, evaluated.accuracies);
  if (chance() > 0) accuracy.level("chance", chance());
  figure.save(file("curve.svg"));
  write_page(running);
}

void Run::write_page(bool running) const {
  if (!ranks_.first()) return;
  const std::string steps_done =
      "step " + with_commas(state_.step) + " of " + with_commas(std::max(state_.step, settings_.all_steps()));
  const double a_step = seconds() / static_cast<double>(std::max<int64_t>(1, state_.step - first_step_));
  const std::string eta = duration_text(a_step * static_cast<double>(settings_.all_steps() - state_.step));
  write_run_page(
      folder_,
      {settings_.name, steps_done + (running ? ", ETA " + eta : ": " + (ending_.empty() ? "interrupted" : ending_)),
       running, sample_, without_effect_},
      state_);
}

void Run::report() const {
  if (stopped_) {
    std::printf("Interrupted after step %s.\n", with_commas(state_.step).c_str());
    if (settings_.group.empty())
      std::printf("To continue: %s --resume --name %s\n", called(settings_.program).c_str(), settings_.name.c_str());
  } else {
    report_milestones();
    std::printf("%s. Time: %s.\n", ending_.c_str(), duration_text(seconds()).c_str());
    if (settings_.resume && settings_.group.empty() && first_step_ == state_.step)
      std::printf("This run was finished before. To train longer: --resume --name %s --extend N\n",
                  settings_.name.c_str());
  }
  if (settings_.quiet && !named_here_) return;
  std::vector<std::string> files;
  for (const char* name :
       {"log.csv", "model.safetensors", "previous.safetensors", "best.safetensors", "curve.svg", "index.html"})
    if (is_there(file(name))) files.push_back(name);
  std::printf("saved %s (%s)\n", folder_.c_str(), join(files, ", ").c_str());
}

// "Accuracy first reached 50 % at step 95, 90 and 99 % at step 100.": the first evaluations with at least these
// accuracies.
void Run::report_milestones() const {
  const CsvTable log = read_csv(file("log.csv"));
  std::map<double, std::string> percents;               // by step
  for (const double milestone : {1.0, 0.99, 0.9, 0.5})  // the last one first
    if (const double step = step_reached(log, milestone); std::isfinite(step)) {
      std::string& list = percents[step];
      const char* const between = list.empty() ? "" : list.find(' ') == std::string::npos ? " and " : ", ";
      list = text("%.0f", 100 * milestone) + between + list;
    }
  std::vector<std::string> reached;
  for (const auto& [step, list] : percents) reached.push_back(list + text(" %% at step %.0f", step));
  if (!reached.empty()) std::printf("Accuracy first reached %s.\n", join(reached, ", ").c_str());
}

// Before the first step: when the run ends early, and how large its checkpoints are.
void Run::announce() const {
  if (settings_.quiet || !ranks_.first() || state_.step >= settings_.all_steps()) return;
  if (settings_.stop_at <= 1)
    std::printf("Training stops when an evaluation reaches %.4g %% accuracy (--stop-at %g), after %s at most.\n",
                100 * settings_.stop_at, settings_.stop_at, counted(settings_.all_steps(), "step").c_str());
  constexpr double LARGE = 1e8, BYTES = 3 * sizeof(float);  // a parameter and its two moments
  const double checkpoint = BYTES * static_cast<double>(model_->parameters.size());
  if (checkpoint > LARGE)
    std::printf("A checkpoint takes %.1f GB; %d of them are kept: model, previous%s.\n", checkpoint / 1e9,
                extras_.keep_best ? 3 : 2, extras_.keep_best ? " and best (--no-keep-best: without it)" : "");
}

}  // namespace petroglyph
