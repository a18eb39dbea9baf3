// inspect heatmap: which parts of its input a trained model uses. For images it draws a sheet with the images and the
// maps of some layers. For text it shows on which tokens each prediction depends.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <numeric>

#include "analysis/heat_map.h"
#include "analysis/inspect.h"
#include "analysis/token_map.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"
#include "tasks/image_files.h"
#include "tasks/shapes.h"
#include "train/device.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

namespace {

struct HeatMapSettings {
  std::string checkpoint, test, format = "auto", prompt, out, device = "auto";
  std::vector<int> layers;
  int first = 0, images = 12, threads = 0;
  bool force = false;

  void declare(Options& options) {
    options.positional("CHECKPOINT", &checkpoint,
                       "a .safetensors file of train_image, train_text or convert, or a run's folder");
    options.section("Text");
    options.add("prompt", &prompt, "the text whose tokens are shown");
    options.section("Images");
    options.add("test", &test, "images, with commas between files; default: the test images of the run")
        .placeholder("FILES");
    options.add("format", &format, {"auto", "cifar10", "cifar100"}, "of the files");
    options.add("first", &first, 0, 1 << 30, "the first image that is shown, from 0");
    options.add("images", &images, 1, 1000, "how many are shown");
    options.section("Maps");
    options.add(
        "layers", &layers, 1, 1 << 10,
        "whose maps are shown; default: of images four of them, evenly up to the last; of text none, only the whole "
        "model's map");
    options.add("out", &out, "default: heatmaps.png, of text heatmap.svg, beside the checkpoint; and a .csv of text's")
        .placeholder("FILE");
    declare_force(options, &force);
    options.section("Run");
    declare_device(options, &device, &threads);
  }
};

std::vector<size_t> blocks_of(const HeatMapSettings& settings, int layers) {
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

// The images that the run was tested on, unless other files are given.
Pictures pictures_of(const HeatMapSettings& settings, const Json& run) {
  const bool other = !settings.test.empty();
  if (!other && settings.format != "auto")
    throw UsageError("--format " + settings.format + ": does nothing without --test; the images of the run are in its own format");
  if (!other && !run.find("test")) throw UsageError("--test: expected the images too (--data or --test FILE): this model has none");
  const std::string test = other ? settings.test : run.at("test").string();
  Pictures pictures;
  if (test.empty()) {
    const Json& said = run.at("seed");  // a large seed is stored as a string: it does not fit a JSON number
    const uint64_t seed =
        said.is(Json::Kind::String) ? parse_unsigned(said.string()).value_or(0) : static_cast<uint64_t>(said.integer());
    const Shapes shapes;
    pictures.class_names = shapes.class_names();
    for (int i = 0; i < settings.images; ++i)
      pictures.list.push_back(shapes.picture(seed, stream_of("test"), 0, settings.first + i));
    return pictures;
  }
  const ImageFiles files(image_paths("test", test), other ? settings.format : run.at("format").string());
  pictures.class_names = files.class_names();
  for (int64_t i = settings.first; i < settings.first + int64_t(settings.images) && i < files.size(); ++i)
    pictures.list.push_back(files.picture(i));
  if (pictures.list.empty())
    throw UsageError(
        text("--first %d: %s has %s", settings.first, test.c_str(), counted(files.size(), "image").c_str()));
  return pictures;
}

// The file that --out names, or one next to the checkpoint.
std::string out_of(const HeatMapSettings& settings, const SafetensorsFile& file, const char* name) {
  return !settings.out.empty() ? settings.out : (std::filesystem::path(file.path()).parent_path() / name).string();
}

void check_ending(const std::string& out, const char* ending) {
  if (std::filesystem::path(out).extension() != ending)
    throw UsageError("--out " + out + ": expected the name of a file that ends in " + ending);
  check_writable(out);
}

int layers_of(const RunState& state, const std::string& path) {
  if (!state.config.find("layers")) throw Error(path + ": " + state.model + " has no maps");
  return static_cast<int>(state.config.at("layers").integer());
}

// ---- Images ---------------------------------------------------------------------------------------------------------

void map_images(const HeatMapSettings& settings, const SafetensorsFile& file, const RunState& state) {
  const std::string out = out_of(settings, file, "heatmaps.png");
  check_ending(out, ".png");
  const int layers = layers_of(state, file.path());
  if (settings.test.empty()) refuse_foreign_paths(file, state, {"test"});
  const Pictures pictures = pictures_of(settings, state.options);
  std::vector<std::string> model_classes;
  for (const Json& name : state.data.at("classes").items()) model_classes.push_back(name.string());
  if (model_classes != pictures.class_names) {
    print("the model learned other classes than these images': its predictions are left out\n");
    model_classes.clear();
  }
  const std::vector<size_t> blocks = settings.layers.empty() ? blocks_to_show(layers) : blocks_of(settings, layers);
  const auto ops = make_device(settings.device, settings.threads);
  const auto model = load_model(file, state, *ops);
  const std::string sheet =
      heat_map_sheet(*model, *ops, pictures.class_names, model_classes, pictures.list, blocks).as_png();
  settings.out.empty() ? write_keeping(out, sheet) : write_file_atomically(out, sheet);
  print("saved %s (%s%s)\n", out.c_str(), counted(static_cast<int64_t>(pictures.list.size()), "image").c_str(),
        pictures.list.size() < size_t(settings.images) ? ": there are no more" : "");
}

// ---- Text -----------------------------------------------------------------------------------------------------------

constexpr int MOST_TOKENS = 512;  // a larger map has no space for token names, and needs as many backward passes

// In one line, with visible spaces.
std::string shown(const Tokenizer& tokenizer, int32_t token) {
  if (token >= tokenizer.vocab()) return "none";  // padding of the vocabulary
  std::string words;
  for (const char c : in_one_line(tokenizer.bytes(token))) words += c == ' ' ? "\u2423" : std::string(1, c);
  return words;
}

struct TextMaps {
  std::vector<std::string> read, said;  // (T): the tokens as text
  TokenMap map;
  std::vector<size_t> blocks;
  std::vector<std::vector<double>> attention;  // (T,T) for each of these blocks
};

// Padded to `letters` characters, however many bytes they have.
std::string in_column(const std::string& words, size_t letters) {
  const auto follows = [](char c) { return (c & 0xC0) == 0x80; };
  const size_t wide = words.size() - static_cast<size_t>(std::count_if(words.begin(), words.end(), follows));
  return words + std::string(letters - std::min(letters, wide), ' ');
}

// For each predicted token, the three tokens that it depends on most.
void print_map(const TextMaps& maps) {
  const size_t T = maps.read.size();
  print("%-24s %12s   depends most on\n", "what is said", "probability");
  for (size_t t = 0; t < T; ++t) {
    const double* row = &maps.map.norms[t * T];
    std::vector<size_t> order(T);
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
    const double total = std::accumulate(row, row + T, 0.0);
    std::vector<std::string> words;
    for (size_t k = 0; k < std::min<size_t>(3, t + 1); ++k)
      words.push_back(maps.read[order[k]] + text(" %.0f %%", total > 0 ? 100 * row[order[k]] / total : 0));
    print("%s %10.1f %%   %s\n", in_column(maps.said[t], 24).c_str(), 100 * maps.map.probability[t],
          join(words, ", ").c_str());
  }
}

std::string map_table(const TextMaps& maps) {
  std::string csv = "answer,position,gradient\n";
  const size_t T = maps.read.size();
  for (size_t t = 0; t < T; ++t)
    for (size_t i = 0; i < T; ++i) csv += text("%zu,%zu,%s\n", t, i, number_text(maps.map.norms[t * T + i], 9).c_str());
  return csv;
}

std::string draw_maps(const TextMaps& maps, const std::string& title) {
  const size_t T = maps.read.size();
  std::vector<std::string> said;
  for (size_t t = 0; t < T; ++t) said.push_back(maps.said[t] + text("  %.0f %%", 100 * maps.map.probability[t]));
  const double cells = static_cast<double>(T), pixels = cells * std::clamp(720 / cells, 2.0, 20.0);
  Figure figure(title);
  figure.panel_size(pixels, pixels).caption("rows: what is said, and its probability; columns: what it depends on");
  const auto panel = [&](const std::string& name, const std::vector<double>& values) {
    Panel& panel = figure.panel(name).x_names(maps.read).y_names(said);
    panel.heatmap(T, T, in_parts_of_largest(values, T), "of the row's largest").color_range(0, 1);
  };
  panel("gradient of the log-probability", maps.map.norms);
  for (size_t i = 0; i < maps.blocks.size(); ++i)
    panel("attention in layer " + std::to_string(maps.blocks[i] + 1), maps.attention[i]);
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
  if (settings.prompt.empty()) throw UsageError("expected a text (--prompt TEXT)");
  const std::string out = out_of(settings, file, "heatmap.svg");
  check_ending(out, ".svg");
  const std::string csv = std::filesystem::path(out).replace_extension("csv").string();
  if (!settings.out.empty()) check_replaced(csv, settings.force);
  const auto tokenizer = load_tokenizer(file, state);
  const auto ops = make_device(settings.device, settings.threads);
  const auto model = load_model(file, state, *ops);
  if (model->window() > 0)
    throw Error(file.path() + ": this " + state.model +
                text(" reads windows of %d tokens only", model->window()));
  if (!settings.layers.empty() && !model->has_attention_maps())
    throw UsageError("--layers: " + file.path() + ": a " + state.model + " has no attention maps");
  const std::vector<int32_t> tokens = tokens_of(settings, *tokenizer, *model);
  TextMaps maps{{}, {}, map_of(file, state, *model, *ops, tokens), {}, {}};
  for (const int32_t token : tokens) maps.read.push_back(shown(*tokenizer, token));
  for (const int32_t token : maps.map.said) maps.said.push_back(shown(*tokenizer, token));
  if (!settings.layers.empty()) maps.blocks = blocks_of(settings, layers_of(state, file.path()));
  for (const size_t block : maps.blocks) maps.attention.push_back(mean_attention(*model, *ops, tokens, block));
  print_map(maps);
  const std::string svg = draw_maps(maps, "What each token of a text depends on: " + state.model);
  for (const auto& [path, content] : {std::pair(csv, map_table(maps)), std::pair(out, svg)})
    settings.out.empty() ? write_keeping(path, content) : write_file_atomically(path, content);
  print("saved %s and %s\n", out.c_str(), csv.c_str());
}

}  // namespace

int inspect_heatmap(const std::vector<std::string>& words) {
  HeatMapSettings settings;
  Options options("inspect heatmap", "Shows where a model of images or of text looks.");
  settings.declare(options);
  options.parse(words);
  if (!settings.out.empty()) check_replaced(settings.out, settings.force);
  const SafetensorsFile file(checkpoint_path(settings.checkpoint));
  const RunState state = read_run_state(file);
  const bool images = state.config.find("patches") != nullptr;
  for (const char* name : {"prompt", "test", "format", "first", "images"})
    if (options.given(name) && images == (name == std::string("prompt")))
      throw UsageError(text("--%s: %s reads %s", name, file.path().c_str(), images ? "images" : "text"));
  const bool converted = state.program == "convert";  // may lack its tokenizer; loading it reports the error
  if (!images && !converted && !(state.data.is(Json::Kind::Object) && state.data.find("tokenizer")))
    throw Error(file.path() + ": this " + state.model + " reads neither images nor text");
  images ? map_images(settings, file, state) : map_text(settings, file, state);
  return 0;
}

}  // namespace petroglyph
