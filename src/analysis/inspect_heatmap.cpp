// inspect heatmap: which parts of its input a trained model uses. For images it draws a sheet with the images and the
// maps of some layers. For text it shows on which tokens each prediction depends.

#include <algorithm>
#include <limits>

#include "analysis/heat_map.h"
#include "analysis/inspect.h"
#include "analysis/inspection.h"
#include "analysis/receptive_field.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"
#include "tasks/image_files.h"
#include "tasks/shapes.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

namespace {

struct HeatMapSettings : InspectionSettings {
  std::string test, format = "auto", prompt;
  std::vector<int> layers;
  int images = 12;

  void declare(Options& options) {
    InspectionSettings::declare(options,
                                "a .safetensors file of train_image, train_text or convert, or a run's folder");
    options.section("Text");
    options.add("prompt", &prompt, "the text whose tokens are shown");
    options.section("Images");
    options.add("test", &test, "images, with commas between files; default: the test images of the run")
        .placeholder("FILES");
    options.add("format", &format, {"auto", "cifar10", "cifar100"}, "of the files");
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
  if (!other && settings.format != "auto")
    throw UsageError("--format " + settings.format + ": only with --test; the run's images have their own format");
  if (!other && !run.find("test")) throw UsageError("--test: expected images, because this model comes without any");
  const std::string test = other ? settings.test : run.at("test").string();
  Pictures pictures;
  if (test.empty()) {
    const Json& saved = run.at("seed");  // a large seed is stored as a string: it does not fit a JSON number
    const uint64_t seed = saved.is(Json::Kind::String) ? parse_unsigned(saved.string()).value_or(0)
                                                       : static_cast<uint64_t>(saved.integer());
    const Shapes shapes;
    pictures.class_names = shapes.class_names();
    for (int i = 0; i < settings.images; ++i) pictures.list.push_back(shapes.picture(seed, stream_of("test"), 0, i));
    return pictures;
  }
  const ImageFiles files(image_paths("test", test), other ? settings.format : run.at("format").string());
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

// ---- Text -----------------------------------------------------------------------------------------------------------

constexpr int MOST_TOKENS = 512;  // a larger map has no space for token names, and needs as many backward passes

// The tokens as text in one line, with visible spaces.
std::vector<std::string> shown(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens) {
  std::vector<std::string> all;
  for (const int32_t token : tokens) {
    std::string& words = all.emplace_back();
    if (token >= tokenizer.vocab()) words = "none";  // padding of the vocabulary
    for (const char c : token >= tokenizer.vocab() ? "" : in_one_line(tokenizer.bytes(token)))
      words += c == ' ' ? "\u2423" : std::string(1, c);
  }
  return all;
}

std::string map_table(const TokenMap& map, size_t T) {
  std::string csv = "answer,position,gradient\n";
  for (size_t i = 0; i < T * T; ++i) csv += text("%zu,%zu,%s\n", i / T, i % T, number_text(map.norms[i], 9).c_str());
  return csv;
}

// Each row in parts of its largest value.
std::string draw_map(const TokenMap& map, const std::vector<std::string>& read, std::vector<std::string> next,
                     const std::string& title) {
  const size_t T = read.size();
  std::vector<double> parts = map.norms;
  for (size_t t = 0; t < T; ++t) {
    next[t] += text("  %.0f %%", 100 * map.probability[t]);
    const double largest = *std::max_element(&map.norms[t * T], &map.norms[t * T] + T);
    for (size_t i = 0; i < T && largest > 0; ++i) parts[t * T + i] /= largest;
  }
  const double cells = static_cast<double>(T), pixels = cells * std::clamp(720 / cells, 2.0, 20.0);
  Figure figure(title);
  figure.panel_size(pixels, pixels)
      .caption("rows: the next token and its probability; columns: the tokens that it depends on");
  Panel& panel = figure.panel("gradient of the log-probability").x_names(read).y_names(next);
  panel.heatmap(T, T, parts, "of the row's largest").color_range(0, 1);
  return figure.svg();
}

std::vector<int32_t> tokens_of(const HeatMapSettings& settings, const Tokenizer& tokenizer, const Model& model) {
  tokenizer.check_prompt(settings.prompt, "--prompt");
  std::vector<int32_t> tokens;
  tokenizer.encode(settings.prompt, tokens, Reading::PROMPT);
  const int most = std::min(model.longest(), MOST_TOKENS);
  if (tokens.size() > static_cast<size_t>(most))
    throw UsageError(text("--prompt: %zu tokens, expected %d at most", tokens.size(), most));
  return tokens;
}

TokenMap map_of(const SafetensorsFile& file, const RunState& state, const Model& model, Ops& ops,
                const std::vector<int32_t>& tokens) {
  try {
    return token_map(state.model, state.config, model, ops, tokens);
  } catch (const Error& error) {
    throw Error(file.path() + ": " + error.what());
  }
}

void map_text(const HeatMapSettings& settings, const SafetensorsFile& file, const RunState& state) {
  if (settings.prompt.empty()) throw UsageError("--prompt: expected a text");
  const std::string folder = settings.folder();
  const auto tokenizer = load_tokenizer(file, state);
  const auto ops = settings.make_ops();
  const auto model = load_model(file, state, *ops);
  if (model->window() > 0)
    throw Error(file.path() + ": this " + state.model + text(" reads windows of %d tokens only", model->window()));
  const std::vector<int32_t> tokens = tokens_of(settings, *tokenizer, *model);
  const TokenMap map = map_of(file, state, *model, *ops, tokens);
  save_files(folder, {{"heatmap.csv", map_table(map, tokens.size())},
                      {"heatmap.svg", draw_map(map, shown(*tokenizer, tokens), shown(*tokenizer, map.next),
                                               "What each token of a text depends on: " + state.model)}});
}

}  // namespace

int inspect_heatmap(const std::vector<std::string>& words) {
  HeatMapSettings settings;
  Options options("inspect heatmap", "Shows where a model of images or of text looks.");
  settings.declare(options);
  options.parse(words);
  if (settings.checkpoints.size() > 1) throw UsageError(settings.checkpoints[1] + ": expected one checkpoint");
  const SafetensorsFile file(checkpoint_path(settings.checkpoints[0]));
  const RunState state = read_run_state(file);
  const bool images = state.config.find("patches") != nullptr;
  for (const char* name : {"prompt", "test", "format", "images", "layers"})
    if (options.given(name) && images == (name == std::string("prompt")))
      throw UsageError(text("--%s: %s reads %s", name, file.path().c_str(), images ? "images" : "text"));
  const bool converted = state.program == "convert";  // may lack its tokenizer; loading it reports the error
  if (!images && !converted && !(state.data.is(Json::Kind::Object) && state.data.find("tokenizer")))
    throw Error(file.path() + ": this " + state.model + " reads neither images nor text");
  images ? map_images(settings, file, state) : map_text(settings, file, state);
  return 0;
}

}  // namespace petroglyph
