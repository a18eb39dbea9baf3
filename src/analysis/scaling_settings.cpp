#include "analysis/scaling_settings.h"

#include <algorithm>

#include "base/error.h"

namespace petroglyph {

namespace {

// The defaults of a study in one preset. 0 or {} means that the study does not use this setting.
struct Preset {
  const char *what, *name;
  int context, embedding, heads, batch, accumulate, eval_samples;
  double learning_rate;
  std::vector<double> budgets, tokens;
  std::vector<int> widths, contexts, depths, transformer_depths;
};

// A training step of the paper has 16,384 windows, or 64 long ones. That many do not fit into memory at once, so a
// step consists of several batches (gradient accumulation). The paper gives only the range of its budgets and of its
// model sizes (50 to 900 million parameters with GPT-2's 50,257 tokens), not each value.
const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"compute",
       "quick",
       15,
       0,
       2,
       64,
       1,
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
       64,
       256,
       1 << 18,
       1e-3,
       {1e16, 4e16, 1.7e17, 7e17, 3e18},
       {},
       {1024, 4096, 16384, 32768, 65536, 131072, 262144, 409600},
       {},
       {},
       {}},
      {"context", "quick", 0, 32, 4, 128, 1, 8192, 2e-3, {}, {4e5}, {256}, {1, 3, 7, 15, 31, 63}, {}, {}},
      {"context", "paper", 0, 512, 16, 1024, 16, 1 << 18, 1e-3, {}, {1e10}, {16384}, {3, 7, 15, 31, 63, 127}, {}, {}},
      {"dct", "quick", 128, 64, 4, 8, 1, 256, 2e-3, {}, {1e6, 3e6}, {}, {}, {2, 4, 6}, {1, 2, 3}},
      {"dct", "paper", 2048, 512, 16, 4, 16, 1024, 1e-3, {}, {2e9, 6e9}, {}, {}, {6, 12, 18}, {2, 4, 6}},
  };
  return all;
}

// Options that only some studies have.
struct OptionOfStudies {
  const char* name;
  std::vector<std::string> studies;
};

const std::vector<OptionOfStudies>& options_of_studies() {
  static const std::vector<OptionOfStudies> all = {{"budgets", {"compute"}},
                                                   {"widths", {"compute", "context"}},
                                                   {"tokens", {"context", "dct"}},
                                                   {"contexts", {"context"}},
                                                   {"depths", {"dct"}},
                                                   {"transformer-depths", {"dct"}},
                                                   {"context", {"compute", "dct"}},
                                                   {"frequencies", {"dct"}}};
  return all;
}

}  // namespace

void ScalingSettings::check_combination(const Options& options) const {
  for (const auto& [name, studies] : options_of_studies())
    if (options.given(name) && std::find(studies.begin(), studies.end(), what) == studies.end())
      throw UsageError(std::string("--") + name + ": of --what " + join(studies, " and ") + ", and this is " + what);
  text.check(options);
}

void ScalingSettings::declare(Options& options) {
  options.section("Study");
  options.add("what", &what, {"compute", "context", "dct"}, "is varied");
  options.add("preset", &preset, {"quick", "paper"}, "sizes; what is given besides wins; shown here: quick, compute");
  options.add("models", &models, "with commas between them; default mlp_lm,transformer, of context mlp_lm")
      .placeholder("LIST");
  options.add("budgets", &budgets, 1, 1e30, "compute: operations of training, C = 6ND");
  options.add("widths", &widths, 1, 1 << 20, "compute: channels inside a block; context: the one width");
  options.add("tokens", &tokens, 1, 1e15,
              "context, dct: supervised tokens that a model learns from; dct: a curve each");
  options.add("contexts", &contexts, 1, 1 << 16, "context: tokens that a prediction is made from");
  options.add("depths", &depths, 1, 1 << 10, "dct: blocks of the DCT-MLPs");
  options.add("transformer-depths", &transformer_depths, 1, 1 << 10, "dct: blocks of the Transformers");
  options.add("list", &list, "shows the runs and stops").always().not_saved();
  options.section("Models");
  options.add("context", &context, 0, 1 << 24, "compute, dct: tokens that a prediction is made from");
  options.add("embedding", &embedding, 0, 1 << 14,
              "channels of the residual stream; compute, context: 0 for a quarter of the width");
  options.add("heads", &heads, 1, 1 << 10, "of Transformers and DCT-MLPs");
  options.add("frequencies", &frequencies, 1, 1 << 10,
              "dct: of every head; the windows grow from that many tokens to the context");
  options.section("Text");
  text.declare(options);
  study.declare(options);
}

void ScalingSettings::apply_preset(const Options* options) {
  for (const Preset& p : presets()) {
    if (what != p.what || preset != p.name) continue;
    const auto set = [&](const char* option, auto& value, const auto& to) {
      if (!options || !options->given(option)) value = to;
    };
    set("context", context, p.context);
    set("embedding", embedding, p.embedding);
    set("heads", heads, p.heads);
    if (!options || !options->given("batch")) set("accumulate", study.run.accumulate, p.accumulate);
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

}  // namespace petroglyph
