// inspect heatmap: where a trained model of images looks, as a sheet of images beside the maps of some of its layers.

#include <cstdio>
#include <filesystem>
#include <limits>

#include "analysis/heat_map.h"
#include "analysis/inspect.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/image_files.h"
#include "tasks/shapes.h"
#include "train/checkpoint.h"
#include "train/device.h"

namespace petroglyph {

namespace {

struct HeatMapSettings {
  std::string checkpoint, test, format = "auto", out, device = "auto";
  std::vector<int> layers;
  int first = 0, images = 12, threads = 0;
  bool force = false;

  void declare(Options& options) {
    options.positional("CHECKPOINT", &checkpoint, "a .safetensors file of train_image, or a run's folder");
    options.section("Images");
    options.add("test", &test, "images, with commas between files; default: the test images of the run")
        .placeholder("FILES");
    options.add("format", &format, {"auto", "cifar10", "cifar100", "cifar5m"}, "of the files");
    options.add("first", &first, 0, std::numeric_limits<int>::max(), "the first image that is shown, from 0");
    options.add("images", &images, 1, 1000, "how many are shown");
    options.section("Maps");
    options.add("layers", &layers, 1, 1 << 10, "whose maps are shown; default: four of them, evenly up to the last");
    options.add("out", &out, "default: heatmaps.png beside the checkpoint").placeholder("FILE");
    declare_force(options, &force);
    options.section("Run");
    declare_device(options, &device, &threads);
  }
};

std::vector<size_t> blocks_of(const HeatMapSettings& settings, int layers) {
  if (settings.layers.empty()) return blocks_to_show(layers);
  std::vector<size_t> blocks;
  for (const int layer : settings.layers) {
    if (layer > layers) throw UsageError(text("--layers %d: the model has %d", layer, layers));
    blocks.push_back(static_cast<size_t>(layer - 1));
  }
  return blocks;
}

struct Pictures {
  std::vector<Picture> list;
  std::vector<std::string> class_names;
};

// What the run was tested on, unless other files are given.
Pictures pictures_of(const HeatMapSettings& settings, const Json& run) {
  const bool other = !settings.test.empty();
  if (!other && !run.find("test")) throw UsageError("--test: of which images? this model comes without any");
  const std::string test = other ? settings.test : run.at("test").string();
  Pictures pictures;
  if (test.empty()) {
    const auto seed = static_cast<uint64_t>(run.at("seed").integer());
    const Shapes shapes;
    pictures.class_names = shapes.class_names();
    for (int i = 0; i < settings.images; ++i)
      pictures.list.push_back(shapes.picture(seed, stream_of("test"), 0, settings.first + i));
    return pictures;
  }
  const ImageFiles files(split(test, ','), other ? settings.format : run.at("format").string());
  pictures.class_names = files.class_names();
  for (int64_t i = settings.first; i < settings.first + int64_t(settings.images) && i < files.size(); ++i)
    pictures.list.push_back(files.picture(i));
  if (pictures.list.empty())
    throw UsageError(
        text("--first %d: %s has %s images", settings.first, test.c_str(), with_commas(files.size()).c_str()));
  return pictures;
}

}  // namespace

int inspect_heatmap(const std::vector<std::string>& words) {
  HeatMapSettings settings;
  Options options("inspect heatmap", "Shows where a model that train_image trained looks.");
  settings.declare(options);
  options.parse(words);
  if (!settings.out.empty()) check_replaced(settings.out, settings.force);
  const std::string path = checkpoint_path(settings.checkpoint);
  const SafetensorsFile file(path);
  const bool converted = read_run_state(file).program == "convert";
  const RunState state = read_run_state(file, converted ? "convert" : "train_image");
  if (!state.config.find("patches")) throw Error(path + ": this " + state.model + " reads no images");
  if (!state.config.find("layers")) throw Error(path + ": " + state.model + " has no maps");

  const Pictures pictures = pictures_of(settings, state.options);
  std::vector<std::string> model_classes;
  for (const Json& name : state.data.at("classes").items()) model_classes.push_back(name.string());
  if (model_classes != pictures.class_names) {
    std::printf("the model learned other classes than these images': what it says of them is left out\n");
    model_classes.clear();
  }
  const std::vector<size_t> blocks = blocks_of(settings, static_cast<int>(state.config.at("layers").integer()));
  const auto ops = make_device(settings.device, settings.threads);
  const auto model = load_model(file, state, *ops);
  const std::filesystem::path beside = std::filesystem::path(path).parent_path() / "heatmaps.png";
  const std::string out = settings.out.empty() ? beside.string() : settings.out;
  heat_map_sheet(*model, *ops, pictures.class_names, model_classes, pictures.list, blocks).save_png(out);
  std::printf("saved %s\n", out.c_str());
  return 0;
}

}  // namespace petroglyph
