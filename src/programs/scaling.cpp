// How the loss falls with compute, context and depth: many runs, each a point, and what is fitted through them. Sections 2, 3 and 5 and
// appendices B, C and D of "MLPs for NLP".
//
//   --what compute   at each budget C a family of widths, each model with N parameters trained on D = C / 6N tokens: the loss against
//                    log N is about a parabola, its minimum is what C is best spent on, and the minima follow power laws (figures 1, 3)
//   --what context   one width, contexts of several lengths (figure 10)
//   --what dct       DCT-MLPs of several depths against Transformers, on the same tokens (figure 9)
//
// C, N and D are the paper's: all parameters count, embeddings too, and of tokens only those that are to be predicted.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

#include "analysis/power_law.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "figures/figure.h"
#include "tasks/language_modeling.h"
#include "train/model_options.h"
#include "train/study.h"
#include "train/text_source.h"

namespace petroglyph {
namespace {

struct ScalingSettings {
  std::string what = "compute", preset = "quick", models;
  TextSource text;
  StudySettings study;
  bool list = false;
  int context = 0, embedding = 0, heads = 0, frequencies = 4;
  std::vector<double> budgets, tokens;
  std::vector<int> widths, contexts, depths, transformer_depths;

  void declare(Options& options);
  void apply_preset(const Options* options);
};

void ScalingSettings::declare(Options& options) {
  options.section("Study");
  options.add("what", &what, {"compute", "context", "dct"}, "is varied");
  options.add("preset", &preset, {"quick", "paper"}, "sizes; what is given besides wins; shown here: quick, compute");
  options.add("models", &models, "with commas between them; default mlp_lm,transformer, of context mlp_lm")
      .placeholder("LIST")
      .may_differ();
  options.add("budgets", &budgets, 1, 1e30, "compute: operations of training, C = 6ND").may_differ();
  options.add("widths", &widths, 1, 1 << 20, "compute: channels inside a block; context: the one width").may_differ();
  options.add("tokens", &tokens, 1, 1e15, "context, dct: supervised tokens that a model learns from; dct: a curve each")
      .may_differ();
  options.add("contexts", &contexts, 1, 1 << 16, "context: tokens that a prediction is made from").may_differ();
  options.add("depths", &depths, 1, 1 << 10, "dct: blocks of the DCT-MLPs").may_differ();
  options.add("transformer-depths", &transformer_depths, 1, 1 << 10, "dct: blocks of the Transformers").may_differ();
  options.add("list", &list, "shows the runs and stops").may_change();
  options.section("Models");
  options.add("context", &context, 0, 1 << 24, "compute, dct: tokens that a prediction is made from");
  options.add("embedding", &embedding, 0, 1 << 14,
              "channels of the residual stream; compute, context: 0 for a quarter of the width");
  options.add("heads", &heads, 0, 1 << 10, "of Transformers and DCT-MLPs");
  options.add("frequencies", &frequencies, 1, 1 << 10,
              "dct: of every head; the windows grow from that many tokens to the context");
  options.section("Text");
  text.declare(options);
  study.declare(options);
}

// What a study takes where nothing else is given. 0 and {}: it has no such thing.
struct Preset {
  const char *what, *name;
  int context, embedding, heads, batch, eval_samples;
  double learning_rate;
  std::vector<double> budgets, tokens;
  std::vector<int> widths, contexts, depths, transformer_depths;
};

// The paper gives the range of its budgets and of its sizes, 50 to 900 million parameters with GPT-2's 50,257 tokens, not each.
const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"compute",
       "quick",
       15,
       0,
       2,
       64,
       8192,
       2e-3,
       {3e9, 6e9, 1.2e10, 2.4e10, 4.8e10},
       {},
       {16, 24, 32, 48, 80, 128},
       {},
       {},
       {}},
      {"compute",
       "paper",
       15,
       512,
       16,
       16384,
       1 << 18,
       1e-3,
       {1e16, 4e16, 1.7e17, 7e17, 3e18},
       {},
       {1024, 4096, 16384, 32768, 65536, 131072, 262144, 409600},
       {},
       {},
       {}},
      {"context", "quick", 0, 32, 4, 128, 8192, 2e-3, {}, {4e5}, {256}, {1, 3, 7, 15, 31, 63}, {}, {}},
      {"context", "paper", 0, 512, 16, 16384, 1 << 18, 1e-3, {}, {1e10}, {16384}, {3, 7, 15, 31, 63, 127}, {}, {}},
      {"dct", "quick", 128, 64, 4, 8, 256, 2e-3, {}, {1e6, 3e6}, {}, {}, {2, 4, 6}, {1, 2, 3}},
      {"dct", "paper", 2048, 512, 16, 64, 1024, 1e-3, {}, {2e9, 6e9}, {}, {}, {6, 12, 18}, {2, 4, 6}},
  };
  return all;
}

