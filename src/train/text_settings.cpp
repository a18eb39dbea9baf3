#include "train/text_settings.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace petroglyph {

namespace {

// What --preset sets. small: enough for two cores to learn something in two minutes. tiny, base: linear-time paper,
// appendix B.
const std::map<std::string, std::string> PRESETS = {
    {"small", "width=128 layers=4 context=128 batch=16 lr=2e-3"},
    {"tiny", "width=192 layers=12 context=256 batch=320 lr=5e-4"},
    {"base", "width=768 hidden=3072 layers=12 heads=12 context=256 batch=320 lr=1e-4"},
};

// The same for models with one answer per window, the Transformer in GPT-2's style. base: "MLPs for NLP", appendix B.
const std::map<std::string, std::string> WINDOW_PRESETS = {
    {"small", "embedding=64 width=512 layers=2 heads=4 context=15 batch=256 lr=2e-3"},
    {"tiny", "embedding=128 width=2048 layers=2 heads=8 context=15 batch=1024 lr=1e-3"},
    {"base", "embedding=512 width=16384 hidden=8192 layers=2 heads=16 context=15 batch=16384 lr=1e-3"},
};

}  // namespace

void TextSettings::declare(Options& options) {
  options.section("Text");
  source.declare(options, true);
  options.add("context", &context, 1, 1 << 24, "tokens of a window");
  options.add("epochs", &epochs, 0, 1 << 20, "times through the text, in place of --steps; 0: --steps counts");
  options.add(
      "evaluate-lengths", &lengths, 1, 1 << 24,
      "perplexity of the last token of windows of these lengths, after training: lengths.csv, lengths.svg; with "
      "--evaluate: of that checkpoint");
  options.add("length-windows", &length_windows, 1, 1 << 24, "windows of each such length").always();
  options
      .add("evaluate", &evaluate,
           "trains nothing: the loss of this checkpoint or run on all of --data, with its own sizes and tokenizer")
      .placeholder("FILE")
      .always()
      .not_saved();
  options.add("prompt", &prompt, "text that samples continue; default: a new line");
  options.add("keep-best", &keep_best, "keep the checkpoint of the lowest validation loss, best.safetensors").always();
  options.add("sample-length", &sample_length, 0, 1 << 20, "tokens of the sample at an evaluation")
      .always()
      .not_saved();
  options
      .add("compare", &compare,
           "trains variants in turn on the same windows: models or options, as in mamba,transformer:position=alibi")
      .placeholder("LIST")
      .always()
      .not_saved();
}

int TextSettings::longest_length() const {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

TextRunSettings::TextRunSettings(const std::vector<std::string>& words) {
  parse(words);
  std::optional<RunState> initial;
  if (!settings.init.empty() && !settings.resume) initial = initial_state();
  if (initial) model.model = initial->model;
  if (text_settings.epochs > 0 && options.given("epochs") && options.given("steps"))
    throw UsageError("--epochs " + options.value("epochs") + ": in place of --steps; expected one of the two");
  apply_preset();
  model.set_defaults();
  if (initial) adopt(*initial);
  const int longest = std::max(text_settings.context, text_settings.longest_length());
  if (options.given("positions") && model.positions > 0 && model.positions < longest)
    throw UsageError("--positions " + options.value("positions") + ": windows of " + std::to_string(longest) +
                     " tokens need as many; expected these or more, or 0");
  if (options.given("positions") && model.model == "mlp_lm" && model.positions > text_settings.context)
    throw UsageError("--positions " + options.value("positions") + ": mlp_lm reads windows of --context " +
                     std::to_string(text_settings.context) + " and of no other length");
  if (model.answers_once() && !text_settings.lengths.empty())
    throw UsageError("--evaluate-lengths: a model with one answer per window reads windows of --context tokens only");
}

void TextRunSettings::parse(const std::vector<std::string>& words) {
  settings.program = "train_text";
  settings.steps = 1000;
  settings.stop_at = 2;
  settings.eval_every = 100;
  settings.schedule = "cosine";
  model.model = "transformer";
  settings.rate.floor = 1e-5;
  text_settings.declare(options);
  options.add(
      "preset", &text_settings.preset, {"small", "tiny", "base"},
      "width, hidden, layers, heads, context, batch and lr where they are not given; shown here: small, whose "
      "transformers have 4 heads. tiny and base: the papers' sizes; tiny takes up to 9 GB of memory, "
      "a tenth of that with --batch 32 --accumulate 10. Models with one answer per window, mlp_lm and --readout last, "
      "have sizes of their own (small: 64 channels, a context of 15, a batch of 256), affine norms, GPT-2's gelu and "
      "embeddings of deviation 0.02; they and dct_mlp a weight decay of 0.1 and a warm-up of a tenth of --steps");
  model.declare(options, {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "mamba", "mlp_lm",
                          "dct_mlp", "rnn", "regular_gpt"});
  settings.declare(options);
  options.set_defaults(PRESETS.at("small"));  // what --help shows
  options.parse(words);
  if (!settings.resume) {
    text_settings.source.check(options);
    check_lengths();
    if (!text_settings.prompt.empty() && text_settings.sample_length == 0)
      throw UsageError("--prompt: does nothing with --sample-length 0");
  }
  options.only_beside("evaluate", {"data", "format", "replace", "context", "batch", "eval-samples", "evaluate-lengths",
                                   "length-windows", "device", "threads", "quiet"});
}

void TextRunSettings::check_lengths() const {
  if (options.given("length-windows") && text_settings.lengths.empty())
    throw UsageError("--length-windows " + options.value("length-windows") +
                     ": does nothing without --evaluate-lengths");
}

void TextRunSettings::apply_preset() {
  const std::string& preset = text_settings.preset;
  options.set_defaults(PRESETS.at(preset));
  if (preset == "small" && model.has_mlp()) options.set_defaults("heads=4");
  if (mlps_for_nlp()) options.set_defaults("weight-decay=0.1");
  if (!model.answers_once()) return;
  options.set_defaults(WINDOW_PRESETS.at(preset));
  options.set_defaults("norm=affine gelu=tanh embedding-deviation=0.02");
  if (model.model != "mlp_lm") options.set_defaults("width=" + options.value("embedding"));
}

// The state in --init's file, if that is a checkpoint and --model names no other model.
std::optional<RunState> TextRunSettings::initial_state() const {
  const SafetensorsFile file(checkpoint_path(settings.init));
  if (!is_checkpoint(file)) return {};
  RunState state = read_run_state(file);
  const bool has_tokenizer = !state.data.is(Json::Kind::Null) && state.data.find("tokenizer");
  if (!has_tokenizer && !options.given("tokenizer"))
    throw Error(settings.init + ": a checkpoint of " + state.program +
                " without a tokenizer: expected --tokenizer, the one that its tokens belong to");
  if (options.given("model") && model.model != state.model) return {};
  return state;
}

// Sizes, positions and tokenizer are the file's unless they are given; the learning rate is small, as for fine-tuning.
void TextRunSettings::adopt(const RunState& initial) {
  model.adopt(initial.model, initial.config, options, settings.init);
  if (!options.given("tokenizer")) text_settings.source.tokenizer = checkpoint_path(settings.init);
  if (!options.given("lr")) settings.rate.peak = 1e-4;
  if (!options.given("context") && model.positions > 0)
    text_settings.context = model.answers_once() ? model.positions : std::min(text_settings.context, model.positions);
  if (model.answers_once()) model.positions = 0;  // its windows have one length
}

}  // namespace petroglyph
