#include "train/text_evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "math/random.h"
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

Measures measure(const TextRunSettings& given, const Task& task, int samples, Model& model, Ops& ops) {
  const RunSettings& settings = given.settings;
  Optimizer unused(model.parameters, ops, {});
  Trainer trainer(model, task, unused, ops, settings.seed, settings.batch, 1);
  Progress progress(0, samples, {settings.quiet, "window", MOSTLY_SHORT});
  Measures measures;
  ops.run([&] { measures = trainer.evaluate(task, 0, samples, 0, &progress).value(); });
  if (!std::isfinite(measures.loss))
    throw Error(given.evaluate + ": the loss is " + number_text(measures.loss, 3) + ": its weights are too large");
  return measures;
}

}  // namespace

// Whole windows, and the rest of the text as a shorter one, unless the model reads windows of one length or fewer
// windows are evaluated than there are.
void evaluate_checkpoint(const TextRunSettings& given) {
  const TextSource& source = given.source;
  const RunSettings& settings = given.settings;
  const std::string& name = source.data;
  if (name.empty()) throw UsageError("--evaluate: expected the text to evaluate on (--data FILE)");
  const SafetensorsFile file(checkpoint_path(given.evaluate));
  const RunState state = read_run_state(file);
  std::unique_ptr<Tokenizer> tokenizer = load_tokenizer(file, state);
  if (source.replace) {
    check_replaces(*tokenizer);
    tokenizer = replacing(std::move(tokenizer));
  }
  const std::shared_ptr<const Corpus> whole = open_corpus(name, *tokenizer, source.format);
  const auto ops = make_device(settings.device, settings.threads);
  const auto model = load_model(file, state, *ops);
  const Json* const readout = state.config.find("readout");
  const bool once = model->window() > 0 || (readout && readout->string() == "last");  // one answer per window
  const int learned = learned_context(state);
  const int context = given.options.given("context") ? given.context
                      : model->window() > 0          ? model->window()
                                                     : std::min(model->longest(), learned > 0 ? learned : 1024);
  const int64_t targets = whole->size() - 1, windows = targets / context, tail = once ? 0 : targets % context;
  const int64_t most = given.options.given("eval-samples") ? settings.eval_samples : int64_t(1) << 24;
  const int64_t samples = std::min(most, windows);
  Measures sum;
  double characters = 0, scored = 0;
  const auto add = [&](const std::shared_ptr<const Corpus>& part, int length, int64_t count) {
    const LanguageModeling task(part, name, part, name, length, settings.batch, once ? Targets::LAST : Targets::ALL);
    const Measures measures = measure(given, task, static_cast<int>(count), *model, *ops);
    const double tokens = static_cast<double>(count) * (once ? 1 : length);
    sum.loss += measures.loss * tokens;
    sum.accuracy += measures.accuracy * tokens;
    characters += characters_a_target(task, *tokenizer, settings.seed, static_cast<int>(count)) * tokens;
    scored += tokens;
  };
  if (windows > 0 || tail <= 0) add(whole, context, samples);
  if (samples == windows && tail > 0)
    add(std::make_shared<CorpusPart>(whole, windows * context, whole->size()), static_cast<int>(tail), 1);
  print("%s, step %s, on %s: windows of %s, %s scored\n%s\n", state.model.c_str(), with_commas(state.step).c_str(),
        name.c_str(), with_commas(context).c_str(), counted(static_cast<int64_t>(scored), "token").c_str(),
        text_measures({sum.loss / scored, sum.accuracy / scored}, characters / scored).c_str());
}

}  // namespace petroglyph
