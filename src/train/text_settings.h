// The options of train_text, and its presets of sizes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "train/checkpoint.h"
#include "train/model_options.h"
#include "train/run.h"
#include "train/text_source.h"

namespace petroglyph {

// All settings of a run of train_text.
struct TextRunSettings {
  Options options{"train_text", "Trains a sequence model on text, then prints samples."};
  TextSource source;
  std::string preset = "small", evaluate;
  int context = 128, sample_length = 160, length_windows = 256;
  int64_t epochs = 0;
  bool keep_best = true;
  std::vector<int> lengths;
  ModelOptions model;
  RunSettings settings;
  std::optional<RunState> initial;  // of --init's checkpoint, whose model is trained on

  // From the words of a command line. Throws Error if --init's checkpoint has no tokenizer and none is given.
  explicit TextRunSettings(const std::vector<std::string>& words);

  int longest_length() const;  // of --evaluate-lengths

  // The model's configuration: --init's, or that of the options.
  Json config(int tokens) const;

  // Trained as in that paper's appendix B: a warm-up of a tenth of the steps, a weight decay of 0.1.
  bool mlps_for_nlp() const { return model.answers_once() || model.model == "dct_mlp"; }

 private:
  void declare();
  void parse(const std::vector<std::string>& words);
  void adopt_model();
  void adopt_text();
  void apply_preset();
};

}  // namespace petroglyph
