// What a scaling study varies, and the sizes of its presets.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "base/text.h"
#include "train/study.h"
#include "train/text_source.h"

namespace petroglyph {

struct ScalingSettings {
  std::string what = "compute", preset = "quick", models;
  TextSource text;
  StudySettings study;
  bool list = false;
  int context = 0, embedding = 0, heads = 0, frequencies = 4;
  std::vector<double> budgets, tokens;
  std::vector<int> widths, contexts, depths, transformer_depths;

  void declare(Options& options);
  // options: null before parsing, to set the defaults that --help shows.
  void apply_preset(const Options* options);
  // Throws UsageError for an option that does not apply to this study.
  void check_combination(const Options& options) const;
  std::vector<std::string> model_names() const { return split(models, ','); }
};

}  // namespace petroglyph
