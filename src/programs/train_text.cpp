// Trains a sequence model on text: characters, bytes or byte pairs. Appendix B of "An All-MLP Sequence Modeling Architecture
// That Excels at Copying", section 4.3 of "Linear-Time Sequence Modeling with MLPs", and "MLPs for NLP".

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "generation/generator.h"
#include "math/random.h"
#include "tasks/language_modeling.h"
#include "train/compare.h"
#include "train/device.h"
#include "train/model_options.h"
#include "train/run.h"
#include "train/text_checkpoint.h"
#include "train/text_source.h"

namespace petroglyph {
namespace {

struct TextSettings {
  TextSource source;
  std::string preset = "small", prompt, compare, evaluate;
  int context = 128, sample_length = 160, length_windows = 256;
  int64_t epochs = 0;
  std::vector<int> lengths;

  void declare(Options& options) {
    options.section("Text");
    source.declare(options);
    options.add("context", &context, 1, 1 << 24, "tokens of a window");
    options.add("epochs", &epochs, 0, 1 << 20, "times through the text, in place of --steps; 0: --steps counts");
    options.add("evaluate-lengths", &lengths, 1, 1 << 24,
                "perplexity of the last token of windows of these lengths, after training: lengths.csv, lengths.svg");
    options.add("length-windows", &length_windows, 1, 1 << 24, "windows of each such length");
    options
        .add("evaluate", &evaluate,
             "trains nothing: the loss of this checkpoint or run on all of --data, with its own sizes and tokenizer")
        .placeholder("FILE")
        .may_change();
    options.add("prompt", &prompt, "what samples go on from; default a new line");
    options.add("sample-length", &sample_length, 0, 1 << 20, "tokens of the sample at an evaluation").may_change();
    options
        .add("compare", &compare,
             "trains variants in turn on the same windows: models or options, as in mamba,transformer:position=alibi")
        .placeholder("LIST")
        .may_change();
  }
};

constexpr size_t STORY_BYTES = 4 << 20;  // more than a default run reads

// A preset's sizes. tiny and base: linear-time paper, appendix B; small: enough for two cores to learn something in two minutes.
struct Preset {
  const char* name;
  // hidden 0: the model's own. heads: of models with attention or windows; where hidden is given, of the relation networks too
  int width, hidden, layers, heads, context, batch;
  double learning_rate;
};
constexpr Preset PRESETS[] = {
    {"small", 128, 0, 4, 4, 128, 16, 2e-3},
    {"tiny", 192, 0, 12, 1, 256, 320, 5e-4},
    {"base", 768, 3072, 12, 12, 256, 320, 1e-4},
};

// The same of models that answer once a window: "MLPs for NLP", appendix B; the Transformer in GPT-2's style. base: the paper's.
struct WindowPreset {
  const char* name;
  int embedding, width, layers, heads, context, batch;  // width: of mlp_lm; a transformer's is the embedding
  double learning_rate;
};
constexpr WindowPreset WINDOW_PRESETS[] = {
    {"small", 64, 512, 2, 4, 15, 256, 2e-3},
    {"tiny", 128, 2048, 2, 8, 15, 1024, 1e-3},
    {"base", 512, 16384, 2, 16, 15, 16384, 1e-3},
};

// Windows of which the last target alone counts: the same targets, evenly over a text, with more or less of what comes before them,
// so that one length is compared with another on the same tokens.
class LastToken final : public Task {
 public:
  // Before the first target stand `longest` tokens. Throws Error where the text has fewer.
  LastToken(const Corpus& text, const std::string& name, int length, int longest, int windows)
      : text_(text), length_(length), longest_(longest), windows_(windows) {
    if (text.size() <= longest)
      throw Error(petroglyph::text("%s: %s tokens are less than a window of %d and its next token", name.c_str(),
                                   with_commas(text.size()).c_str(), longest));
  }
  // As many as are wanted, if the text has as many different ones.
  int windows() const { return static_cast<int>(std::min<int64_t>(windows_, text_.size() - longest_)); }

