// inspect attention: where the layers of Transformers look, at windows of text. "Why Are Positional Encodings Nonessential for Deep
// Autoregressive Transformers?", question 4, of models of any depth. Of a layer whose position t gives the weight a_ts to s ≤ t
//
//   the weight on the new token   a_tt                               everywhere alike: 1/(t + 1)
//   how evenly it looks           −Σ_s a_ts log a_ts / log(t + 1)    everywhere alike: 1, at one place only: 0
//
// in the mean over heads, positions t = 1 … T−1 and windows (order.h).

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "analysis/checkpoint_text.h"
#include "analysis/inspect.h"
#include "analysis/order.h"
#include "analysis/output_folder.h"
#include "base/error.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"
#include "train/device.h"

namespace petroglyph {

namespace {

struct AttentionSettings {
  std::vector<std::string> checkpoints;
  std::string text, out, device = "auto";
  int length = 0, windows = 64, threads = 0;
  bool force = false;

  void declare(Options& options) {
    options.positional("CHECKPOINT", &checkpoints,
                       "a .safetensors file of train_text or convert, or a run's folder; " + called("train_text") +
                           " makes one, runs/text");
    options.add("length", &length, 0, 1 << 16, "tokens of a window; 0: as many as the model learned from");
    options.add("windows", &windows, 1, 1 << 16, "so many are looked at; the numbers are their mean");
    declare_windows_text(options, &text);
    declare_output_folder(options, &out, &force);
    declare_device(options, &device, &threads);
  }
};

// One checkpoint: a causal Transformer, whose weights are shares, and what it reads.
class AttentionSubject {
 public:
  AttentionSubject(const std::string& checkpoint, const AttentionSettings& settings, Ops& ops)
      : settings_(settings), ops_(ops), file_(checkpoint_path(checkpoint)), state_(read_run_state(file_)) {
    if (state_.program != "train_text" && state_.program != "convert")
      throw Error(file_.path() + ": a checkpoint of " + state_.program + ", expected one of train_text or convert");
    model_ = load_model(file_, state_, ops);
    check_maps();
    length_ = wanted_length();
    task_ = windows_of_text(file_, state_, settings.text, length_, settings.windows);
  }

  int layers() const { return static_cast<int>(state_.config.at("layers").integer()); }
  int length() const { return length_; }
  // "layers-12-position-none", a run's folder, or another file and its folder, "layers-12-position-none/best.safetensors".
  std::string name() const {
    const std::filesystem::path path(file_.path()), folder = path.parent_path().filename();
    return path.filename() == "model.safetensors" && !folder.empty() ? folder.string()
                                                                     : (folder / path.filename()).string();
  }
  // No more than the text has.
  int windows() const { return static_cast<int>(std::min<int64_t>(settings_.windows, task_->evaluation_samples())); }
  std::string title() const { return name() + ": " + state_.model + ", " + counted(layers(), "layer"); }

  // Of each layer, the mean over the windows.
  std::vector<Look> looks() {
    const int heads = static_cast<int>(state_.config.at("heads").integer());
    std::vector<Look> means(static_cast<size_t>(layers()));
    Tokens tokens(ops_, {1, length_});
    const int count = windows();
    for (int window = 0; window < count; ++window) {
      const Batch batch = task_->batch(1, stream_of("evaluate"), 0, window, 1);
      model_->check_tokens(batch.tokens);
      tokens.upload(batch.tokens);
      model_->forward({tokens.data(), 1, length_});
      for (size_t layer = 0; layer < means.size(); ++layer) {
        const Look look = look_of(model_->attention_map(layer, 0), heads, length_);
        means[layer].own += look.own / count;
        means[layer].entropy += look.entropy / count;
      }
    }
    return means;
  }

 private:
  // Throws Error where its maps are none of shares of what stands before.
  void check_maps() const {
    const std::string& path = file_.path();
    if (!model_->has_attention_maps()) throw Error(path + ": a " + state_.model + " has no attention maps");
    const Json* const normalized = state_.config.find("normalized");
    if (normalized && !normalized->boolean())
      throw Error(path + ": this " + state_.model + "'s weights add up to nothing in particular");
    const Json* const causal = state_.config.find("causal");  // regular_gpt's maps are of chunks, not of all tokens
    if (!causal) throw Error(path + ": the maps of a " + state_.model + " are not read here");
    if (!causal->boolean())
      throw Error(path + ": this " + state_.model + " looks at what is to come, too; expected a causal one");
  }

