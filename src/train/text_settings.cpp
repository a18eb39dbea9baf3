#include "train/text_settings.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "train/compare.h"
#include "train/text_checkpoint.h"

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

void TextRunSettings::declare() {
  options.section("Text");
  source.declare(options);
  options.add("context", &context, 1, 1 << 24, "tokens of a window");
  options.add("epochs", &epochs, 0, 1 << 20, "times through the text, in place of --steps; 0: --steps counts");
  options.add("evaluate-lengths", &lengths, 1, 1 << 24,
              "perplexity of the last token of windows of these lengths, after training: lengths.csv, lengths.svg");
  options.add("length-windows", &length_windows, 1, 1 << 24, "windows of each such length").always();
  options
      .add("evaluate", &evaluate, "FILE",
           "trains nothing: the loss of this checkpoint or run on all of --data, with its own sizes and tokenizer")
      .not_saved();
  options.add("keep-best", &keep_best, "keep the checkpoint of the lowest validation loss, best.safetensors").always();
  options.add("sample-length", &sample_length, 0, 1 << 20, "tokens of the sample at an evaluation").not_saved();
}

int TextRunSettings::longest_length() const {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

TextRunSettings::TextRunSettings(const std::vector<std::string>& words) {
  parse(words);
  if (!settings.init.empty() && !settings.resume)
    initial = read_run_state(SafetensorsFile(checkpoint_path(settings.init)));
  if (initial) adopt_model();
  apply_preset();
  model.set_defaults();
  if (initial) adopt_text();
  if (model.answers_once() && !lengths.empty())
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
  declare();
  declare_compare(options, settings, "mamba,transformer:position=alibi");
  options.add(
      "preset", &preset, {"small", "tiny", "base"},
      "width, hidden, layers, heads, context, batch and lr where they are not given; shown here: small, whose "
      "transformers have 4 heads. tiny and base: the papers' sizes; tiny takes up to 9 GB of memory, "
      "a tenth of that with --batch 32 --accumulate 10. Models with one answer per window, mlp_lm and --readout last, "
      "have sizes of their own (small: 64 channels, a context of 15, a batch of 256), affine norms, GPT-2's gelu and "
      "embeddings of deviation 0.02; they and dct_mlp a weight decay of 0.1 and a warm-up of a tenth of --steps");
  model.declare(options, {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "mamba", "mlp_lm",
                          "dct_mlp", "rnn", "regular_gpt"});
  settings.declare(options);
  ModelOptions::refuse_beside_init(options);
  options.only_with("steps", "epochs", {"0"});
  options.set_defaults(PRESETS.at("small"));  // what --help shows
  options.parse(words);
  options.only_beside("evaluate",
                      {"data", "format", "replace", "context", "batch", "eval-samples", "device", "threads", "quiet"});
}

void TextRunSettings::apply_preset() {
  options.set_defaults(PRESETS.at(preset));
  if (preset == "small" && model.has_mlp()) options.set_defaults("heads=4");
  if (mlps_for_nlp()) options.set_defaults("weight-decay=0.1");
  if (!model.answers_once()) return;
  options.set_defaults(WINDOW_PRESETS.at(preset));
  options.set_defaults("norm=affine gelu=tanh embedding-deviation=0.02");
  if (model.model != "mlp_lm") options.set_defaults("width=" + options.value("embedding"));
}

void TextRunSettings::adopt_model() {
  const bool has_tokenizer = !initial->data.is(Json::Kind::Null) && initial->data.find("tokenizer");
  if (!has_tokenizer && !options.given("tokenizer"))
    throw Error(settings.init + ": a checkpoint of " + initial->program +
                " without a tokenizer: expected --tokenizer, the one that its tokens belong to");
  model.model = initial->model;
  const Json* const readout = initial->config.find("readout");
  if (readout && readout->is(Json::Kind::String)) model.readout = readout->string();
}

// Tokenizer and windows are the file's unless they are given; the learning rate is small, as for fine-tuning.
void TextRunSettings::adopt_text() {
  if (!options.given("tokenizer")) source.tokenizer = checkpoint_path(settings.init);
  if (!options.given("lr")) settings.rate.peak = 1e-4;
  const Json* const positions = initial->config.find("context");
  if (options.given("context") || !positions || !positions->is(Json::Kind::Number)) return;
  const int most = static_cast<int>(std::clamp(positions->number(), 1.0, double(1 << 24)));
  context = model.answers_once() ? most : std::min(context, most);
}

Json TextRunSettings::config(int tokens) const {
  const int longest = std::max(context, longest_length());
  if (!initial) return model.config(tokens, longest);
  check_vocabulary(*initial, tokens, settings.init);
  Json config = initial->config;
  const Json* const positions = config.find("context");
  if (positions && positions->is(Json::Kind::Number) && positions->number() < longest) config.set("context", longest);
  return config;
}

}  // namespace petroglyph
