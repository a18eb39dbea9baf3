// The model on the command line: which one, its options with each model's own defaults, and the configuration they make.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "base/options.h"

namespace petroglyph {

// The defaults are the papers' for copying (causal_rn_workshop, appendix D): 12 blocks of width 192.
struct ModelOptions {
  std::string model = "causal_rn";
  int width = 192, layers = 12, heads = 1;
  int hidden = 0;  // 0: by the model
  int embedding = 512, frequencies = 4;
  std::vector<int> windows;
  std::string activation = "exp", pre_norm, position = "learned", feature_map = "elu1", cell = "lstm";
  std::string norm = "plain", gelu = "erf", readout = "all";
  double embedding_deviation = 1;
  bool post_norm = true;
  int chunk = 32, thickness = 0;  // 0: by the layers

  // models: those that the program can train
  void declare(Options& options, const std::vector<std::string>& models);

  // What is up to the model is chosen here: after parsing, and before a resumed run's options are restored, which win.
  void set_defaults();

  // Throws UsageError where the options do not fit each other.
  Json config(int vocab, int context) const;
  // The same of a model that reads images as patches.
  Json image_config(int patches, int patch_size, int classes) const;
  // It reads windows of one length and answers once, at their end.
  bool answers_once() const { return model == "mlp_lm" || readout == "last"; }
  bool has_mlp() const { return is_transformer() || model == "regular_gpt" || model == "dct_mlp"; }
  bool is_transformer() const { return model == "transformer" || model == "linear_transformer"; }

 private:
  void declare_relations(Options& options);
  void declare_transformers(Options& options);
  void declare_text_models(Options& options);
  void add_mamba(Json& json) const;
  void add_transformer(Json& json) const;
  void add_relations(Json& json) const;
  Json regular_gpt_config(int vocab) const;
  void add_dct_mlp(Json& json, int context) const;
};

}  // namespace petroglyph
