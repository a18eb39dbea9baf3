// inspect positions: how the outputs of models without positional encodings depend on the order of their inputs. It
// answers the five questions of "Why Are Positional Encodings Nonessential for Deep Autoregressive Transformers?" for
// models with random weights and for the same models after training on text. It also draws the attention maps of one
// of them.

#include <cmath>
#include <cstdio>
#include <optional>

#include "analysis/inspection.h"
#include "analysis/order.h"
#include "base/checksum.h"
#include "base/progress.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"
#include "tasks/corpus.h"
#include "tasks/language_modeling.h"
#include "tasks/stories.h"
#include "tokenizers/characters.h"
#include "train/device.h"
#include "train/run.h"
#include "train/run_folder.h"

namespace petroglyph {

namespace {

constexpr int WIDTH = 64, HEADS = 4;
constexpr int LENGTH = 48;      // tokens of a sequence
constexpr int BATCH = 16;       // windows of a training step
constexpr int EVALUATED = 256;  // windows
constexpr int LOOKED_AT = 64;   // windows, for question 4
constexpr int VOCAB = 128;      // ASCII

struct PositionSettings {
  int trials = 20, steps = 300, threads = 0;
  uint64_t seed = 1;
  std::string device = "auto", name;

  void declare(Options& options) {
    options.add("seed", &seed, 0, LARGEST_SEED, "weights and sequences");
    options.add("trials", &trials, 1, 1 << 20, "sequences, each with a permutation");
    options.add("steps", &steps, 1, 1 << 30, "training steps before the questions are asked again");
    options.add("name", &name, "NAME", "the folder runs/NAME; default: the first free one");
    options.add_device(&device, &threads);
  }
};

struct Subject {
  const char* model;
  bool causal;
  int layers;
  const char* position;
  const char* question;
};

constexpr Subject SUBJECTS[] = {
    {"transformer", false, 1, "none", "question 1"},      {"transformer", false, 2, "none", "question 1"},
    {"transformer", false, 2, "learned", "question 1"},   {"transformer", true, 1, "none", "questions 2 and 5"},
    {"transformer", true, 1, "learned", "question 5"},    {"transformer", true, 2, "none", "questions 3 and 4"},
    {"transformer", true, 4, "none", "question 3"},       {"linear_transformer", false, 2, "none", "section 4"},
    {"linear_transformer", true, 1, "none", "section 4"}, {"linear_transformer", true, 2, "none", "section 4"},
};

// Distances below this fraction of the outputs' norm count as rounding: float has 6e-8, and a few layers accumulate
// some.
constexpr double ROUNDING = 1e-5;

std::string verdict(const OrderSensitivity& s) {
  if (s.moved < ROUNDING) return "sees a set";
  if (s.last < ROUNDING) return "sees a set at the last position";
  return s.later > ROUNDING ? "sees a sequence at every position" : "sees a sequence, not at every position";
}

class Positions {
 public:
  explicit Positions(const PositionSettings& settings)
      : settings_(settings), ops_(make_device(settings.device, settings.threads)) {
    const AsciiTokenizer tokenizer(false);
    const std::string text = tell_stories(settings.seed, stream_of("text"), 1 << 20);
    const std::shared_ptr<const Corpus> all = encode_corpus(text, "the stories", tokenizer);
    const int64_t half = all->size() / 2;
    task_.emplace(std::make_shared<CorpusPart>(all, 0, half), "the stories",
                  std::make_shared<CorpusPart>(all, half, all->size()), "the stories", LENGTH, BATCH);
  }

  void run() {
    if (!settings_.name.empty()) check_run_name(settings_.name);
    if (!settings_.name.empty()) check_new_run("runs/" + settings_.name);
    print(
        "Distances between outputs, relative to their norm, over %s of %d different characters:\n"
        "  moved  all tokens but the last permuted, and the outputs permuted back: the largest\n"
        "  last   the same, the output at the last position: the largest\n"
        "  later  the same, the outputs from the first change on: the smallest\n"
        "behind a trained one its perplexity on %d windows of other text\n\n",
        counted(settings_.trials, "sequence").c_str(), LENGTH, EVALUATED);
    print("%-19s %-7s %6s %-8s %-8s %9s %9s %9s\n", "model", "causal", "layers", "position", "weights", "moved", "last",
          "later");
    flush_output();  // each row takes seconds
    for (const Subject& subject : SUBJECTS) ask(subject);
    attention_.insert(attention_.begin(), {"positions.csv", csv_});
    save_files("runs/" + (settings_.name.empty() ? free_run_name("positions") : settings_.name), attention_);
    print("weights %s\n", trained_.hex().c_str());
  }

 private:
  void ask(const Subject& subject);
  void measure(Model& model, const Subject& subject, const char* weights, const std::string& perplexity = "");
  double learn(Model& model);
  void answer_question_4(Model& model, int layers);