// options: null before they are parsed, for the defaults that --help shows.
void ScalingSettings::apply_preset(const Options* options) {
  for (const Preset& p : presets()) {
    if (what != p.what || preset != p.name) continue;
    const auto set = [&](const char* option, auto& value, const auto& to) {
      if (!options || !options->given(option)) value = to;
    };
    set("context", context, p.context);
    set("embedding", embedding, p.embedding);
    set("heads", heads, p.heads);
    set("batch", study.run.batch, p.batch);
    set("eval-samples", study.run.eval_samples, p.eval_samples);
    set("lr", study.run.rate.peak, p.learning_rate);
    set("budgets", budgets, p.budgets);
    set("tokens", tokens, p.tokens);
    set("widths", widths, p.widths);
    set("contexts", contexts, p.contexts);
    set("depths", depths, p.depths);
    set("transformer-depths", transformer_depths, p.transformer_depths);
    set("models", models,
        std::string(what == "compute"   ? "mlp_lm,transformer"
                    : what == "context" ? "mlp_lm"
                                        : "dct_mlp,transformer"));
  }
}

// 1e7 for 1e+07: what may stand in a folder's name
std::string short_number(double value, int digits = 4) {
  const std::string full = number_text(value, digits);
  const size_t e = full.find("e+");
  if (e == std::string::npos) return full;
  return full.substr(0, e + 1) + full.substr(full.find_first_not_of('0', e + 2));
}

class Scaling {
 public:
  Scaling(ScalingSettings& settings, Options& options);
  int run();

 private:
  std::vector<std::string> models() const { return split(settings_.models, ','); }
  Json config(const std::string& model, int context, int width) const;
  Json deep_config(const std::string& model, int layers) const;
  const Task& task(int context, Targets targets);
  void add(const std::string& model, const Json& config, const std::string& key, int value, double tokens,
           double budget, int context, Targets targets, const std::string& name);
  void plan();
  void list_runs() const;
  void plan_compute(const std::string& model);
  void plan_contexts(const std::string& model);
  void plan_depths(const std::string& model);

  void report_compute();
  void report_curves(const std::string& x, const std::string& title);
  void draw_model(const std::string& model, const PowerLaws& laws) const;
  void save(const std::string& name, const std::string& content) {
    write_file_atomically(study_.folder() + "/" + name, content);
  }

  ScalingSettings& settings_;
  Study study_;
  OpenText text_;
  std::map<std::pair<int, Targets>, std::unique_ptr<LanguageModeling>> tasks_;
  ParameterCounter counter_;
  std::vector<StudyRun> runs_;
};

Scaling::Scaling(ScalingSettings& settings, Options& options)
    : settings_(settings), study_(settings.study, options, "scaling") {
  const std::vector<std::string> known = settings.what == "dct" ? std::vector<std::string>{"dct_mlp", "transformer"}
                                                                : std::vector<std::string>{"mlp_lm", "transformer"};
  for (const std::string& model : models())
    if (std::find(known.begin(), known.end(), model) == known.end())
      throw UsageError("--models " + settings.models + ": \"" + model + "\": expected " + join(known, " or "));
  if (settings.what == "compute" && (settings.widths.size() < 3 || settings.budgets.empty()))
    throw UsageError(text(
        "--widths, --budgets: %zu and %zu of them, expected three widths or more, a parabola's points, and a budget",
        settings.widths.size(), settings.budgets.size()));
  constexpr size_t STORY_BYTES = 24 << 20;
  text_ = open_text_source(settings.text, STORY_BYTES);
}

// In GPT-2's style; without a mask where only the last token is predicted.
ModelOptions transformer_options(int width, int hidden, int layers, int heads, const char* readout) {
  ModelOptions m;
  m.model = "transformer";
  m.width = width;
  m.hidden = hidden;
  m.layers = layers;
  m.heads = heads;
  m.norm = "affine";
  m.gelu = "tanh";
  m.embedding_deviation = 0.02;
  m.readout = readout;
  return m;
}

