// The settings of a scaling study, the runs that it consists of, and its report.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "tasks/language_modeling.h"
#include "train/study.h"
#include "train/text_source.h"

namespace petroglyph {

struct ScalingSettings {
  std::string what = "compute", preset = "quick", models;
  TextSource text;
  RunSettings run;  // what all runs share
  bool list = false;
  int context = 1, embedding = 0, heads = 1, frequencies = 4;
  std::vector<double> budgets, tokens;
  std::vector<int> widths, contexts, depths, transformer_depths;

  void declare(Options& options);
  // Sets the options that were not given to the sizes of the preset.
  void apply_preset(Options& options) const;
};

// Owns the text and the tasks of its runs.
class ScalingPlan {
 public:
  explicit ScalingPlan(const ScalingSettings& settings);

  std::vector<StudyRun>& runs() { return runs_; }
  // Prints the number of runs, the folder and the range of sizes.
  void print_summary(const std::string& folder) const;
  void print_runs() const;

 private:
  Json config(const std::string& model, int context, int layers, int width, int hidden) const;
  void plan(const std::string& model);
  void add(StudyRun run, const std::string& key, int setting, int context);

  const ScalingSettings& settings_;
  OpenText text_;
  std::map<int, std::unique_ptr<LanguageModeling>> tasks_;  // by context
  ParameterCounter counter_;
  std::vector<StudyRun> runs_;
};

// Prints the report, tables, parabolas, power laws and curves, and writes its files into the study's folder. what:
// compute, context or dct, as in the settings.
void report_scaling(const std::string& folder, const std::string& what, const std::vector<StudyRun>& runs);

// 1e7 for 1e+07: a form that is allowed in a folder name
std::string short_number(double value, int digits = 4);

}  // namespace petroglyph
