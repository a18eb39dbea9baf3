// A study: many ordinary runs in runs/NAME/, each in a process of its own, several at a time.
//
//   runs/NAME/RUN/           a run (run.h)
//   runs/NAME/points.csv     a row for each finished run, made from the runs' logs
//
// The same command again skips what is finished and continues the rest.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "tasks/task.h"
#include "train/run.h"

namespace petroglyph {

struct StudyRun {
  std::string name;  // of its folder
  std::string model;
  Json config;
  const Task* task = nullptr;
  int64_t parameters = 0, steps = 0;
  double tokens = 0;                                       // supervised tokens of all its steps
  double budget = 0;                                       // floating-point operations; 0: none given
  double setting = 0;                                      // what was varied: a width, a context, a depth
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last evaluation, once the run is finished
  std::string weights;                                     // their fingerprint, then

  bool finished() const { return loss == loss; }
};

// What all its runs share.
struct StudySettings {
  RunSettings run;
  int processes = 0;  // 0: one for each core of the CPU, one on a GPU

  void declare(Options& options);
};

class Study {
 public:
  // data: a checksum of all samples, saved with each run: a finished run with other samples is an Error.
  Study(const StudySettings& settings, const std::string& name, std::string data);

  // Trains what is not finished, and fills in the losses. false: Ctrl-C came.
  bool train(std::vector<StudyRun>& runs);
  std::string folder() const { return "runs/" + name_; }

 private:
  bool train_in_turn(std::vector<StudyRun>& runs);
  bool train_in_processes(std::vector<StudyRun>& runs);
  RunSettings settings_of(const StudyRun& run) const;
  int train_one(const StudyRun& run) const;
  bool read_result(StudyRun& run) const;
  void keep_result(StudyRun& run, const std::vector<StudyRun>& runs) const;
  void write_points(const std::vector<StudyRun>& runs) const;

  StudySettings settings_;
  std::string name_, data_;
};

// One fingerprint for all the runs' weights, in 16 hexadecimal digits, whatever their order.
std::string weights_of_study(const std::vector<StudyRun>& runs);

// How many parameters a model has with config[key] = value. The number grows linearly with the value, so it is counted
// in two small models, once for each family.
class ParameterCounter {
 public:
  int64_t count(const std::string& model, Json config, const std::string& key, int64_t value);

 private:
  std::map<std::string, std::pair<int64_t, int64_t>> counted_;  // for values 1 and 2
};

}  // namespace petroglyph
