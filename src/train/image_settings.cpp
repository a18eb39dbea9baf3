#include "train/image_settings.h"

namespace petroglyph {

namespace {

// Sizes of model and training under one name. quick: shapes within three minutes on two cores. tiny and base: the papers'
// (causal_rn_linear_time, appendix B), with the batch and the learning rate of its images.
struct ImagePreset {
  const char* name;
  int width, hidden, layers, heads;  // hidden 0: the model's own default; heads of Transformers
  int batch;
  double learning_rate;
  int64_t steps, warmup;
};
constexpr ImagePreset IMAGE_PRESETS[] = {
    {"quick", 96, 0, 4, 4, 32, 2e-3, 1200, 50},
    {"tiny", 192, 0, 12, 1, 320, 5e-4, 2000, 50},
    {"base", 768, 3072, 12, 12, 320, 5e-4, 15632, 50},  // one epoch of CIFAR-5M's first five parts
};

}  // namespace

void ImageSettings::declare(Options& options) {
  options.section("Task");
  options.add(
      "preset", &preset, {"quick", "tiny", "base"},
      "sets width, hidden, layers, heads, batch, lr, steps and warmup where they are not given; tiny and base: the "
      "papers' sizes");
  options.add("data", &data, "training images, with commas between files (data/README.md); default: drawn shapes")
      .placeholder("FILES")
      .always();
  options.add("test", &test, "test images, which no training sees").placeholder("FILES").always();
  options.add("format", &format, {"auto", "cifar10", "cifar100"}, "of the files");
  options.add("flip", &augmentation.flip, "training images are mirrored, every other time");
  options.add("crop", &augmentation.crop, 0, Picture::SIDE, "training images are moved by up to so many pixels");
  options.add("maps", &maps, 0, 1000, "test images that the sheet of heat maps shows").always().not_saved();
  options
      .add("compare", &compare,
           "trains variants in turn on the same images: models or options, as in birn_image,transformer:heads=2")
      .placeholder("LIST")
      .always()
      .not_saved();
}

void ImageSettings::apply_preset(const Options* options, ModelOptions* model, RunSettings* run) const {
  const auto set = [&](const char* option, auto& value, auto to) {
    if (!options || !options->given(option)) value = to;
  };
  for (const ImagePreset& p : IMAGE_PRESETS) {
    if (preset != p.name) continue;
    set("width", model->width, p.width);
    set("hidden", model->hidden, p.hidden);
    set("layers", model->layers, p.layers);
    set("heads", model->heads, model->is_transformer() ? p.heads : 1);
    set("batch", run->batch, p.batch);
    set("lr", run->rate.peak, p.learning_rate);
    set("steps", run->steps, p.steps);
    set("warmup", run->rate.warmup, p.warmup);
  }
}

}  // namespace petroglyph