  int wanted_length() const {
    const int longest = model_->longest(), wanted = settings_.length;
    if (wanted > longest)
      throw UsageError(
          text("--length %d: %s reads %s at most", wanted, file_.path().c_str(), counted(longest, "token").c_str()));
    const int length = wanted > 0 ? wanted : std::min(context_of(state_), longest);
    if (length < 2)
      throw UsageError(text("--length %d: %sexpected 2 at least, for the first token has one place to look", length,
                            wanted > 0 ? "" : "so many has a window that this model learned from, "));
    return length;
  }

  const AttentionSettings& settings_;
  Ops& ops_;
  SafetensorsFile file_;
  RunState state_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<LanguageModeling> task_;
  int length_ = 0;
};

void print_looks(const AttentionSubject& subject, const std::vector<Look>& looks) {
  print("%s, %s of %d tokens\n%-8s %24s %30s\n", subject.title().c_str(), counted(subject.windows(), "window").c_str(),
        subject.length(), "layer", "weight on the new token", "entropy, as a part of uniform");
  for (size_t layer = 0; layer < looks.size(); ++layer)
    print("%-8zu %24.3f %30.3f\n", layer + 1, looks[layer].own, looks[layer].entropy);
  print("looking everywhere alike would be %.3f and 1\n\n", alike_weight(subject.length()));
}

// A curve a checkpoint: of each layer one number.
class LayerCurves {
 public:
  LayerCurves()
      : own_(figure_.panel("weight on the new token").x("layer").y("weight").y_range(-0.02, 1.02)),
        entropy_(
            figure_.panel("how evenly it looks").x("layer").y("entropy, as a part of uniform").y_range(-0.02, 1.02)) {}

  void add(const std::string& name, const std::vector<Look>& looks) {
    std::vector<double> layers, own, entropy;
    for (const Look& look : looks) {
      layers.push_back(static_cast<double>(layers.size()) + 1);
      own.push_back(look.own);
      entropy.push_back(look.entropy);
    }
    LineStyle style;
    style.markers = true;
    own_.line(name, layers, own, style);
    entropy_.line(name, layers, entropy, style);
  }
  const Figure& figure() const { return figure_; }

 private:
  Figure figure_{"Where the layers look"};
  Panel &own_, &entropy_;
};

}  // namespace

int inspect_attention(const std::vector<std::string>& words) {
  AttentionSettings settings;
  Options options("inspect attention",
                  "Says of each layer of a causal Transformer how much of its attention is on the new token, and how "
                  "evenly it looks: means over heads, positions but the first, and windows of text.");
  settings.declare(options);
  options.parse(words);
  OutputFolder output(settings.out, settings.force, folder_of_checkpoint(settings.checkpoints[0]),
                      {"attention.csv", "attention.svg"});
  const auto ops = make_device(settings.device, settings.threads);
  // All before the first is looked into: what is wrong with the last shows at once.
  for (const std::string& checkpoint : settings.checkpoints) AttentionSubject(checkpoint, settings, *ops);
  LayerCurves curves;
  std::string csv = "checkpoint,layers,layer,own,entropy\n";
  for (const std::string& checkpoint : settings.checkpoints) {
    AttentionSubject subject(checkpoint, settings, *ops);
    const std::vector<Look> looks = subject.looks();
    print_looks(subject, looks);
    for (size_t layer = 0; layer < looks.size(); ++layer)
      csv += text("%s,%zu,%zu,%s,%s\n", csv_cell(checkpoint).c_str(), looks.size(), layer + 1,
                  number_text(looks[layer].own, 6).c_str(), number_text(looks[layer].entropy, 6).c_str());
    curves.add(subject.name(), looks);
  }
  output.save("attention.csv", csv);
  output.save("attention.svg", curves.figure());
  print("%s\n", output.summary().c_str());
  return 0;
}

}  // namespace petroglyph
