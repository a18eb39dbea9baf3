#include "train/text_evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/last_token.h"
#include "train/checkpoint.h"
#include "train/device.h"
#include "train/optimizer.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

double characters_a_target(const LanguageModeling& task, const Tokenizer& tokenizer, uint64_t seed, int samples) {
  constexpr int WINDOWS = 64;  // at a time
  int64_t characters = 0, counted = 0;
  for (int first = 0; first < samples; first += WINDOWS) {
    const Batch evaluated = task.batch(seed, stream_of("evaluate"), 0, first, std::min(WINDOWS, samples - first));
    for (const int32_t token : evaluated.targets) characters += tokenizer.characters(token);
    counted += evaluated.counted;
  }
  return static_cast<double>(characters) / static_cast<double>(counted);
}

std::string text_measures(const Measures& measures, double characters_a_token) {
  const std::string bits =
      characters_a_token > 0 ? text("%.3f bits/character  ", measures.loss / std::log(2.0) / characters_a_token) : "";
  return text("validation loss %.4f  perplexity %.2f  %saccuracy %.1f %%", measures.loss, std::exp(measures.loss),
              bits.c_str(), 100 * measures.accuracy);
}

namespace {

int window_tokens(const TextRunSettings& given, const RunState& state, const Model& model) {
  if (model.window() > 0) return model.window();
  if (given.options.given("context")) return given.text_settings.context;
  const int learned = learned_context(state);
  return std::min(model.longest(), learned > 0 ? learned : 1024);
}

// A checkpoint and the text that it is evaluated on.
class Evaluation {
 public:
  explicit Evaluation(const TextRunSettings& given);

  void show_whole() const;    // all of the text
  void show_lengths() const;  // --evaluate-lengths

 private:
  void check_context(const TextRunSettings& given) const;
  void check_lengths() const;
  Measures measure(const Task& task, int samples, int at_once) const;

