// inspect receptive-field: how much of the gradient of a model's last prediction comes from the most recent tokens,
// and how much from distant ones (regular_gpt, section 7.4 and figure 4).

#include <algorithm>
#include <cstdio>

#include "analysis/inspection.h"
#include "analysis/receptive_field.h"
#include "base/error.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"
#include "tasks/regular_languages.h"
#include "train/regular_run.h"

namespace petroglyph {

namespace {

struct FieldSettings : InspectionSettings {
  std::string text;
  int length = 0, samples = 4;

  void declare(Options& options) {
    InspectionSettings::declare(options,
                                "a .safetensors file of train_regular, train_text or convert, or a run's folder; " +
                                    called("train_regular") + " makes one, runs/regular/parity_check-seed-1, and " +
                                    called("train_text") + " another, runs/text");
    options.add(
        "length", &length, 0, 1 << 20,
        "tokens; 0: of a language 500; of a text four contexts, or fewer where the model cannot read so many; for a "
        "model of text with one answer per window, that window");
    options.add("samples", &samples, 1, 1 << 20, "strings or windows; the figure shows their mean");
    declare_windows_text(options, &text);
  }
};

// One checkpoint: the model and its input.
struct FieldSubject : OpenedCheckpoint {
  FieldSubject(const std::string& checkpoint, const FieldSettings& settings, Ops& ops)
      : OpenedCheckpoint(checkpoint, {"train_regular", "train_text", "convert"}, ops) {
    if (state.program == "train_regular") {  // a model with one answer a string accepts any length
      if (!settings.text.empty())
        throw UsageError("--text " + settings.text + ": this model was trained on a regular language, not on text");
      const int length = window_length(*model, file.path(), settings.length, 500);
      task = std::make_unique<RegularLanguage>(language_learned(file.path(), state, length));
      title = state.model + ", " + state.options.at("task").string();
      return;
    }
    const int context = context_of(state), window = model->window();
    if (window > 0 && settings.length > 0 && settings.length != window)
      throw UsageError(
          text("--length %d: %s reads windows of %d tokens only", settings.length, file.path().c_str(), window));
    const int otherwise = state.program == "train_text" ? 4 * context : context;
    const int length = window > 0 ? window : window_length(*model, file.path(), settings.length, otherwise);
    task = windows_of_text(file, state, settings.text, length, settings.samples);
    title = state.model + ", text";
  }

  std::unique_ptr<Task> task;
  std::string title;
};

// (T): the fraction of the gradient at the j + 1 most recent positions, averaged over the samples
std::vector<double> mean_cumulative(const FieldSubject& subject, int most, Ops& ops) {
  std::vector<double> mean;
  const auto samples = static_cast<int>(std::min<int64_t>(most, subject.task->evaluation_samples()));
  for (int sample = 0; sample < samples; ++sample) {
    const Batch batch = subject.task->batch(1, stream_of("evaluate"), 0, sample, 1);
    const std::vector<double> one =
        receptive_field(subject.state.model, subject.state.config, *subject.model, ops, batch.tokens).cumulative;
    mean.resize(one.size());
    for (size_t j = 0; j < mean.size(); ++j) mean[j] += one[j] / samples;
  }
  return mean;
}

// How many of the most recent positions are needed for this fraction of the gradient.
size_t positions_with(const std::vector<double>& cumulative, double share) {
  return static_cast<size_t>(std::lower_bound(cumulative.begin(), cumulative.end(), share) - cumulative.begin()) + 1;
}

// If all gradients are 0, fractions are undefined.
void print_share(const std::string& title, const std::vector<double>& share) {
  const std::string positions = counted(static_cast<int64_t>(share.size()), "position");
  if (share.back() > 0)
    print("%s: of %s, from the last one, half of the gradient is within %zu, 90 %% within %zu, 99 %% within %zu\n",
          title.c_str(), positions.c_str(), positions_with(share, 0.5), positions_with(share, 0.9),
          positions_with(share, 0.99));
  else
    print("%s: of %s none moves the answer\n", title.c_str(), positions.c_str());
}

}  // namespace

int inspect_receptive_field(const std::vector<std::string>& words) {
  FieldSettings settings;
  Options options("inspect receptive-field", "Shows how far back the last answer of a model looks.");
  settings.declare(options);
  options.parse(words);
  const std::string folder = settings.folder();
  const auto ops = settings.make_ops();
  Figure figure("Cumulative gradient norms, from the last position to the first");
  std::string csv = "checkpoint,position,share\n";
  for (const auto& subject : open_all<FieldSubject>(settings, *ops)) {
    const std::vector<double> share = mean_cumulative(*subject, settings.samples, *ops);
    print_share(subject->title, share);
    std::vector<double> positions;
    for (size_t j = 0; j < share.size(); ++j) {
      positions.push_back(static_cast<double>(share.size() - 1 - j));
      csv += csv_cell(subject->given) + text(",%zu,", share.size() - 1 - j) + number_text(share[j], 9) + "\n";
    }
    figure.panel(subject->title)
        .x("position")
        .y("share of the gradient's norms")
        .y_range(0, 1.02)
        .line("", positions, share);
  }
  save_files(folder, {{"receptive_field.csv", csv}, {"receptive_field.svg", figure.svg()}});
  return 0;
}

}  // namespace petroglyph
