#include "analysis/scaling_plan.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "train/model_options.h"

namespace petroglyph {

std::string short_number(double value, int digits) {
  const std::string full = number_text(value, digits);
  const size_t e = full.find("e+");
  if (e == std::string::npos) return full;
  return full.substr(0, e + 1) + full.substr(full.find_first_not_of('0', e + 2));
}

namespace {

// A study that uses --contexts instead stores 0.
void check_context(const ScalingSettings& settings) {
  if (settings.what == "context") return;
  constexpr int MOST_OF_MLP = 1 << 16;  // the limit of mlp_lm
  const std::vector<std::string> models = settings.model_names();
  const bool mlp = std::find(models.begin(), models.end(), "mlp_lm") != models.end();
  if (settings.context < 1)
    throw UsageError(text("--context %d: expected a whole number, at least 1", settings.context));
  if (mlp && settings.context > MOST_OF_MLP)
    throw UsageError(text("--context %d: expected at most %d tokens for mlp_lm", settings.context, MOST_OF_MLP));
}

void check(const ScalingSettings& settings) {
  const std::vector<std::string> known = settings.what == "dct" ? std::vector<std::string>{"dct_mlp", "transformer"}
                                                                : std::vector<std::string>{"mlp_lm", "transformer"};
  for (const std::string& model : settings.model_names())
    if (std::find(known.begin(), known.end(), model) == known.end())
      throw UsageError("--models " + settings.models + ": \"" + model + "\": expected " + join(known, " or "));
  if (settings.what == "compute" && (settings.widths.size() < 3 || settings.budgets.empty()))
    throw UsageError(text(
        "--widths, --budgets: %zu and %zu of them, expected three widths or more, a parabola's points, and a budget",
        settings.widths.size(), settings.budgets.size()));
  check_context(settings);
}

// The width of these models does not come from --width.
void check_heads(int heads, int width) {
  if (width % heads != 0)
    throw UsageError(text("--heads %d: a model's %d channels (--embedding) are no multiple of it", heads, width));
}

// A Transformer in GPT-2's style. It has no causal mask if only the last token is predicted.
ModelOptions transformer_options(int width, int hidden, int layers, int heads, const char* readout) {
  check_heads(heads, width);
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

}  // namespace

ScalingPlan::ScalingPlan(const ScalingSettings& settings) : settings_(settings) {
  check(settings);
  constexpr size_t ALL_STORIES = 24 << 20;
  text_ = open_text_source(settings.text, ALL_STORIES);
  for (const std::string& model : settings.model_names()) {
    if (settings.what == "compute") plan_compute(model);
    if (settings.what == "context") plan_contexts(model);
    if (settings.what == "dct") plan_depths(model);
  }
  if (runs_.empty())
    throw UsageError("no run to train: expected a value of --budgets, --contexts, --depths or --transformer-depths");
}

// Two blocks; the width is that of their hidden layers.
Json ScalingPlan::config(const std::string& model, int context, int width) const {
  constexpr int BLOCKS = 2;
  const int embedding = settings_.embedding > 0 ? settings_.embedding : std::max(1, width / 4);
  const int vocab = text_.tokenizer->vocab();
  if (model == "transformer")
    return transformer_options(embedding, width, BLOCKS, settings_.heads, "last").config(vocab, context);
  ModelOptions m;
  m.model = model;
  m.embedding = embedding;
  m.width = width;
  m.layers = BLOCKS;
  return m.config(vocab, context);
}

Json ScalingPlan::deep_config(const std::string& model, int layers) const {
  const int vocab = text_.tokenizer->vocab(), width = settings_.embedding, heads = settings_.heads;
  const int k = settings_.frequencies, T = settings_.context;
  if (width == 0) throw UsageError("--embedding 0: the width of these models, expected 1 or more");
  if (model == "transformer") return transformer_options(width, 4 * width, layers, heads, "all").config(vocab, T);
  check_heads(heads, width);
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

const Task& ScalingPlan::task(int context, Targets targets) {
  std::unique_ptr<LanguageModeling>& task = tasks_[{context, targets}];
  if (!task)
    task = std::make_unique<LanguageModeling>(text_.training, settings_.text.name(), text_.validation,
                                              settings_.text.validation_name(), context,
                                              settings_.study.run.samples_a_step(), targets);
  return *task;
}

// Adds a run with config[key] = value and counts its parameters. tokens 0: the number of tokens follows from the
// budget.
void ScalingPlan::add(const std::string& model, const Json& config, const std::string& key, int value, double tokens,
                      double budget, int context, Targets targets, const std::string& name) {
  StudyRun run;
  run.name = model + "-" + name;
  run.model = model;
  run.config = config;
  run.task = &task(context, targets);
  run.parameters = counter_.count(model, config, key, value);
  const double a_step =
      static_cast<double>(settings_.study.run.samples_a_step()) * (targets == Targets::ALL ? context : 1);
  if (tokens == 0) tokens = budget / (6 * static_cast<double>(run.parameters));
  constexpr double MOST = 2147483647;
  if (tokens / a_step > MOST)
    throw UsageError(
        text("%s: %.3g tokens are %.3g steps, expected at most %.0f", run.name.c_str(), tokens, tokens / a_step, MOST));
  run.steps = std::llround(tokens / a_step);
  if (run.steps < 1)
    throw UsageError(
        text("%s: %.3g tokens are %.3g steps, expected at least one: more --budgets or --tokens, or a smaller --batch",
             run.name.c_str(), tokens, tokens / a_step));
  run.tokens = static_cast<double>(run.steps) * a_step;
  run.budget = budget;
  run.setting = value;
  for (const StudyRun& other : runs_)
    if (other.name == run.name) throw UsageError(run.name + ": --models and the varied option give this run twice");
  runs_.push_back(run);
}

void ScalingPlan::plan_compute(const std::string& model) {
  for (const double budget : settings_.budgets)
    for (const int width : settings_.widths)
      add(model, config(model, settings_.context, width), model == "mlp_lm" ? "width" : "hidden", width, 0, budget,
          settings_.context, Targets::LAST, "C" + short_number(budget) + text("-w%d", width));
}

void ScalingPlan::plan_contexts(const std::string& model) {
  for (const double tokens : settings_.tokens)
    for (const int width : settings_.widths)
      for (const int context : settings_.contexts)
        add(model, config(model, context, width), "context", context, tokens, 0, context, Targets::LAST,
            text("w%d-T%d-D", width, context) + short_number(tokens));
}

void ScalingPlan::plan_depths(const std::string& model) {
  for (const double tokens : settings_.tokens)
    for (const int depth : model == "transformer" ? settings_.transformer_depths : settings_.depths)
      add(model, deep_config(model, depth), "layers", depth, tokens, 0, settings_.context, Targets::ALL,
          text("L%d-D", depth) + short_number(tokens));
}

void ScalingPlan::print_summary(const std::string& folder) const {
  const auto fewer = [](const StudyRun& a, const StudyRun& b) { return a.parameters < b.parameters; };
  const auto [least, most] = std::minmax_element(runs_.begin(), runs_.end(), fewer);
  std::printf("%zu runs in %s, of %s to %s parameters; %s tokens of text, %s\n", runs_.size(), folder.c_str(),
              with_commas(least->parameters).c_str(), with_commas(most->parameters).c_str(),
              with_commas(text_.training->size()).c_str(), text_.tokenizer->name().c_str());
}

void ScalingPlan::print_runs() const {
  std::printf("%-36s %16s %16s %12s %22s\n", "", "parameters N", "tokens D", "steps", "weights and moments");
  constexpr double BYTES = 4 * sizeof(real);  // for each parameter: its value, its gradient, two Adam moments
  for (const StudyRun& run : runs_)
    std::printf("%-36s %16s %16s %12s %19.2f GB\n", run.name.c_str(), with_commas(run.parameters).c_str(),
                with_commas(static_cast<int64_t>(run.tokens)).c_str(), with_commas(run.steps).c_str(),
                BYTES * static_cast<double>(run.parameters) / 1e9);
}

}  // namespace petroglyph