// Two blocks; the width is what is inside them.
Json Scaling::config(const std::string& model, int context, int width) const {
  constexpr int BLOCKS = 2;
  const int embedding = settings_.embedding > 0 ? settings_.embedding : std::max(1, width / 4);
  ModelOptions m = transformer_options(embedding, width, BLOCKS, settings_.heads, "last");
  if (model == "mlp_lm") {
    m = {};
    m.model = model;
    m.embedding = embedding;
    m.width = width;
    m.layers = BLOCKS;
  }
  return m.config(text_.tokenizer->vocab(), context);
}

Json Scaling::deep_config(const std::string& model, int layers) const {
  const int vocab = text_.tokenizer->vocab(), width = settings_.embedding, heads = settings_.heads;
  const int k = settings_.frequencies, T = settings_.context;
  if (width == 0) throw UsageError("--embedding 0: the width of these models, expected 1 or more");
  if (model == "transformer") return transformer_options(width, 4 * width, layers, heads, "all").config(vocab, T);
  if (k > T) throw UsageError(text("--frequencies %d: more than the --context of %d tokens", k, T));
  ModelOptions m;
  m.model = model;
  m.width = width;
  m.layers = layers;
  m.heads = heads;
  m.frequencies = k;
  m.set_defaults();
  return m.config(vocab, T);
}

// ---- The runs -------------------------------------------------------------------------------------------------------

const Task& Scaling::task(int context, Targets targets) {
  std::unique_ptr<LanguageModeling>& task = tasks_[{context, targets}];
  if (!task)
    task = std::make_unique<LanguageModeling>(text_.training, settings_.text.name(), text_.validation,
                                              settings_.text.validation_name(), context, settings_.study.run.batch,
                                              targets);
  return *task;
}

// A run with config[key] = value, of which the parameters are counted. tokens 0: those of the budget.
void Scaling::add(const std::string& model, const Json& config, const std::string& key, int value, double tokens,
                  double budget, int context, Targets targets, const std::string& name) {
  StudyRun run;
  run.name = model + "-" + name;
  run.model = model;
  run.config = config;
  run.task = &task(context, targets);
  run.parameters = counter_.count(model, config, key, value);
  const double a_step = static_cast<double>(settings_.study.run.batch) * (targets == Targets::ALL ? context : 1);
  if (tokens == 0) tokens = budget / (6 * static_cast<double>(run.parameters));
  run.steps = std::max<int64_t>(1, std::llround(tokens / a_step));
  run.tokens = static_cast<double>(run.steps) * a_step;
  run.budget = budget;
  run.setting = value;
  for (const StudyRun& other : runs_)
    if (other.name == run.name) throw UsageError(run.name + ": this run is asked for twice");
  runs_.push_back(run);
}

void Scaling::plan_compute(const std::string& model) {
  for (const double budget : settings_.budgets)
    for (const int width : settings_.widths)
      add(model, config(model, settings_.context, width), model == "mlp_lm" ? "width" : "hidden", width, 0, budget,
          settings_.context, Targets::LAST, "C" + short_number(budget) + text("-w%d", width));
}

void Scaling::plan_contexts(const std::string& model) {
  for (const double tokens : settings_.tokens)
    for (const int width : settings_.widths)
      for (const int context : settings_.contexts)
        add(model, config(model, context, width), "context", context, tokens, 0, context, Targets::LAST,
            text("w%d-T%d-D", width, context) + short_number(tokens));
}

void Scaling::plan_depths(const std::string& model) {
  for (const double tokens : settings_.tokens)
    for (const int depth : model == "transformer" ? settings_.transformer_depths : settings_.depths)
      add(model, deep_config(model, depth), "layers", depth, tokens, 0, settings_.context, Targets::ALL,
          text("L%d-D", depth) + short_number(tokens));
}

void Scaling::plan() {
  for (const std::string& model : models()) {
    if (settings_.what == "compute") plan_compute(model);
    if (settings_.what == "context") plan_contexts(model);
    if (settings_.what == "dct") plan_depths(model);
  }
  const auto fewer = [](const StudyRun& a, const StudyRun& b) { return a.parameters < b.parameters; };
  const auto [least, most] = std::minmax_element(runs_.begin(), runs_.end(), fewer);
  if (runs_.empty()) throw UsageError("nothing to train: see --help");
  std::printf("%zu runs in %s, of %s to %s parameters; %s tokens of text, %s\n", runs_.size(), study_.folder().c_str(),
              with_commas(least->parameters).c_str(), with_commas(most->parameters).c_str(),
              with_commas(text_.training->size()).c_str(), text_.tokenizer->name().c_str());
}