  Batch batch(uint64_t, uint32_t, uint32_t, int first, int count) const override {
    const int64_t places = text_.size() - longest_;
    Batch batch;
    batch.size = batch.counted = count;
    batch.length = length_;
    std::vector<int32_t> window(static_cast<size_t>(length_) + 1);
    for (int sample = first; sample < first + count; ++sample) {
      text_.read(longest_ - length_ + sample * places / windows(), length_ + 1, window.data());
      batch.tokens.insert(batch.tokens.end(), window.begin(), window.end() - 1);
      batch.targets.insert(batch.targets.end(), static_cast<size_t>(length_) - 1, -1);
      batch.targets.push_back(window.back());
    }
    return batch;
  }

 private:
  const Corpus& text_;
  int length_, longest_, windows_;
};

// One run and all its settings, from the words of a command line.
struct Session {
  Options options{"train_text", "Trains a sequence model on text, then lets it write."};
  TextSettings text_settings;
  ModelOptions model;
  RunSettings settings;
  OpenText opened;
  std::optional<LanguageModeling> task;
  std::optional<Run> run;
  double characters_a_token = 1;

  explicit Session(const std::vector<std::string>& words) {
    settings.program = "train_text";
    settings.steps = 1000;
    settings.stop_at = 2;
    settings.eval_every = 100;
    settings.schedule = "cosine";
    model.model = "transformer";
    settings.rate.floor = 1e-5;
    show_defaults(PRESETS[0]);
    text_settings.declare(options);
    options.add(
        "preset", &text_settings.preset, {"small", "tiny", "base"},
        "width, hidden, layers, heads, context, batch and lr where they are not given; shown here: small, whose "
        "transformers have 4 heads. Models that answer once a window have sizes of their own");
    model.declare(options, {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "mamba", "mlp_lm",
                            "dct_mlp", "rnn", "regular_gpt"});
    settings.declare(options);
    options.parse(words);
    std::optional<RunState> initial;
    if (!settings.init.empty() && !settings.resume) initial = initial_state();
    if (initial) model.model = initial->model;
    if (text_settings.epochs > 0 && options.given("epochs") && options.given("steps"))
      throw UsageError("--epochs " + options.value("epochs") + ": in place of --steps; expected one of the two");
    apply_preset();
    model.set_defaults();
    if (initial) adopt(*initial);
    if (model.answers_once() && !text_settings.lengths.empty())
      throw UsageError(
          "--evaluate-lengths: a model that answers once reads windows of its --context and of no other length");
  }

