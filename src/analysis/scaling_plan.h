// The runs of a scaling study, made from its settings.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/scaling_settings.h"
#include "tasks/language_modeling.h"
#include "train/study.h"
#include "train/text_source.h"

namespace petroglyph {

// Owns the text and the tasks of its runs.
class ScalingPlan {
 public:
  explicit ScalingPlan(const ScalingSettings& settings);

  std::vector<StudyRun>& runs() { return runs_; }
  std::string checksum_of_samples() const { return checksum_of(text_); }
  // Prints the number of runs, the folder and the range of sizes.
  void print_summary(const std::string& folder) const;
  void print_runs() const;

 private:
  Json config(const std::string& model, int context, int width) const;
  Json deep_config(const std::string& model, int layers) const;
  const Task& task(int context, Targets targets);
  void add(const std::string& model, const Json& config, const std::string& key, int value, double tokens,
           double budget, int context, Targets targets, const std::string& name);
  void plan_compute(const std::string& model);
  void plan_contexts(const std::string& model);
  void plan_depths(const std::string& model);

  const ScalingSettings& settings_;
  OpenText text_;
  std::map<std::pair<int, Targets>, std::unique_ptr<LanguageModeling>> tasks_;
  ParameterCounter counter_;
  std::vector<StudyRun> runs_;
};

// 1e7 for 1e+07: a form that is allowed in a folder name
std::string short_number(double value, int digits = 4);

}  // namespace petroglyph