void Scaling::list_runs() const {
  std::printf("%-36s %16s %16s %12s\n", "", "parameters N", "tokens D", "steps");
  for (const StudyRun& run : runs_)
    std::printf("%-36s %16s %16s %12s\n", run.name.c_str(), with_commas(run.parameters).c_str(),
                with_commas(static_cast<int64_t>(run.tokens)).c_str(), with_commas(run.steps).c_str());
}

int Scaling::run() {
  plan();
  if (settings_.list) return list_runs(), 0;
  if (!study_.train(runs_)) {
    std::printf("go on with: ./scaling --resume --name %s\n", settings_.study.run.name.c_str());
    return INTERRUPTED_STATUS;
  }
  if (settings_.what == "compute") report_compute();
  if (settings_.what == "context") report_curves("context", "Perplexity and parameters against the context");
  if (settings_.what == "dct") report_curves("parameters", "DCT-MLP and Transformer");
  return 0;
}

// ---- Compute --------------------------------------------------------------------------------------------------------

// Figure 1: the parabolas, and the two power laws.
void Scaling::draw_model(const std::string& model, const PowerLaws& laws) const {
  Figure figure("Scaling of " + model);
  figure.columns(3).caption(study_.folder());
  Panel& left = figure.panel("Loss at each budget").x("parameters N").y("loss (nats)").log_x();
  std::vector<double> budgets, optimal, tokens, law_parameters, law_tokens;
  double least = runs_[0].loss, most = least;
  int color = 0;
  for (const BudgetFit& fit : laws.budgets) {
    std::vector<double> xs, ys, curve_x, curve_y;
    for (const StudyRun& run : runs_)
      if (run.model == model && run.budget == fit.budget) {
        xs.push_back(static_cast<double>(run.parameters));
        ys.push_back(run.loss);
        least = std::min(least, run.loss);
        most = std::max(most, run.loss);
      }
    const auto [low, high] = std::minmax_element(xs.begin(), xs.end());
    constexpr int PIECES = 40;
    for (int i = 0; i <= PIECES; ++i) {
      const double x = std::log10(*low) + i * std::log10(*high / *low) / PIECES;
      curve_x.push_back(std::pow(10, x));
      curve_y.push_back(fit.parabola.at(x));
    }
    LineStyle points, curve;
    points.color = curve.color = color++;
    points.joined = false;
    points.markers = true;
    left.line("C = " + short_number(fit.budget), xs, ys, points).line("", curve_x, curve_y, curve);
    budgets.push_back(fit.budget);
    optimal.push_back(fit.parameters);
    tokens.push_back(fit.tokens);
    law_parameters.push_back(std::pow(10, laws.parameters.at(std::log10(fit.budget))));
    law_tokens.push_back(std::pow(10, laws.tokens.at(std::log10(fit.budget))));
  }
  left.y_range(least - 0.1 * (most - least), most + 0.5 * (most - least));  // room for the legend above the curves
  LineStyle found, law;
  found.joined = false;
  found.markers = true;
  law.dashed = true;
  figure.panel("Best size")
      .x("compute C")
      .y("parameters N")
      .log_x()
      .log_y()
      .line("minima", budgets, optimal, found)
      .line(text("C to the %.2f", laws.parameters.slope), budgets, law_parameters, law);
  figure.panel("Best number of tokens")
      .x("compute C")
      .y("tokens D")
      .log_x()
      .log_y()
      .line("C / 6N", budgets, tokens, found)
      .line(text("C to the %.2f", laws.tokens.slope), budgets, law_tokens, law);
  figure.save(study_.folder() + "/scaling_" + model + ".svg");
}

