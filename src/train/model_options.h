// The model on the command line: which one, its options with each model's own defaults, and the resulting
// configuration.
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
  int hidden = 0;                        // 0: by the model
  int embedding = 512, frequencies = 4;  // frequencies: of each head of a dct_mlp
  std::string activation = "exp", pre_norm, position = "learned", feature_map = "elu1", cell = "lstm";
  std::string norm = "plain", gelu = "erf", readout = "all";
  double embedding_deviation = 1;
  bool post_norm = true;
  int chunk = 32, thickness = 0;  // 0: by the layers
  int state = 16, conv = 4, expand = 2;
  bool qkv_bias = true, out_bias = true, tied_head = false;
  std::string norm_position = "pre", mlp_activation = "gelu";

  // models: those that the program can train
  void declare(Options& options, const std::vector<std::string>& models);

  // Defaults that depend on the model: called after parsing, and before a resumed run's options are restored, which
  // win.
  void set_defaults();

  // For a program whose --init is a checkpoint with its own model: these options have no effect beside it.
  static void refuse_beside_init(Options& options);

  // Whether the options fit each other shows when the model reads it.
  Json config(int vocab, int context) const;
  // The same of a model that reads images as patches.
  Json image_config(int patches, int patch_size, int classes) const;
  // Whether it reads windows of one length and predicts only the token after them.
  bool answers_once() const { return model == "mlp_lm" || readout == "last"; }
  bool has_mlp() const { return is_transformer() || model == "regular_gpt" || model == "dct_mlp"; }
  bool is_transformer() const { return model == "transformer" || model == "linear_transformer"; }

 private:
  void write(Json& json, bool sizes) const;
  void write_windows(Json& json, int context) const;
};

}  // namespace petroglyph
