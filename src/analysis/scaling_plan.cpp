#include "analysis/scaling.h"

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

// ---- Settings -------------------------------------------------------------------------------------------------------

namespace {

// A training step of the paper has 16,384 windows, or 64 long ones. That many do not fit into memory at once, so a
// step consists of several batches (gradient accumulation). The paper gives only the range of its budgets and of its
// model sizes (50 to 900 million parameters with GPT-2's 50,257 tokens), not each value.
const std::map<std::pair<std::string, std::string>, std::string> PRESETS = {
    {{"compute", "quick"},
     "models=mlp_lm,transformer context=15 heads=2 batch=64 eval-samples=8192 lr=2e-3 "
     "budgets=3e9,6e9,1.2e10,2.4e10,4.8e10 widths=16,24,32,48,80,128"},
    {{"compute", "paper"},
     "models=mlp_lm,transformer context=15 embedding=512 heads=16 batch=64 accumulate=256 eval-samples=262144 lr=1e-3 "
     "budgets=1e16,4e16,1.7e17,7e17,3e18 widths=1024,4096,16384,32768,65536,131072,262144,409600"},
    {{"context", "quick"},
     "models=mlp_lm embedding=32 heads=4 batch=128 eval-samples=8192 lr=2e-3 "
     "tokens=4e5 widths=256 contexts=1,3,7,15,31,63"},
    {{"context", "paper"},
     "models=mlp_lm embedding=512 heads=16 batch=1024 accumulate=16 eval-samples=262144 lr=1e-3 "
     "tokens=1e10 widths=16384 contexts=3,7,15,31,63,127"},
    {{"dct", "quick"},
     "models=dct_mlp,transformer context=128 embedding=64 heads=4 batch=8 eval-samples=256 lr=2e-3 "
     "tokens=1e6,3e6 depths=2,4,6 transformer-depths=1,2,3"},
    {{"dct", "paper"},
     "models=dct_mlp,transformer context=2048 embedding=512 heads=16 batch=4 accumulate=16 eval-samples=1024 lr=1e-3 "
     "tokens=2e9,6e9 depths=6,12,18 transformer-depths=2,4,6"},
};

}  // namespace

void ScalingSettings::declare(Options& options) {
  options.section("Study");
  options.add("what", &what, {"compute", "context", "dct"}, "is varied");
  options.add("preset", &preset, {"quick", "paper"}, "sizes; what is given besides wins; shown here: quick, compute");
  options.add("models", &models, "LIST", "with commas between them; default mlp_lm,transformer, of context mlp_lm");
  options.add("budgets", &budgets, 1, 1e30, "compute: operations of training, C = 6ND");
  options.add("widths", &widths, 1, 1 << 20, "compute: channels inside a block; context: the one width");
  options.add("tokens", &tokens, 1, 1e15,
              "context, dct: supervised tokens that a model learns from; dct: a curve each");
  options.add("contexts", &contexts, 1, 1 << 16, "context: tokens that a prediction is made from");
  options.add("depths", &depths, 1, 1 << 10, "dct: blocks of the DCT-MLPs");
  options.add("transformer-depths", &transformer_depths, 1, 1 << 10, "dct: blocks of the Transformers");
  options.add("list", &list, "shows the runs and stops").not_saved();
  options.section("Models");
  options.add("context", &context, 1, 1 << 16, "compute, dct: tokens that a prediction is made from");
  options.add("embedding", &embedding, 0, 1 << 14,
              "channels of the residual stream; compute, context: 0 for a quarter of the width");
  options.add("heads", &heads, 1, 1 << 10, "of Transformers and DCT-MLPs");
  options.add("frequencies", &frequencies, 1, 1 << 10,
              "dct: of every head; the windows grow from that many tokens to the context");
  options.section("Text");
  text.declare(options);
  run.declare_common(options);
  options.only_with("budgets", "what", {"compute"});
  options.only_with("widths", "what", {"compute", "context"});
  options.only_with("tokens", "what", {"context", "dct"});
  options.only_with("contexts", "what", {"context"});
  options.only_with("context", "what", {"compute", "dct"});
  for (const char* name : {"depths", "transformer-depths", "frequencies"}) options.only_with(name, "what", {"dct"});
}

void ScalingSettings::apply_preset(Options& options) const { options.set_defaults(PRESETS.at({what, preset})); }

// ---- Plan -----------------------------------------------------------------------------------------------------------

namespace {

void check(const ScalingSettings& settings) {
  const std::vector<std::string> known = {settings.what == "dct" ? "dct_mlp" : "mlp_lm", "transformer"};
  for (const std::string& model : split(settings.models, ','))
    if (std::find(known.begin(), known.end(), model) == known.end())
      throw UsageError("--models " + settings.models + ": \"" + model + "\": expected " + join(known, " or "));
  const size_t widths = settings.widths.size();
  if ((settings.what == "compute" && widths < 3) || (settings.what == "context" && widths != 1))
    throw UsageError(text("--widths: %zu of them, expected ", widths) +
                     (settings.what == "context" ? "one" : "three or more, the points of a parabola"));
}

// The width of these models does not come from --width.
void check_heads(int heads, int width) {
  if (width % heads != 0)
    throw UsageError(text("--heads %d: a model's %d channels (--embedding) are no multiple of it", heads, width));
}

template <class F>
void for_each_pair(const std::vector<double>& outer, const std::vector<int>& inner, F f) {
  for (const double x : outer)
    for (const int y : inner) f(x, y);
}

}  // namespace

