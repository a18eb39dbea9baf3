// inspect attention: where the layers of Transformers attend, in windows of text. It extends question 4 of "Why Are
// Positional Encodings Nonessential for Deep Autoregressive Transformers?" to models of any depth. a_ts is the
// attention weight of position t on position s ≤ t:
//
//   weight on the current token   a_tt                               uniform attention: 1/(t + 1)
//   entropy                       −Σ_s a_ts log a_ts / log(t + 1)    uniform attention: 1, one position only: 0
//
// Both are means over heads, positions t = 1 … T−1 and windows (order.h).

#include <algorithm>
#include <filesystem>

#include "analysis/inspection.h"
#include "analysis/order.h"
#include "base/error.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "figures/figure.h"

namespace petroglyph {

namespace {

struct AttentionSettings : InspectionSettings {
  std::string text;
  int length = 0, windows = 64;

  void declare(Options& options) {
    InspectionSettings::declare(options, "a .safetensors file of train_text or convert, or a run's folder; " +
                                             called("train_text") + " makes one, runs/text");
    options.add("length", &length, 0, 1 << 16, "tokens of a window; 0: as many as the model learned from");
    options.add("windows", &windows, 1, 1 << 16, "number of windows; the results are their mean");
    declare_windows_text(options, &text);
  }
};

// Throws Error if the maps are not normalized weights over the preceding tokens.
void check_maps(const OpenedCheckpoint& opened) {
  const std::string who = opened.file.path() + ": this " + opened.state.model;
  const Json* const normalized = opened.state.config.find("normalized");
  if (normalized && !normalized->boolean())
    throw Error(who + " does not normalize its attention: expected one that does (--feature-map elu1)");
  const Json* const causal = opened.state.config.find("causal");  // of models with such maps
  if (!causal || !causal->boolean()) throw Error(who + " does not attend to all earlier tokens and no later ones");
}

// One checkpoint of a causal Transformer with normalized attention weights, and its input.
struct AttentionSubject : OpenedCheckpoint {
  AttentionSubject(const std::string& checkpoint, const AttentionSettings& settings, Ops& ops)
      : OpenedCheckpoint(checkpoint, {"train_text", "convert"}, ops) {
    check_maps(*this);
    length = window_length(*model, file.path(), settings.length, context_of(state));
    if (length < 2)
      throw UsageError(text("--length %d: expected at least 2: the first token attends only to itself", length));
    task = windows_of_text(file, state, settings.text, length, settings.windows);
    windows = static_cast<int>(std::min<int64_t>(settings.windows, task->evaluation_samples()));
    layers = static_cast<int>(state.config.at("layers").integer());
    const std::filesystem::path path(file.path()), folder = path.parent_path().filename();
    name = path.filename() == "model.safetensors" && !folder.empty() ? folder : folder / path.filename();
    title = name + ": " + state.model + ", " + counted(layers, "layer") + ", " + counted(windows, "window") +
            text(" of %d tokens of ", length) + name_of_text(state, settings.text);
  }

  std::unique_ptr<LanguageModeling> task;
  int length, windows, layers;
  std::string
      name;  // of a run's folder, or of another file with its folder, "layers-12-position-none/best.safetensors"
  std::string title;  // "tiny: transformer, 12 layers, 64 windows of 32 tokens of the stories"
};

}  // namespace

int inspect_attention(const std::vector<std::string>& words) {
  AttentionSettings settings;
  Options options(
      "inspect attention",
      "Prints for each layer of a causal Transformer how much of its attention is on the new token, and how "
      "uniformly it looks: means over heads, positions but the first, and windows of text.");
  settings.declare(options);
  options.parse(words);
  const std::string folder = settings.folder();
  const auto ops = settings.make_ops();
  Figure figure("Where the layers look");
  Panel& own = figure.panel("weight on the new token").x("layer").y("weight");
  Panel& entropy = figure.panel("how uniformly it looks").x("layer").y("entropy, as a part of uniform");
  std::string csv = "checkpoint,layers,layer,own,entropy\n";
  for (const auto& subject : open_all<AttentionSubject>(settings, *ops)) {
    const int heads = static_cast<int>(subject->state.config.at("heads").integer());
    const std::vector<Look> looks =
        mean_looks(*subject->model, *ops, *subject->task, 1, subject->windows, subject->layers, heads);
    print("%s\n", subject->title.c_str());
    print_looks(looks, subject->length);
    std::vector<double> layers, weights, entropies;
    for (const Look& look : looks) {
      layers.push_back(static_cast<double>(layers.size()) + 1);
      weights.push_back(look.own);
      entropies.push_back(look.entropy);
      csv += csv_cell(subject->given) + text(",%zu,%zu,", looks.size(), layers.size()) + look_cells(look) + "\n";
    }
    own.line(subject->name, layers, weights, WITH_MARKERS);
    entropy.line(subject->name, layers, entropies, WITH_MARKERS);
    figure.caption(subject->title);
  }
  save_files(folder, {{"attention.csv", csv}, {"attention.svg", figure.svg()}});
  return 0;
}

}  // namespace petroglyph
