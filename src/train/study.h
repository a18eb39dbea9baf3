// A study: many runs that belong together, each in a process of its own, several at a time.
//
//   runs/NAME/points.csv     a row for each run that is done, with the fingerprint of its weights
//   runs/NAME/study.json     the options that shaped it and a checksum of its samples, by which --resume knows its own
//   runs/NAME/RUN/           a run's log.csv and curve.svg; its weights only until it is done, unless they are kept
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/folder_lock.h"
#include "base/json.h"
#include "tasks/task.h"
#include "train/run.h"

namespace petroglyph {

struct StudyRun {
  std::string name;  // of its folder; what tells it from all others
  std::string model;
  Json config;
  const Task* task = nullptr;
  int64_t parameters = 0, steps = 0;
  double tokens = 0;                                       // supervised ones of all its steps
  double budget = 0;                                       // operations, where the runs have one
  double setting = 0;                                      // what was varied: a width, a context, a depth
  double loss = std::numeric_limits<double>::quiet_NaN();  // of the last evaluation, once it is done
  std::string weights;                                     // their fingerprint, then

  bool done() const { return loss == loss; }
};

// What all its runs share.
struct StudySettings {
  RunSettings run;
  int processes = 0;  // 0: one for each core of the CPU, one on a GPU
  bool keep_weights = false;

  void declare(Options& options);
};

class Study {
 public:
  // Finds the folder, runs/NAME. With --resume reads its options: one that shapes it and was given with another value is an Error.
  Study(StudySettings& settings, Options& options, const std::string& default_name);

  // Trains what is not done; the losses are then in the runs. false: Ctrl-C came. samples: a checksum of all that the runs learn from
  // and are evaluated on; Error where a study that goes on had others.
  bool train(std::vector<StudyRun>& runs, const std::string& samples);
  const std::string& folder() const { return folder_; }

 private:
  void read_settings(const Json& all, const std::string& path, Options& options);
  void check_samples(const std::string& samples);
  void begin(std::vector<StudyRun>& runs);
  bool train_in_turn(std::vector<StudyRun>& runs);
  void read_points(std::vector<StudyRun>& runs);
  void write_points(const std::vector<StudyRun>& runs) const;
  int start(const StudyRun& run, int processes) const;
  int wait_for_one(const std::map<int, StudyRun*>& busy, int* status);
  int train_one(const StudyRun& run, int processes) const;
  void finish(StudyRun& run) const;
  std::string weights_of(const StudyRun& run) const;
  void remove_weights(const StudyRun& run) const;
  void show(const StudyRun& run, const std::vector<StudyRun>& runs) const;

  StudySettings& settings_;
  const Options& options_;
  std::string program_, folder_;
  std::string device_;   // of all runs, known when they start
  std::string samples_;  // their checksum; empty: not known
  std::optional<FolderLock> lock_;
  bool tells_what_it_keeps_ = true;      // a study of before does not: then what is there stays
  bool passed_on_ = false;               // a signal, to the processes
  std::vector<std::string> other_rows_;  // of points.csv, of runs that are not asked for this time
};

// Of all weights that the runs of a study ended with, from its points.csv, in 16 digits.
std::string weights_of_study(const std::string& folder);

// How many parameters a model of this configuration has, where config[key] = value. Their number grows evenly with that, so it is
// counted in two small models, once for each family.
class ParameterCounter {
 public:
  int64_t count(const std::string& model, Json config, const std::string& key, int64_t value);

 private:
  std::map<std::string, std::pair<int64_t, int64_t>> counted_;  // for values 1 and 2
};

}  // namespace petroglyph
