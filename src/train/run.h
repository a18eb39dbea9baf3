// A training run: its folder, its loop, and how it stops.
//
//   runs/NAME/log.csv             one row a step: training loss and accuracy, and the evaluation's where there was one
//   runs/NAME/model.safetensors   the last checkpoint (checkpoint.h)
//   runs/NAME/best.safetensors    of programs that ask for it, the checkpoint of the lowest evaluated loss
//   runs/NAME/curve.svg           loss and accuracy against steps
//   runs/NAME/snapshots/step-K.safetensors   with --snapshots, the weights after K updates
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/options.h"
#include "train/checkpoint.h"
#include "train/trainer.h"

namespace petroglyph {

class CsvLog;
class Progress;
struct CsvTable;

// What every training program offers, with its defaults.
struct RunSettings {
  std::string program;
  std::string group;  // "NAME/": the runs of a comparison lie in runs/NAME/
  std::string name;   // empty: the first free one of copy, copy-2, …
  std::string init;   // a file of parameters to start from
  bool resume = false, quiet = false;
  uint64_t seed = 1;
  std::string device = "auto";
  int threads = 0;
  int batch = 64, accumulate = 1;
  int64_t steps = 2000;
  double stop_at = 1;  // accuracy of an evaluation that ends the run; above 1: never
  int eval_every = 10, eval_samples = 320;
  int save_every = 100;
  int64_t snapshots = 0;  // steps between two, 0: none
  std::string schedule = "constant";
  Schedule rate;
  AdamwSettings adamw;

  void declare(Options& options);
};

// A name is a folder's, not a path; throws UsageError.
void check_run_name(const std::string& name);
// The first of runs/NAME, runs/NAME-2, … that is not there yet.
std::string free_run_name(const std::string& name);

// Throws Error where the folder of a run is there already.
void check_new_run(const std::string& folder);

// The NAME of several runs that belong together, in runs/NAME/: --name, or the first free one, or with --resume `otherwise`.
std::string group_folder(const RunSettings& settings, const std::string& otherwise);

// Whether a run of a group goes on from a checkpoint. Where the group is resumed, what a run left that ended before its first one
// is put aside, as NAME.before: it starts anew.
bool goes_on_in_group(const std::string& group, const std::string& name, bool resumed);

// Whether weights are kept after `step` updates: at 0, at the multiples of `every`, and before the first of them where `every` is
// halved again and again, since the early steps change most. every = 100: 0, 1, 3, 6, 12, 25, 50, 100, 200, 300, …
bool is_snapshot(int64_t step, int64_t every);

// The first step whose evaluation reached this accuracy, by a run's log; NaN where none did.
double step_reached(const CsvTable& log, double accuracy);

// What a program adds to its runs.
struct RunExtras {
  std::function<std::string(const Measures&)> describe;        // an evaluation, on a line of its own
  std::function<std::vector<std::string>()> after_evaluation;  // lines below it, such as a sample
  bool keep_best = false;
  bool new_head = false;  // --init may come from a model of other classes
  Json data;              // see checkpoint.h
};

class Run {
 public:
  // Finds the folder. On --resume reads the checkpoint and sets the options that shaped the run.
  Run(RunSettings& settings, Options& options, const std::string& default_name);

  // Builds what trains, once the options are final.
  void prepare(const std::string& model, const Json& config, const Task& task, RunExtras extras = {});

  // Until the steps are done, the accuracy is reached, or Ctrl-C; false where it was that. Saves.
  bool train();
  void save();

  // On samples of another task than the one it learns. Where these are `longer` times as long, only as many go through the model at
  // a time as have the size of a training batch.
  Measures evaluate(const Task& task, int samples, double longer = 1);
  double chance() const { return task_->chance(); }
  int eval_samples() const {  // of its own task: none twice
    return static_cast<int>(std::min<int64_t>(settings_.eval_samples, task_->evaluation_samples()));
  }

  Ops& ops() { return *ops_; }
  Model& model() { return *model_; }
  uint64_t seed() const { return settings_.seed; }
  const std::string& folder() const { return folder_; }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

 private:
  struct Row;
  void resume(Options& options);
  bool evaluate(Row& row);
  void find_best();
  void train_one(Row& row);
  void draw() const;
  void keep_snapshot();
  std::string describe(const Row& row, double steps_a_second) const;
  void show_evaluation(Progress& progress, int64_t step, const Row& row) const;
  void check_finite(double value, const char* what = "loss") const;
  void report(bool reached, double seconds) const;
  void report_milestones() const;

  RunSettings& settings_;
  std::string folder_, checkpoint_;
  RunState state_;
  RunExtras extras_;
  int64_t saved_step_ = -1;                                     // of the last checkpoint; −1: none
  double best_loss_ = std::numeric_limits<double>::infinity();  // of all evaluations so far
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Trainer> trainer_;
  const Task* task_ = nullptr;
};

}  // namespace petroglyph