void Scaling::report_compute() {
  std::string optima = "model,budget,c0,c1,c2,parameters,tokens,loss,inside\n",
              exponents = "model,quantity,exponent,intercept\n";
  std::string files = "points.csv, optima.csv, laws.csv";
  Figure figure("Best loss against compute");
  Panel& panel = figure.panel().x("compute C").y("loss (nats)").log_x().log_y();
  for (const std::string& model : models()) {
    std::vector<ScalingPoint> points;
    for (const StudyRun& run : runs_)
      if (run.model == model) points.push_back({run.budget, static_cast<double>(run.parameters), run.loss});
    const PowerLaws laws = fit_power_laws(points);
    std::printf("\n%-12s %10s %14s %14s %9s\n", model.c_str(), "C", "N_opt", "D_opt", "loss");
    std::vector<double> budgets, losses;
    for (const BudgetFit& fit : laws.budgets) {
      optima += model;
      for (const double x :
           {fit.budget, fit.parabola.c0, fit.parabola.c1, fit.parabola.c2, fit.parameters, fit.tokens, fit.loss})
        optima += "," + (std::isfinite(x) ? number_text(x, 9) : std::string());
      optima += fit.inside ? ",1\n" : ",0\n";
      budgets.push_back(fit.budget);
      losses.push_back(fit.loss);
      if (std::isfinite(fit.parameters))
        std::printf("%23s %14.3g %14.3g %9.4f%s\n", short_number(fit.budget).c_str(), fit.parameters, fit.tokens,
                    fit.loss, fit.inside ? "" : "   outside the sizes that were tried");
      else
        std::printf("%23s   the parabola has no minimum\n", short_number(fit.budget).c_str());
    }
    std::printf("N_opt ∝ C^%.3f   D_opt ∝ C^%.3f   loss ∝ C^%.4f\n", laws.parameters.slope, laws.tokens.slope,
                laws.loss.slope);
    for (const auto& [quantity, line] :
         {std::pair("parameters", laws.parameters), {"tokens", laws.tokens}, {"loss", laws.loss}})
      exponents +=
          model + "," + quantity + "," + number_text(line.slope, 9) + "," + number_text(line.intercept, 9) + "\n";
    LineStyle style;
    style.markers = true;
    panel.line(model, budgets, losses, style);
    draw_model(model, laws);
    files += ", scaling_" + model + ".svg";
  }
  save("optima.csv", optima);
  save("laws.csv", exponents);
  figure.caption(study_.folder()).save(study_.folder() + "/loss.svg");
  std::printf("\nsaved %s (%s, loss.svg)\n", study_.folder().c_str(), files.c_str());
}

// ---- Contexts and depths --------------------------------------------------------------------------------------------

// Figures 10 and 9: a curve for each model, number of tokens and width.
void Scaling::report_curves(const std::string& x, const std::string& title) {
  std::map<std::string, std::vector<const StudyRun*>> curves;
  for (const StudyRun& run : runs_) {
    const std::string name = run.model + ", " + short_number(run.tokens, 3) + " tokens";
    const bool widths = settings_.widths.size() > 1 && run.config.find("embedding");
    curves[widths ? name + ", width " + std::to_string(run.config.at("width").integer()) : name].push_back(&run);
  }
  Figure figure(title);
  figure.caption(study_.folder());
  const bool by_context = x == "context";
  Panel& perplexity = figure.panel("Perplexity").x(x).y("perplexity").log_x();
  Panel* parameters = by_context ? &figure.panel("Parameters").x(x).y("parameters").log_x() : nullptr;
  std::printf("\n%-40s %10s %14s %9s %11s\n", "", by_context ? "context" : "layers", "parameters", "loss",
              "perplexity");
  for (const auto& [name, runs] : curves) {
    std::vector<double> xs, losses, sizes;
    for (const StudyRun* run : runs) {
      std::printf("%-40s %10.0f %14s %9.4f %11.3f\n", name.c_str(), run->setting, with_commas(run->parameters).c_str(),
                  run->loss, std::exp(run->loss));
      xs.push_back(by_context ? run->setting : static_cast<double>(run->parameters));
      losses.push_back(std::exp(run->loss));
      sizes.push_back(static_cast<double>(run->parameters));
    }
    LineStyle style;
    style.markers = true;
    perplexity.line(name, xs, losses, style);
    if (parameters) parameters->line(name, xs, sizes, style);
  }
  const std::string file = settings_.what + ".svg";
  figure.save(study_.folder() + "/" + file);
  std::printf("\nsaved %s (points.csv, %s)\n", study_.folder().c_str(), file.c_str());
}

int scaling(int argc, char** argv) {
  ScalingSettings settings;
  RunSettings& run = settings.study.run;
  run.program = "scaling";
  run.rate.floor = 1e-5;
  run.adamw.weight_decay = 0.1;
  run.save_every = 1000;
  Options options("scaling", "Trains families of models, and fits how the loss falls with compute, context and depth.");
  settings.apply_preset(nullptr);
  settings.declare(options);
  options.parse(argc, argv);
  settings.apply_preset(&options);
  return Scaling(settings, options).run();
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("scaling", [&] { return petroglyph::scaling(argc, argv); });
}
