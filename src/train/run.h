// A training run: its folder, its loop, and how it stops.
//
//   runs/NAME/log.csv             one row a step: training loss and accuracy, and the evaluation's where there was one
//   runs/NAME/model.safetensors   the last checkpoint (checkpoint.h)
//   runs/NAME/curve.svg           loss and accuracy against steps
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "train/checkpoint.h"
#include "train/options.h"
#include "train/trainer.h"

namespace petroglyph {

class CsvLog;

// What every training program offers, with its defaults.
struct RunSettings {
  std::string program;
  std::string name;  // empty: the first free one of copy, copy-2, …
  std::string init;  // a file of parameters to start from
  bool resume = false, quiet = false;
  uint64_t seed = 1;
  std::string device = "auto";
  int threads = 0;
  int batch = 64, accumulate = 1;
  int64_t steps = 2000;
  double stop_at = 1;  // accuracy of an evaluation that ends the run; above 1: never
  int eval_every = 10, eval_samples = 320;
  int save_every = 100;
  std::string schedule = "constant";
  Schedule rate;
  AdamwSettings adamw;

  void declare(Options& options);
};

class Run {
 public:
  // Finds the folder. On --resume reads the checkpoint and sets the options that shaped the run.
  Run(RunSettings& settings, Options& options, const std::string& default_name);

  // Builds what trains, once the options are final.
  void prepare(const std::string& model, const Json& config, const Task& task);

  // Until the steps are done, the accuracy is reached, or Ctrl-C; false where it was that. Saves.
  bool train();

  Ops& ops() { return *ops_; }
  Model& model() { return *model_; }
  uint64_t seed() const { return settings_.seed; }
  std::string file(const std::string& name) const { return folder_ + "/" + name; }

 private:
  struct Row;
  void resume(Options& options);
  bool evaluate(Row& row);
  void train_one(Row& row);
  void save();
  void draw() const;
  std::string describe(const Row& row, double steps_a_second) const;
  void check_finite(double loss) const;
  void report(bool reached, double seconds) const;
  void report_milestones() const;

  RunSettings& settings_;
  std::string folder_, checkpoint_;
  RunState state_;
  int64_t saved_step_ = -1;  // of the last checkpoint; −1: none
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace petroglyph