  const TextSettings& text_settings_;
  const RunSettings& settings_;
  const int64_t most_;  // windows of the whole
  const SafetensorsFile file_;
  const RunState state_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::shared_ptr<const Corpus> text_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  bool once_ = false;  // one answer per window
  int context_ = 0;
};

Evaluation::Evaluation(const TextRunSettings& given)
    : text_settings_(given.text_settings),
      settings_(given.settings),
      most_(given.options.given("eval-samples") ? given.settings.eval_samples : int64_t(1) << 24),
      file_(checkpoint_path(given.text_settings.evaluate)),
      state_(read_run_state(file_)),
      tokenizer_(load_tokenizer(file_, state_)) {
  const TextSource& source = text_settings_.source;
  if (source.replace) {
    check_replaces(*tokenizer_);
    tokenizer_ = replacing(std::move(tokenizer_));
  }
  text_ = open_corpus(source.data, *tokenizer_, token_format(source.format));
  ops_ = make_device(settings_.device, settings_.threads);
  model_ = load_model(file_, state_, *ops_);
  const Json* const readout = state_.config.find("readout");
  once_ = model_->window() > 0 || (readout && readout->string() == "last");
  context_ = window_tokens(given, state_, *model_);
  check_context(given);
  if (!text_settings_.lengths.empty()) check_lengths();
}

void Evaluation::check_context(const TextRunSettings& given) const {
  const int wanted = text_settings_.context;
  if (!given.options.given("context")) return;
  if (model_->window() > 0 && wanted != context_)
    throw UsageError(
        text("--context %d: %s reads windows of %d tokens only", wanted, text_settings_.evaluate.c_str(), context_));
  if (wanted > model_->longest())
    throw UsageError(text("--context %d: %s has positions for windows of %s", wanted, text_settings_.evaluate.c_str(),
                          counted(model_->longest(), "token").c_str()));
}

// Whether the model can read windows as long as the longest, and the text has one.
void Evaluation::check_lengths() const {
  const int longest = text_settings_.longest_length();
  if (once_)
    throw Error("--evaluate-lengths: " + text_settings_.evaluate +
                ": a model with one answer per window reads windows of " + counted(context_, "token") +
                " and of no other length");
  if (longest > model_->longest())
    throw Error(text("--evaluate-lengths %d: %s has positions for windows of %s", longest,
                     text_settings_.evaluate.c_str(), counted(model_->longest(), "token").c_str()));
  LastToken(*text_, text_settings_.source.data, longest, longest, 1);  // throws where it has none
}

Measures Evaluation::measure(const Task& task, int samples, int at_once) const {
  Optimizer unused(model_->parameters, *ops_, {});
  Trainer trainer(*model_, task, unused, *ops_, settings_.seed, settings_.batch, 1);
  Progress progress(0, samples, after_a_while(settings_.quiet, "window"));
  Measures measures;
  ops_->run([&] { measures = trainer.evaluate(task, 0, samples, at_once, &progress).value(); });
  progress.finish();
  if (!std::isfinite(measures.loss))
    throw Error(text_settings_.evaluate + ": the loss is " + number_text(measures.loss, 3) +
                ": its weights are too large");
  return measures;
}

// Whole windows, and the rest of the text as a shorter one, unless the model reads windows of one length or fewer
// windows are evaluated than there are.
void Evaluation::show_whole() const {
  const std::string& name = text_settings_.source.data;
  const int64_t targets = text_->size() - 1, windows = targets / context_, tail = once_ ? 0 : targets % context_;
  const int64_t samples = std::min(most_, windows);
  Measures sum{0, 0};
  double characters = 0, scored = 0;
  const auto add = [&](const std::shared_ptr<const Corpus>& text, int context, int64_t count) {
    const LanguageModeling task(text, name, text, name, context, settings_.batch, once_ ? Targets::LAST : Targets::ALL);
    const Measures measures = measure(task, static_cast<int>(count), 0);
    const double tokens = static_cast<double>(count) * (once_ ? 1 : context);
    sum.loss += measures.loss * tokens;
    sum.accuracy += measures.accuracy * tokens;
    characters += characters_a_target(task, *tokenizer_, settings_.seed, static_cast<int>(count)) * tokens;
    scored += tokens;
  };
  if (windows > 0 || tail <= 0) add(text_, context_, samples);
  const bool with_tail = samples == windows && tail > 0;
  if (with_tail) add(std::make_shared<CorpusPart>(text_, windows * context_, text_->size()), static_cast<int>(tail), 1);
  const std::string some = samples < windows ? with_commas(samples) + " of " : "";
  const std::string rest = with_tail ? (windows > 0 ? " and one of " : "") + with_commas(tail) : "";
  const std::string whole =
      windows > 0 ? counted(windows, "window") + " of " + with_commas(context_) : "one window of ";
  print("%s, step %s, on %s: %s%s%s tokens, %s scored\n%s\n", state_.model.c_str(), with_commas(state_.step).c_str(),
        name.c_str(), some.c_str(), whole.c_str(), rest.c_str(), counted(static_cast<int64_t>(scored), "token").c_str(),
        text_measures({sum.loss / scored, sum.accuracy / scored}, characters / scored).c_str());
}

// As after a training.
void Evaluation::show_lengths() const {
  for (const int length : text_settings_.lengths) {
    const LastToken last(*text_, text_settings_.source.data, length, text_settings_.longest_length(),
                         text_settings_.length_windows);
    const int at_once = as_many_as(settings_.batch, static_cast<double>(length) / context_);
    std::printf("the last of %s: perplexity %.2f, %s\n", counted(length, "token").c_str(),
                std::exp(measure(last, last.windows(), at_once).loss), counted(last.windows(), "window").c_str());
  }
}

}  // namespace

void evaluate_checkpoint(const TextRunSettings& given) {
  if (given.text_settings.source.data.empty())
    throw UsageError("--evaluate: expected the text to evaluate on (--data FILE)");
  const Evaluation evaluation(given);
  evaluation.show_whole();
  evaluation.show_lengths();
}

}  // namespace petroglyph
