// A study: many ordinary runs in runs/NAME/, trained in turn.
//
//   runs/NAME/RUN/           a run (run.h)
//   runs/NAME/points.csv     a row for each run, made from the runs' logs
//
// The same command again skips what is finished and continues the rest.
#pragma once

#include <cstdint>
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
  double tokens = 0;    // supervised tokens of all its steps
  double budget = 0;    // floating-point operations; 0: none given
  double setting = 0;   // what was varied: a width, a context, a depth
  double loss = 0;      // of the last evaluation, once the run is finished
  std::string weights;  // their fingerprint, then
};

// Trains the runs by all ranks together, and fills in losses and weights. settings: what all runs share. Returns false
// if a signal stopped it.
bool train_study(const RunSettings& settings, const std::string& name, std::vector<StudyRun>& runs);

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
