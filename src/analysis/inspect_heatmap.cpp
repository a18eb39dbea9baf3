// inspect heatmap: which parts of an image a trained model uses. It draws a sheet with images and the maps of some
// layers.

#include "analysis/heat_map.h"
#include "analysis/inspection.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/image_files.h"
#include "tasks/shapes.h"

namespace petroglyph {

namespace {

struct HeatMapSettings : InspectionSettings {
  std::string test;
  std::vector<int> layers;
  int images = 12;

  void declare(Options& options) {
    InspectionSettings::declare(options, "a .safetensors file of train_image or convert, or a run's folder");
    options.add("test", &test, "FILES", "images, with commas between files; default: the test images of the run");
    options.add("images", &images, 1, 1000, "how many are shown");
    options.add("layers", &layers, 1, 1 << 10, "whose maps are shown; default: four of them, evenly up to the last");
  }
};

struct Pictures {
  std::vector<Picture> list;
  std::vector<std::string> class_names;
};

// The images that the run was tested on, unless other files are given.
Pictures pictures_of(const HeatMapSettings& settings, const Json& run) {
  const bool other = !settings.test.empty();
  if (!other && !run.find("test")) throw UsageError("--test: expected images, because this model comes without any");
  const std::string test = other ? settings.test : run.at("test").string();
  Pictures pictures;
  if (test.empty()) {
    const auto seed = static_cast<uint64_t>(run.at("seed").integer());
    const Shapes shapes;
    pictures.class_names = shapes.class_names();
    for (int i = 0; i < settings.images; ++i) pictures.list.push_back(shapes.picture(seed, stream_of("test"), 0, i));
    return pictures;
  }
  const ImageFiles files(image_paths("test", test), other ? "auto" : run.at("format").string());
  pictures.class_names = files.class_names();
  for (int64_t i = 0; i < settings.images && i < files.size(); ++i) pictures.list.push_back(files.picture(i));
  return pictures;
}

std::vector<size_t> blocks_of(const HeatMapSettings& settings, const RunState& state, const std::string& path) {
  if (!state.config.find("layers")) throw Error(path + ": " + state.model + " has no maps");
  const int layers = static_cast<int>(state.config.at("layers").integer());
  if (settings.layers.empty()) return blocks_to_show(layers);
  std::vector<size_t> blocks;
  for (const int layer : settings.layers) {
    if (layer > layers) throw UsageError(text("--layers %d: the model has %d", layer, layers));
    blocks.push_back(static_cast<size_t>(layer - 1));
  }
  return blocks;
}

void map_images(const HeatMapSettings& settings, const SafetensorsFile& file, const RunState& state) {
  const std::vector<size_t> blocks = blocks_of(settings, state, file.path());
  if (settings.test.empty()) refuse_foreign_paths(file, state, {"test"});
  const Pictures pictures = pictures_of(settings, state.options);
  std::vector<std::string> model_classes;
  for (const Json& name : state.data.at("classes").items()) model_classes.push_back(name.string());
  if (model_classes != pictures.class_names) {
    print("the model learned other classes than these images': its predictions are left out\n");
    model_classes.clear();
  }
  const auto ops = settings.make_ops();
  const auto model = load_model(file, state, *ops);
  save_files(
      settings.folder(),
      {{"heatmaps.svg", heat_map_sheet(*model, *ops, pictures.class_names, model_classes, pictures.list, blocks)}});
}

}  // namespace

int inspect_heatmap(const std::vector<std::string>& words) {
  HeatMapSettings settings;
  Options options("inspect heatmap", "Shows where a model of images looks.");
  settings.declare(options);
  options.parse(words);
  if (settings.checkpoints.size() > 1) throw UsageError(settings.checkpoints[1] + ": expected one checkpoint");
  const SafetensorsFile file(checkpoint_path(settings.checkpoints[0]));
  const RunState state = read_run_state(file);
  if (!state.config.find("patches")) throw Error(file.path() + ": this " + state.model + " reads no images");
  map_images(settings, file, state);
  return 0;
}

}  // namespace petroglyph