ScalingPlan::ScalingPlan(const ScalingSettings& settings) : settings_(settings) {
  check(settings);
  constexpr size_t ALL_STORIES = 24 << 20;
  text_ = open_text_source(settings.text, ALL_STORIES);
  for (const std::string& model : split(settings.models, ',')) plan(model);
  if (runs_.empty())
    throw UsageError("no run to train: expected a value of --budgets, --contexts, --depths or --transformer-depths");
}

// width: of the residual stream. Transformers are in GPT-2's style, and have no causal mask if only the last token is
// predicted.
Json ScalingPlan::config(const std::string& model, int context, int layers, int width, int hidden) const {
  ModelOptions m;
  m.model = model;
  m.layers = layers;
  m.width = width;
  m.hidden = hidden;
  if (model == "mlp_lm") {
    m.embedding = width;
    m.width = hidden;
  } else {
    check_heads(settings_.heads, width);
    m.heads = settings_.heads;
  }
  if (model == "transformer") {
    m.norm = "affine";
    m.gelu = "tanh";
    m.embedding_deviation = 0.02;
    m.readout = settings_.what == "dct" ? "all" : "last";
  }
  if (model == "dct_mlp") {
    m.frequencies = settings_.frequencies;
    m.set_defaults();
  }
  return m.config(text_.tokenizer->vocab(), context);
}

// Completes a run whose config[key] is its setting. If it has a budget, its number of tokens follows from it.
void ScalingPlan::add(StudyRun run, const std::string& key, int setting, int context) {
  const bool all = settings_.what == "dct";  // targets; else the last of each window
  std::unique_ptr<LanguageModeling>& task = tasks_[context];
  if (!task)
    task = std::make_unique<LanguageModeling>(text_.training, settings_.text.name(), text_.validation,
                                              settings_.text.validation_name(), context, settings_.run.samples_a_step(),
                                              all ? Targets::ALL : Targets::LAST);
  run.name = run.model + "-" + run.name;
  run.task = task.get();
  run.setting = setting;
  run.parameters = counter_.count(run.model, run.config, key, setting);
  if (run.budget > 0) run.tokens = run.budget / (6 * static_cast<double>(run.parameters));
  const double a_step = static_cast<double>(settings_.run.samples_a_step()) * (all ? context : 1);
  const double steps = std::round(run.tokens / a_step);
  constexpr double MOST = 2147483647;
  if (steps < 1 || steps > MOST)
    throw UsageError(
        text("%s: %.3g tokens are %.3g steps, expected at least one and at most %.0f: other --budgets, "
             "--tokens or --batch",
             run.name.c_str(), run.tokens, run.tokens / a_step, MOST));
  run.steps = static_cast<int64_t>(steps);
  run.tokens = steps * a_step;
  for (const StudyRun& other : runs_)
    if (other.name == run.name) throw UsageError(run.name + ": --models and the varied option give this run twice");
  runs_.push_back(std::move(run));
}

void ScalingPlan::plan(const std::string& model) {
  const ScalingSettings& s = settings_;
  StudyRun run;
  run.model = model;
  constexpr int BLOCKS = 2;
  const auto shallow = [&](int context, int width) {
    return config(model, context, BLOCKS, s.embedding > 0 ? s.embedding : std::max(1, width / 4), width);
  };
  const auto plan_budget = [&](double budget, int width) {
    run.name = "C" + short_number(budget) + text("-w%d", width);
    run.budget = budget;
    run.config = shallow(s.context, width);
    add(run, model == "mlp_lm" ? "width" : "hidden", width, s.context);
  };
  const auto plan_context = [&](double tokens, int context) {
    run.name = text("w%d-T%d-D", s.widths[0], context) + short_number(tokens);
    run.tokens = tokens;
    run.config = shallow(context, s.widths[0]);
    add(run, "context", context, context);
  };
  const auto plan_depth = [&](double tokens, int depth) {
    run.name = text("L%d-D", depth) + short_number(tokens);
    run.tokens = tokens;
    run.config = config(model, s.context, depth, s.embedding, 4 * s.embedding);
    add(run, "layers", depth, s.context);
  };
  if (s.what == "compute") for_each_pair(s.budgets, s.widths, plan_budget);
  if (s.what == "context") for_each_pair(s.tokens, s.contexts, plan_context);
  if (s.what == "dct") for_each_pair(s.tokens, model == "transformer" ? s.transformer_depths : s.depths, plan_depth);
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
