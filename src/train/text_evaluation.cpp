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
  return text("validation loss %.4f  perplexity %.2f  %.3f bits/character  accuracy %.1f %%", measures.loss,
              std::exp(measures.loss), measures.loss / std::log(2.0) / characters_a_token, 100 * measures.accuracy);
}

namespace {

// Tokens of a window.
int context_of(const TextRunSettings& given, const RunState& state, const Model& model) {
  if (model.window() > 0) return model.window();
  if (given.options.given("context")) return given.text_settings.context;
  const int learned = learned_context(state);
  return std::min(model.longest(), learned > 0 ? learned : 1024);
}

}  // namespace

void evaluate_checkpoint(const TextRunSettings& given) {
  const TextSource& source = given.text_settings.source;
  const RunSettings& settings = given.settings;
  if (source.data.empty()) throw UsageError("--evaluate: on which text? (--data FILE)");
  const SafetensorsFile file(checkpoint_path(given.text_settings.evaluate));
  const RunState state = read_run_state(file);
  auto tokenizer = load_tokenizer(file, state);
  if (source.replace) tokenizer = replacing(std::move(tokenizer));
  const std::shared_ptr<const Corpus> text = open_corpus(source.data, *tokenizer, token_format(source.format));
  const auto ops = make_device(settings.device, settings.threads);
  const auto model = load_model(file, state, *ops);
  const Json* const readout = state.config.find("readout");
  const bool once = model->window() > 0 || (readout && readout->string() == "last");
  const int context = context_of(given, state, *model);
  const LanguageModeling task(text, source.data, text, source.data, context, settings.batch,
                              once ? Targets::LAST : Targets::ALL);
  const int64_t most = given.options.given("eval-samples") ? settings.eval_samples : int64_t(1) << 24;
  const int samples = static_cast<int>(std::min(most, task.evaluation_samples()));
  Optimizer unused(model->parameters, *ops, {});
  Trainer trainer(*model, task, unused, *ops, settings.seed, settings.batch, 1);
  Progress progress(0, samples, after_a_while(settings.quiet, "window"));
  const Measures measures = trainer.evaluate(task, 0, samples, 0, &progress).value();
  progress.finish();
  std::printf("%s, step %s, on %s: %s of %s\n%s\n", state.model.c_str(), with_commas(state.step).c_str(),
              source.data.c_str(), counted(samples, "window").c_str(), counted(context, "token").c_str(),
              text_measures(measures, characters_a_target(task, *tokenizer, settings.seed, samples)).c_str());
}

}  // namespace petroglyph
