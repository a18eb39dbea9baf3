// A training run: its folder, its loop, and how it stops.
//
//   runs/NAME/log.csv             one row a step: training loss and accuracy, the evaluation's where there was one,
//                                 tokens, seconds
//   runs/NAME/model.safetensors   the last checkpoint (checkpoint.h); its loss was finite
//   runs/NAME/previous.safetensors   the one before it
//   runs/NAME/best.safetensors    of programs that keep it, the checkpoint of the lowest evaluated loss
//   runs/NAME/curve.svg           loss and accuracy against steps, redrawn every minute
//   runs/NAME/index.html          a page that shows it, and reloads itself during the run
//   runs/NAME/snapshots/step-K.safetensors   with --snapshots, the weights after K updates
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/folder_lock.h"
#include "base/log.h"
#include "base/options.h"
#include "train/checkpoint.h"
#include "train/ranks.h"
#include "train/run_folder.h"
#include "train/trainer.h"

namespace petroglyph {

class Progress;

constexpr int64_t MOST_STEPS = int64_t(1) << 31;

// The options of every training program, with their defaults.
struct RunSettings {
  std::string program;
  std::string group;    // "NAME/" for one of several runs, in runs/NAME/: it starts, or continues where it stopped
  std::string name;     // empty: the first free one of copy, copy-2, …
  std::string init;     // a file of parameters to start from
  std::string compare;  // variants to train (compare.h), of programs that have the option
  bool resume = false, quiet = false;
  uint64_t seed = 1;
  std::string device = "auto";
  int threads = 0;
  int batch = 64, accumulate = 1, shards = 1;
  int64_t samples_a_step() const { return static_cast<int64_t>(batch) * accumulate; }
  int64_t steps = 2000, extend = 0;
  int64_t all_steps() const { return steps + extend; }
  double stop_at = 1;  // accuracy of an evaluation that ends the run; above 1: never
  int eval_every = 10, eval_samples = 320;
  int save_every = 100, save_seconds = 60;
  int64_t snapshots = 0;  // steps between two, 0: none
  std::string schedule = "constant";
  Schedule rate;
  AdamwSettings adamw;
  std::shared_ptr<Ranks> ranks = one_rank();

  void declare(Options& options);
  void declare_common(Options& options);  // those that the runs of a study have too
  // Throws UsageError unless batch, shards and ranks divide each other.
  void check_shards() const;
};

// Whether weights are kept after `step` updates: at 0, at the multiples of `every`, and before the first of them where
// `every` is halved again and again, since the early steps change most. every = 100: 0, 1, 3, 6, 12, 25, 50, 100, 200,
// 300, …
bool is_snapshot(int64_t step, int64_t every);

// The first step whose evaluation reached this accuracy, by a run's log; NaN where none did.
double step_reached(const CsvTable& log, double accuracy);

// What a program adds to its runs.
struct RunExtras {
  std::function<std::string(const Measures&)> describe;        // an evaluation, on a line of its own
  std::function<std::vector<std::string>()> after_evaluation;  // lines below it, such as a sample
  bool keep_best = false;                                      // best.safetensors, the lowest evaluated loss
  bool new_head = false;                                       // --init may come from a model of other classes
  Json data;                                                   // see checkpoint.h
};

class Run {
 public:
  // Finds the folder. On --resume reads the checkpoint and sets the options that define the run.
  Run(RunSettings& settings, Options& options, const std::string& default_name);

  // Makes model, optimizer and trainer, once the options are final. The folder of a new run is made before the first
  // write into it.
  void prepare(const std::string& model, const Json& config, const Task& task, RunExtras extras = {});

  // Trains until the steps are done, the accuracy is reached, or a signal comes (false), and saves. Called by all ranks
  // together; the first one writes.
  bool train();
  void save();
  // Called after others have written figures into the folder: the page shows them.
  void finish_page() const { write_page(false); }
  // Called before others write into the folder. Throws Error if it was moved, removed or replaced.
  void check_folder() const {
    if (lock_) lock_->check();
  }

  // On samples of another task than the one it is trained on. If these are `longer` times as long, so many fewer go
  // through the model at a time. Called by all ranks together. Zeros if a signal stops it: see interrupted().
  Measures evaluate(const Task& task, int samples, double longer = 1);
  double chance() const { return task_->chance(); }
  int eval_samples() const {  // of its own task, each at most once
    return static_cast<int>(std::min<int64_t>(settings_.eval_samples, task_->evaluation_samples()));
  }

  Ops& ops() { return *ops_; }
  Model& model() { return *model_; }
  uint64_t seed() const { return settings_.seed; }
  const Json& config() const { return state_.config; }  // on --resume that of the checkpoint, before prepare()
  const std::string& folder() const { return folder_; }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

 private:
  struct Row;
  bool continue_in_group();
  void resume(Options& options);
  void claim_folder();
  void read_parameters();
  void share_parameters();
  void check_ranks();
  void check_samples();
  int at_once(double longer = 1) const;
  void agree(bool due);
  void train_and_save();
  bool evaluate(Row& row);
  void keep_if_best(double evaluated_loss);
  void read_initial();  // --init
  void read_log();
  void train_one(Row& row);
  void append(const Row& row, bool trained);
  bool ended(const Row& row);
  void draw(bool running) const;
  void write_page(bool running) const;
  void announce() const;
  void keep_snapshot();
  std::string describe(const Row& row) const;
  void show_evaluation(Progress& progress, int64_t step, const Row& row);
  void check_finite(double value, const char* what = "loss") const;
  void report() const;
  double seconds() const;
  void report_milestones() const;

  RunSettings& settings_;
  Ranks& ranks_;
  bool stopped_ = false, saves_ = false;  // what the ranks agreed on after the last step
  bool named_here_ = false;               // the user gave no name
  std::string folder_, checkpoint_;
  std::optional<FolderLock> lock_;
  std::unique_ptr<SafetensorsFile> opened_;  // the checkpoint, from when its step is read until its weights are
  std::optional<CsvLog> log_;
  RunState state_;
  RunExtras extras_;
  int64_t saved_step_ = -1;    // of the last checkpoint; −1: none
  int64_t finite_step_ = -1;   // the loss there is known to be finite
  int64_t tokens_ = 0;         // read by training so far
  double seconds_before_ = 0;  // of earlier processes of this run
  double start_ = 0;           // steady_seconds() at the start of train(), at first_step_
  int64_t first_step_ = 0;
  std::string ending_;                                          // why the run ended: "Finished at step 2,000"
  std::vector<std::string> without_effect_;                     // options that the model does not use
  std::vector<std::string> sample_;                             // the last lines of after_evaluation()
  double kept_loss_ = std::numeric_limits<double>::infinity();  // of best.safetensors
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Trainer> trainer_;
  const Task* task_ = nullptr;
};

}  // namespace petroglyph