  // In --help.
  void show_defaults(const Preset& preset) {
    model.width = preset.width;
    model.layers = preset.layers;
    text_settings.context = preset.context;
    settings.batch = preset.batch;
    settings.rate.peak = preset.learning_rate;
  }
  std::optional<RunState> initial_state() const;
  void adopt(const RunState& initial);
  void apply_preset();
  void open_text();
  void prepare();
  int evaluate_checkpoint();
  void count_characters(int samples);
  std::string describe(const Measures& measures) const;
  // Trained as that paper's appendix B says: a tenth of the steps warms up, and weights decay by 0.1.
  bool mlps_for_nlp() const { return model.answers_once() || model.model == "dct_mlp"; }
  std::vector<std::string> sample();
  LengthTable length_table();
  LastToken last_token(int length) const {
    return LastToken(*opened.validation, "the text for evaluations", length, longest_length(),
                     text_settings.length_windows);
  }
  int longest_length() const {  // of --evaluate-lengths
    const std::vector<int>& lengths = text_settings.lengths;
    return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  }
  void show() {
    if (!text_settings.lengths.empty()) write_lengths(run->folder(), length_table());
  }
  const std::string& compared() const { return text_settings.compare; }
  std::string title() const {
    return "Text: " + (text_settings.source.data.empty() ? "stories" : text_settings.source.data);
  }
};

void Session::apply_preset() {
  const auto set = [&](const char* option, auto& value, auto to) {
    if (!options.given(option)) value = to;
  };
  for (const Preset& preset : PRESETS) {
    if (text_settings.preset != preset.name) continue;
    set("width", model.width, preset.width);
    set("hidden", model.hidden, preset.hidden);
    set("layers", model.layers, preset.layers);
    if (preset.hidden > 0 || model.has_mlp()) set("heads", model.heads, preset.heads);
    set("context", text_settings.context, preset.context);
    set("batch", settings.batch, preset.batch);
    set("lr", settings.rate.peak, preset.learning_rate);
  }
  for (const WindowPreset& preset : WINDOW_PRESETS) {
    if (!model.answers_once() || text_settings.preset != preset.name) continue;
    set("embedding", model.embedding, preset.embedding);
    set("width", model.width, model.model == "mlp_lm" ? preset.width : preset.embedding);
    set("layers", model.layers, preset.layers);
    set("heads", model.heads, preset.heads);
    set("norm", model.norm, "affine");
    set("gelu", model.gelu, "tanh");
    set("embedding-deviation", model.embedding_deviation, 0.02);
    set("context", text_settings.context, preset.context);
    set("batch", settings.batch, preset.batch);
    set("lr", settings.rate.peak, preset.learning_rate);
  }
  if (mlps_for_nlp()) set("weight-decay", settings.adamw.weight_decay, 0.1);
}

// What the file of --init says of itself, where that is a checkpoint of a model of text and no other model was asked for.
std::optional<RunState> Session::initial_state() const {
  const SafetensorsFile file(settings.init);
  if (!is_checkpoint(file)) return {};
  RunState state = read_run_state(file);
  const bool of_text = !state.data.is(Json::Kind::Null) && state.data.find("tokenizer");
  if (!of_text || (options.given("model") && model.model != state.model)) return {};
  return state;
}

// Sizes and positions are the file's, and the tokenizer too, unless they are given. What was learned is changed in small steps.
void Session::adopt(const RunState& initial) {
  model.adopt(initial.model, initial.config, options, settings.init);
  if (!options.given("tokenizer")) text_settings.source.tokenizer = settings.init;
  if (!options.given("lr")) settings.rate.peak = 1e-4;
  if (!options.given("context") && model.positions > 0)
    text_settings.context = model.answers_once() ? model.positions : std::min(text_settings.context, model.positions);
  if (model.answers_once()) model.positions = 0;  // its windows have one length
}

void Session::open_text() {
  TextSettings& t = text_settings;
  TextSource source = t.source;
  if (settings.resume) source.tokenizer = run->file("model.safetensors");
  opened = open_text_source(source, STORY_BYTES);
  const int64_t a_step = static_cast<int64_t>(settings.batch) * settings.accumulate;
  task.emplace(opened.training, t.source.name(), opened.validation, t.source.validation_name(), t.context, a_step,
               model.answers_once() ? Targets::LAST : Targets::ALL);
  opened.tokenizer->check(t.prompt, "--prompt");
  if (t.epochs > 0 && !settings.resume) settings.steps = (t.epochs * task->training_windows() + a_step - 1) / a_step;
  if (mlps_for_nlp() && !options.given("warmup") && !settings.resume) settings.rate.warmup = settings.steps / 10;
}

// A resumed run's options, the text among them, come from its checkpoint.
void Session::prepare() {
  if (!settings.resume) open_text();
  run.emplace(settings, options, "text");
  if (settings.resume) open_text();
  const int longest = std::max(text_settings.context, longest_length());
  if (longest_length() > 0) last_token(longest_length());  // whether the text is long enough shows before the training
  RunExtras extras;
  extras.describe = [this](const Measures& measures) { return describe(measures); };
  if (text_settings.sample_length > 0) extras.after_evaluation = [this] { return sample(); };
  extras.keep_best = true;
  extras.data = Json::object().set("tokenizer", opened.tokenizer->to_json());
  run->prepare(model.model, model.config(opened.tokenizer->vocab(), longest), *task, extras);
  count_characters(run->eval_samples());
  if (settings.quiet) return;
  std::printf("%s tokens to learn from, %s to evaluate; %s; %s windows of %d an epoch\n",
              with_commas(opened.training->size()).c_str(), with_commas(opened.validation->size()).c_str(),
              opened.tokenizer->name().c_str(), with_commas(task->training_windows()).c_str(), text_settings.context);
  if (opened.training->replaced() > 0)
    std::printf("replaced %s characters by '?'\n", with_commas(opened.training->replaced()).c_str());
}

// Of the targets of so many evaluated samples.
void Session::count_characters(int samples) {
  const Batch evaluated = task->batch(settings.seed, stream_of("evaluate"), 0, 0, samples);
  int64_t characters = 0;
  for (const int32_t token : evaluated.targets) characters += opened.tokenizer->characters(token);
  characters_a_token = static_cast<double>(characters) / static_cast<double>(evaluated.counted);
}

// The checkpoint of --evaluate on all of --data, in windows as long as those of its training, or as its model reads.
int Session::evaluate_checkpoint() {
  const TextSettings& t = text_settings;
  if (t.source.data.empty()) throw UsageError("--evaluate: on which text? (--data FILE)");
  const SafetensorsFile file(checkpoint_path(t.evaluate));
  const RunState state = read_run_state(file);
  opened.tokenizer = load_tokenizer(file, state);
  opened.training = opened.validation = open_corpus(t.source.data, *opened.tokenizer, token_format(t.source.format));
  const auto ops = make_device(settings.device, settings.threads);
  const auto trained = load_model(file, state, *ops);
  const Json *readout = state.config.find("readout"), *learned = state.options.find("context");
  const bool once = trained->window() > 0 || (readout && readout->string() == "last");
  int context = std::min(trained->longest(), learned ? static_cast<int>(learned->integer()) : 1024);
  if (options.given("context")) context = t.context;
  if (trained->window() > 0) context = trained->window();
  task.emplace(opened.training, t.source.data, opened.validation, t.source.data, context, settings.batch,
               once ? Targets::LAST : Targets::ALL);
  const int64_t most = options.given("eval-samples") ? settings.eval_samples : int64_t(1) << 24;
  const int samples = static_cast<int>(std::min(most, task->evaluation_samples()));
  count_characters(samples);
  Optimizer unused(trained->parameters, *ops, {});
  Trainer trainer(*trained, *task, unused, *ops, settings.seed, settings.batch, 1);
  const Measures measures = trainer.evaluate(*task, 0, samples);
  std::printf("%s, step %s, on %s: %s windows of %d tokens\n%s\n", state.model.c_str(), with_commas(state.step).c_str(),
              t.source.data.c_str(), with_commas(samples).c_str(), context, describe(measures).c_str());
  return 0;
}

std::string Session::describe(const Measures& measures) const {
  return text("validation loss %.4f  perplexity %.2f  %.3f bits/character  accuracy %.1f %%", measures.loss,
              std::exp(measures.loss), measures.loss / std::log(2.0) / characters_a_token, 100 * measures.accuracy);
}

std::vector<std::string> Session::sample() {
  const bool given = !text_settings.prompt.empty();
  std::vector<int32_t> tokens = prompt_tokens(*opened.tokenizer, given ? text_settings.prompt : "\n", run->model()),
                       shown;
  if (given) opened.tokenizer->encode(text_settings.prompt, shown);
  const size_t prompt = tokens.size() - shown.size();  // what nobody gave is not shown
  Generator generator(run->model(), run->ops(), *opened.tokenizer, {}, settings.seed, 0,
                      static_cast<int64_t>(tokens.size()) + text_settings.sample_length);
  generator.read(tokens);
  for (int i = 0; i < text_settings.sample_length; ++i) tokens.push_back(generator.next());
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(prompt));
  std::vector<std::string> lines = split(opened.tokenizer->decode(tokens), '\n');
  for (std::string& line : lines) line.insert(0, "  | ");
  return lines;
}

LengthTable Session::length_table() {
  std::vector<double> perplexity;
  for (const int length : text_settings.lengths) {
    const LastToken last = last_token(length);
    perplexity.push_back(std::exp(run->evaluate(last, last.windows(), double(length) / text_settings.context).loss));
  }
  return {title(), "perplexity of the last token", "tokens", false, text_settings.lengths, {model.model}, {perplexity}};
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  return run_ranks("train_text", [&](const auto& ranks) {
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    const bool evaluate = std::any_of(words.begin(), words.end(), [](const std::string& word) {
      return word == "--evaluate" || word.rfind("--evaluate=", 0) == 0;
    });
    if (!evaluate) return train_or_compare<Session>(argc, argv, ranks);
    return ranks->first() ? Session(words).evaluate_checkpoint() : 0;
  });
}
