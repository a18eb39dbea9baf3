// Trains a model to classify images, then shows its confusion matrix and its heat maps.
// The experiments of "An All-MLP Sequence Modeling Architecture That Excels at Copying", appendix C, and "Linear-Time
// Sequence Modeling with MLPs", sections 4.3 and 4.4: CIFAR-5M, then transfer to CIFAR-10 and CIFAR-100 (--init).

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "analysis/classify.h"
#include "analysis/heat_map.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/image_files.h"
#include "tasks/shapes.h"
#include "train/compare.h"
#include "train/model_options.h"
#include "train/run.h"

namespace petroglyph {
namespace {

// The values of --preset. quick: drawn shapes, three minutes on two cores. tiny, base: the papers' models
// (causal_rn_linear_time, appendix B), with the batch size and the learning rate of their image experiments. base:
// one epoch of CIFAR-5M's first five parts.
const std::map<std::string, std::string> PRESETS = {
    {"quick", "width=96 layers=4 heads=4 batch=32 lr=2e-3 steps=1200 warmup=50"},
    {"tiny", "width=192 layers=12 heads=1 batch=320 lr=5e-4 steps=2000 warmup=50"},
    {"base", "width=768 hidden=3072 layers=12 heads=12 batch=320 lr=5e-4 steps=15632 warmup=50"},
};

// One run and all its settings, which come from the words of a command line.
struct Session {
  Options options{"train_image", "Trains a model to classify images, then shows where it looks."};
  std::string preset = "quick", data, test, format = "auto";
  Augmentation augmentation;
  int maps = 12;
  ModelOptions model;
  RunSettings settings;
  std::unique_ptr<Images> task;
  int test_images = 1000;
  std::optional<Run> run;

  explicit Session(const std::vector<std::string>& words) {
    settings.program = "train_image";
    settings.stop_at = 2;
    settings.eval_every = 50;
    model.model = "birn_image";
    options.section("Task");
    options.add(
        "preset", &preset, {"quick", "tiny", "base"},
        "sets width, hidden, layers, heads, batch, lr, steps and warmup where they are not given; tiny and base: the "
        "papers' sizes");
    options
        .add("data", &data, "FILES",
             "training images, with commas between files (data/README.md); default: drawn shapes")
        .always();
    options.add("test", &test, "FILES", "test images, which no training sees").always();
    options.add("format", &format, {"auto", "cifar10", "cifar100"}, "of the files");
    options.add("flip", &augmentation.flip, "training images are mirrored, every other time");
    options.add("crop", &augmentation.crop, 0, Picture::SIDE, "training images are shifted by up to this many pixels");
    for (const char* name : {"format", "flip", "crop"}) options.only_with(name, "data", {});
    options.add("maps", &maps, 0, 1000, "test images that the sheet of heat maps shows").not_saved();
    declare_compare(options, settings, "birn_image,transformer:heads=2");
    model.declare(options, {"birn_image", "transformer", "linear_transformer", "relation_network", "deep_sets"});
    settings.declare(options);
    options.set_defaults(PRESETS.at(preset) + " heads=1");  // the defaults in --help
    options.parse(words);
    options.set_defaults(PRESETS.at(preset));
    if (!model.is_transformer()) options.set_defaults("heads=1");
    model.set_defaults();
    if (model.model == "deep_sets") options.set_defaults("activation=relu");
  }

  void prepare() {
    run.emplace(settings, options, "images");
    task = make_task();
    RunExtras extras;
    extras.new_head = true;
    Json names = Json::array();
    for (const std::string& name : task->class_names()) names.push(name);
    extras.data = Json::object();
    extras.data.set("classes", names);
    run->prepare(model.model, model.image_config(Images::PATCHES, Images::PATCH_SIZE, task->classes()), *task,
                 std::move(extras));
  }

  // Evaluates the trained model on all test images.
  void show() {
    const Measures found =
        test_on_images(*run, *settings.ranks, *task, test_images, model.model + ": " + settings.name);
    if (!settings.ranks->first()) return;
    std::printf("accuracy on %s test images: %.2f %%, loss %.4f\n", with_commas(test_images).c_str(),
                100 * found.accuracy, found.loss);
    const bool mapped = maps > 0 && has_maps();
    if (mapped) save_maps();
    if (!settings.quiet)
      std::printf("saved %s (confusion.csv, confusion.svg%s)\n", run->folder().c_str(),
                  mapped ? ", heatmaps.svg: where it looks" : "");
  }

  // For --compare: called when a run is finished.
  LengthTable length_table() {
    show();
    return {title(), "accuracy", "pixels", true, {}, {model.model}, {{}}};
  }
  std::string title() const { return data.empty() ? "Drawn shapes" : "Images"; }

 private:
  // Models that compute one vector for a whole set have no position that the answer is read from, so they have no
  // maps.
  bool has_maps() const { return model.model != "relation_network" && model.model != "deep_sets"; }

  std::unique_ptr<Images> make_task() {
    if (data.empty() != test.empty())
      throw UsageError(data.empty() ? "--test without --data: expected training images too"
                                    : "--data without --test: expected images that no training sees");
    if (data.empty()) return std::make_unique<Shapes>();
    ImageFiles training(image_paths("data", data), format);
    ImageFiles tested(image_paths("test", test), format);
    const int64_t step_size = static_cast<int64_t>(settings.batch) * settings.accumulate;
    auto files = std::make_unique<FileImages>(std::move(training), std::move(tested), step_size, augmentation);
    test_images = static_cast<int>(std::min<int64_t>(files->test_size(), 1 << 24));
    return files;
  }

  void save_maps() {
    std::vector<Picture> pictures;
    for (int i = 0; i < std::min(maps, test_images); ++i)
      pictures.push_back(task->picture(run->seed(), stream_of("test"), 0, i));
    write_file_atomically(run->file("heatmaps.svg"),
                          heat_map_sheet(run->model(), run->ops(), task->class_names(), task->class_names(), pictures,
                                         blocks_to_show(model.layers)));
  }
};

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) { return petroglyph::run_session<petroglyph::Session>("train_image", argc, argv); }