  const PositionSettings& settings_;
  std::unique_ptr<Ops> ops_;
  std::optional<LanguageModeling> task_;
  std::string csv_ = "model,causal,layers,position,weights,moved,last,later,perplexity\n";
  std::vector<std::pair<std::string, std::string>> attention_;  // its files
  Checksum trained_;                                            // of the weights of all trained models
};

Json config_of(const Subject& s) {
  Json json = Json::object();
  json.set("vocab", VOCAB).set("context", LENGTH).set("width", WIDTH).set("hidden", 4 * WIDTH);
  json.set("layers", s.layers).set("heads", HEADS).set("causal", s.causal);
  json.set("position", s.position).set("norm", "plain").set("qkv_bias", true).set("out_bias", true);
  json.set("gelu", "erf").set("readout", "all");
  if (std::string(s.model) == "linear_transformer") json.set("feature_map", "elu1").set("normalized", true);
  return json;
}

void Positions::ask(const Subject& subject) {
  const auto model = make_model(subject.model, config_of(subject), *ops_);
  Parameters& parameters = model->parameters;
  // The usual initial values are so small that the outputs would hardly depend on the inputs. With these weights,
  // activations keep their size from layer to layer.
  std::vector<real> weights(static_cast<size_t>(parameters.padded_size()));
  const real deviation = 1 / numerics::sqrt(real(WIDTH));
  for (const Parameter& p : parameters.list())
    for (int64_t i = 0; i < p.size(); ++i)
      weights[static_cast<size_t>(p.begin + i)] =
          deviation * normal(settings_.seed, stream_of(p.name), 1, static_cast<uint64_t>(i));
  parameters.upload_all(weights);
  measure(*model, subject, "random");
  measure(*model, subject, "trained", number_text(std::exp(learn(*model)), 4));
  if (std::string(subject.question) == "questions 3 and 4") answer_question_4(*model, subject.layers);
}

void Positions::measure(Model& model, const Subject& s, const char* weights, const std::string& perplexity) {
  const OrderSensitivity found = order_sensitivity(model, *ops_, VOCAB, LENGTH, settings_.trials, settings_.seed);
  print("%-19s %-7s %6d %-8s %-8s %9.1e %9.1e %9.1e  %s (%s)%s\n", s.model, s.causal ? "yes" : "no", s.layers,
        s.position, weights, found.moved, found.last, found.later, verdict(found).c_str(), s.question,
        perplexity.empty() ? "" : (", perplexity " + perplexity).c_str());
  csv_ += text("%s,%s,%d,%s,%s,%s,%s,%s,%s\n", s.model, s.causal ? "yes" : "no", s.layers, s.position, weights,
               number_text(found.moved, 6).c_str(), number_text(found.last, 6).c_str(),
               number_text(found.later, 6).c_str(), perplexity.c_str());
}

// Trains the model to predict the next characters of the stories. A model that is not causal can see them and learns
// to copy them; it is trained all the same. Returns the loss on text that was not used for training.
double Positions::learn(Model& model) {
  model.parameters.initialize(settings_.seed);
  Optimizer optimizer(model.parameters, *ops_, {});
  Trainer trainer(model, *task_, optimizer, *ops_, settings_.seed, BATCH, 1);
  Schedule schedule;
  schedule.peak = 2e-3;
  // The table is printed to the standard output.
  Progress progress(0, settings_.steps, {false, "step", 0, false, stderr});
  for (int step = 0; step < settings_.steps; ++step) {
    const Measures measures = trainer.step(step, schedule.at(step));
    if (step + 1 < settings_.steps && progress.due(step + 1)) progress.show(step + 1, text("loss %.3f", measures.loss));
  }
  const double loss = trainer.evaluate(*task_, settings_.steps, EVALUATED, BATCH)->loss;
  const uint64_t weights = model.parameters.fingerprint();
  trained_.update(&weights, sizeof weights);
  return loss;
}

std::vector<std::string> letters_of(const std::vector<int32_t>& tokens) {
  std::vector<std::string> letters;
  for (const int32_t token : tokens)
    letters.push_back(token == '\n' || token == ' ' ? "␣" : std::string(1, static_cast<char>(token)));
  return letters;
}

// One panel a head; map: (heads,T,T).
void draw_layer(Figure& figure, int layer, const std::vector<real>& map, const std::vector<std::string>& letters) {
  const size_t squared = letters.size() * letters.size();
  const int T = static_cast<int>(letters.size());
  for (size_t h = 0; h < map.size() / squared; ++h) {
    const auto first = map.begin() + static_cast<std::ptrdiff_t>(h * squared);
    figure.panel(text("layer %d, head %zu", layer + 1, h + 1))
        .heatmap(T, T, {first, first + static_cast<std::ptrdiff_t>(squared)}, "weight")
        .x_names(letters)
        .y_names(letters)
        .x("looks at")
        .y("position")
        .color_range(0, 1);
  }
}

// Where the layers attend in windows of text. The first window is drawn.
void Positions::answer_question_4(Model& model, int layers) {
  const std::vector<Look> looks = mean_looks(model, *ops_, *task_, settings_.seed, LOOKED_AT, layers, HEADS);
  const Batch window = task_->batch(settings_.seed, stream_of("evaluate"), 0, 0, 1);
  Tokens tokens;
  forward(model, *ops_, tokens, window.tokens);
  Figure figure("Attention without positional encodings: a row looks at the columns before it");
  figure.columns(HEADS)
      .panel_size(8.0 * window.length, 8.0 * window.length)
      .caption("one row of pictures a layer, one picture a head");
  std::string csv = "layer,own,entropy\n";
  for (int layer = 0; layer < layers; ++layer) {
    const auto block = static_cast<size_t>(layer);
    csv += std::to_string(layer + 1) + "," + look_cells(looks[block]) + "\n";
    draw_layer(figure, layer, model.attention_map(block, 0), letters_of(window.tokens));
  }
  print("\nQuestion 4, %d windows\n", LOOKED_AT);
  print_looks(looks, window.length);
  attention_ = {{"attention.csv", csv}, {"attention.svg", figure.svg()}};
}

}  // namespace

int inspect_positions(const std::vector<std::string>& words) {
  PositionSettings settings;
  Options options("inspect positions", "Asks models with and without positional encodings what they make of order.");
  settings.declare(options);
  options.parse(words);
  Positions(settings).run();
  return 0;
}

}  // namespace petroglyph
