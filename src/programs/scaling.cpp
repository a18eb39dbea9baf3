// Measures how the loss falls with compute, context and depth: many runs, each of which gives one point, and curves
// fitted to the points. Sections 2, 3 and 5 and appendices B, C and D of "MLPs for NLP".
//
//   --what compute   at each budget C a family of widths, each model with N parameters trained on D = C / 6N tokens.
//                    The loss is approximately a parabola in log N. Its minimum is the optimal N for C, and the
//                    minima follow power laws (figures 1, 3)
//   --what context   one width, contexts of several lengths (figure 10)
//   --what dct       DCT-MLPs of several depths against Transformers, on the same tokens (figure 9)
//
// C, N and D are defined as in the paper: N counts all parameters, including embeddings; D counts only the predicted
// tokens.

#include <cstdio>
#include <memory>

#include "analysis/scaling.h"
#include "base/program.h"
#include "train/compare.h"
#include "train/run_folder.h"
#include "train/study.h"

namespace petroglyph {
namespace {

int scaling(const std::vector<std::string>& words, const std::shared_ptr<Ranks>& ranks) {
  ScalingSettings settings;
  RunSettings& run = settings.run;
  run.program = "scaling";
  run.ranks = ranks;
  run.rate.floor = 1e-5;
  run.adamw.weight_decay = 0.1;
  run.save_every = 1000;
  Options options("scaling", "Trains families of models, and fits how the loss falls with compute, context and depth.");
  settings.declare(options);
  settings.apply_preset(options);  // the defaults in --help
  options.parse(words);
  settings.apply_preset(options);
  options.refuse_without_effect();
  ScalingPlan plan(settings);
  const std::string name = name_of_runs(run, "scaling");
  plan.print_summary("runs/" + name);
  if (settings.list) return plan.print_runs(), 0;
  if (!train_study(run, name, plan.runs())) return interrupted_runs(name);
  if (ranks->first()) report_scaling("runs/" + name, settings.what, plan.runs());
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) { return petroglyph::run_ranks("scaling", argc, argv, petroglyph::scaling); }
