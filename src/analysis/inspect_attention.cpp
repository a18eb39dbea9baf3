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

// One checkpoint of a causal Transformer with normalized attention weights, and its input.
class AttentionSubject {
 public:
  AttentionSubject(const std::string& checkpoint, const AttentionSettings& settings, Ops& ops)
      : path_(checkpoint), settings_(settings), ops_(ops), opened_(checkpoint, {"train_text", "convert"}, ops) {
    check_maps();
    length_ = window_length(*opened_.model, opened_.file.path(), settings.length, context_of(opened_.state));
    if (length_ < 2)
      throw UsageError(text("--length %d: expected at least 2: the first token attends only to itself", length_));
    task_ = windows_of_text(opened_.file, opened_.state, settings.text, length_, settings.windows);
  }

  int layers() const { return static_cast<int>(opened_.state.config.at("layers").integer()); }
  int length() const { return length_; }
  const std::string& path() const { return path_; }  // as the user wrote it
  // The name of a run's folder, or of another file with its folder, "layers-12-position-none/best.safetensors".
  std::string name() const {
    const std::filesystem::path path(opened_.file.path()), folder = path.parent_path().filename();
    return path.filename() == "model.safetensors" && !folder.empty() ? folder.string()
                                                                     : (folder / path.filename()).string();
  }
  // At most the number of windows in the text.
  int windows() const { return static_cast<int>(std::min<int64_t>(settings_.windows, task_->evaluation_samples())); }
  // "tiny: transformer, 12 layers, 64 windows of 32 tokens of the stories"
  std::string title() const {
    return name() + ": " + opened_.state.model + ", " + counted(layers(), "layer") + ", " +
           counted(windows(), "window") + text(" of %d tokens of ", length_) +
           name_of_text(opened_.state, settings_.text);
  }

  std::vector<Look> looks() const {
    const int heads = static_cast<int>(opened_.state.config.at("heads").integer());
    return mean_looks(*opened_.model, ops_, *task_, 1, windows(), layers(), heads);
  }

 private:
  // Throws Error if the maps are not normalized weights over the preceding tokens.
  void check_maps() const {
    const std::string& path = opened_.file.path();
    const Json* const normalized = opened_.state.config.find("normalized");
    if (normalized && !normalized->boolean())
      throw Error(path + ": this " + opened_.state.model +
                  " does not normalize its attention: expected one that does (--feature-map elu1)");
    const Json* const causal = opened_.state.config.find("causal");  // of models with such maps
    if (!causal || !causal->boolean())
      throw Error(path + ": this " + opened_.state.model + " does not attend to all earlier tokens and no later ones");
  }

  const std::string path_;
  const AttentionSettings& settings_;
  Ops& ops_;
  OpenedCheckpoint opened_;
  std::unique_ptr<LanguageModeling> task_;
  int length_ = 0;
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
    const std::vector<Look> looks = subject->looks();
    print("%s\n", subject->title().c_str());
    print_looks(looks, subject->length());
    std::vector<double> layers, weights, entropies;
    for (const Look& look : looks) {
      layers.push_back(static_cast<double>(layers.size()) + 1);
      weights.push_back(look.own);
      entropies.push_back(look.entropy);
      csv += csv_cell(subject->path()) + text(",%zu,%zu,", looks.size(), layers.size()) + look_cells(look) + "\n";
    }
    own.line(subject->name(), layers, weights, WITH_MARKERS);
    entropy.line(subject->name(), layers, entropies, WITH_MARKERS);
    figure.caption(subject->title());
  }
  save_files(folder, {{"attention.csv", csv}, {"attention.svg", figure.svg()}});
  return 0;
}

}  // namespace petroglyph
