// What train_image is told of images, and the sizes that go under one name.
#pragma once

#include <string>

#include "base/options.h"
#include "tasks/image_files.h"
#include "train/model_options.h"
#include "train/run.h"

namespace petroglyph {

struct ImageSettings {
  std::string preset = "quick", data, test, format = "auto", compare;
  Augmentation augmentation;
  int maps = 12;

  void declare(Options& options);
  // Sets what was not given. options: null before they are parsed, for the defaults that --help shows.
  void apply_preset(const Options* options, ModelOptions* model, RunSettings* run) const;
};

}  // namespace petroglyph
