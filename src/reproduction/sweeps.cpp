// The sweeps behind the copying papers' settings (appendix D of the workshop paper, appendix B of the other): the learning rate of
// each model, and the attention heads of the Transformers. The papers say which value was best, and print no number.

#include "base/text.h"
#include "reproduction/experiment.h"

namespace petroglyph {

namespace {

// A sweep: each model with each value.
struct Sweep {
  std::string option;  // "lr"
  std::vector<std::string> values;
  std::vector<std::pair<std::string, std::string>> models;  // as train_copy names them, and we do
  std::vector<std::string> best;                            // of each model, in the paper
  std::string says;                                         // "… is the best of the five rates for …"
};

const Sweep RATES = {"lr",
                     {"1e-5", "5e-5", "1e-4", "5e-4", "1e-3"},
                     {{"causal_rn", "CausalRN"}, {"transformer", "Transformer"}},
                     {"1e-3", "5e-4"},
                     "is the best of five learning rates for the"};
const Sweep HEADS = {"heads",
                     {"1", "2", "4", "8"},
                     {{"transformer", "Transformer"}, {"linear_transformer", "Linear Transformer"}},
                     {"1", "1"},
                     "is the best of 1, 2, 4 and 8 heads for the"};

std::string variant_of(const std::string& model, const std::string& option, const std::string& value) {
  return model + ":" + option + "=" + value;
}

double sweep_steps(const Scale& scale) { return scale.full() ? 2000 : 300; }

// Sizes and what is learned; the sweep's own option is each variant's.
std::string sweep_settings(const Scale& scale, const std::string& option) {
  const std::string steps = text(" --steps %.0f", sweep_steps(scale));
  const std::string rate = option == "lr" ? "" : scale.quick() ? " --lr 1e-3" : " --lr 5e-4";
  if (scale.full())
    return " --length 128 --width 192 --layers 12 --batch 320" + steps +
           " --eval-samples 320 --eval-every 10 --stop-at 0.99" + rate;
  if (scale.evening())
    return " --length 16 --width 192 --layers 12 --batch 64" + steps +
           " --eval-samples 64 --eval-every 5 --stop-at 0.99" + rate;
  return " --length 16 --width 64 --layers 4" + steps + " --eval-samples 128 --eval-every 5 --stop-at 0.99" + rate;
}

std::string sweep_size(const Scale& scale) {
  if (scale.full())
    return "The paper's sizes. An evaluation every 10 steps, not at each: a step may be off by 9; a run ends where it "
           "is right on 99 %.";
  if (scale.evening())
    return "The paper's models; strings of 16 letters in place of 128, batch 64 in place of 320, at most 300 steps in "
           "place of 2,000. Three seeds.";
  return "Quick: strings of 16 letters in place of 128, width 64 and 4 blocks in place of 192 and 12, batch 64 in "
         "place of 320, at most 300 steps in place of 2,000. Three seeds.";
}

Cell swept_steps(const Scale& scale, const std::string& variant) {
  const Cell cell{"train/compare.csv", {{"variant", variant}}, "step_99", Cell::Form::STEP, 0};
  return of_seeds(cell, !scale.full());
}

Plan sweep_plan(const Sweep& sweep, const Scale& scale) {
  Plan plan;
  plan.size = sweep_size(scale);
  std::string list;
  for (const std::string& value : sweep.values)
    for (const auto& [model, label] : sweep.models) {
      const std::string variant = variant_of(model, sweep.option, value);
      list += (list.empty() ? "" : ",") + variant;
      plan.rows.push_back({sweep.option == "lr" ? "rate " + value : value + (value == "1" ? " head" : " heads"), "",
                           swept_steps(scale, variant), "", label});
    }
  plan.commands = {{"train", "train_copy", words_of("--compare " + list + sweep_settings(scale, sweep.option))}};
  if (!scale.full()) add_seeds(plan);
  for (size_t m = 0; m < sweep.models.size(); ++m) {
    const std::string &model = sweep.models[m].first, &label = sweep.models[m].second;
    const std::string& best = sweep.best[m];
    const auto side = [&](const std::string& value) {
      return Side{value, swept_steps(scale, variant_of(model, sweep.option, value))};
    };
    Claim claim{best + " " + sweep.says + " " + label,
                {},
                measured_of("Steps to 99 %", !scale.full()) +
                    (scale.quick() ? "; width 64, where the papers' models have 192" : "")};
    if (best == sweep.values.back()) claim.remark += "; no larger one was tried";
    claim.conditions = {
        {side(best), {"", {}, sweep_steps(scale) + 1}}};  // who does not arrive with the best says nothing
    for (const std::string& value : sweep.values)
      if (value != best) claim.checks.push_back({side(best), side(value), 1, SEED_SPREAD});
    plan.claims.push_back(claim);
  }
  plan.pictures = {{"train/compare.svg", "training loss, and accuracy on fresh strings"}};
  return plan;
}

Plan rates(const Scale& scale) { return sweep_plan(RATES, scale); }
Plan heads(const Scale& scale) { return sweep_plan(HEADS, scale); }

}  // namespace

std::vector<Experiment> sweep_experiments() {
  return {
      {"copy-rates", COPYING_PAPER, "appendix D; linear-time paper, appendix B", "Learning rates of copying",
       "The paper: of 1e-5, 5e-5, 1e-4, 5e-4 and 1e-3 the best is 5e-4 for Transformers and 1e-3 for CausalRNs; all "
       "comparisons are at 5e-4.",
       "", "five minutes on two cores", "half an hour on an H100 for each model", rates,
       "a quarter of an hour on two cores"},
      {"copy-heads", COPYING_PAPER, "appendix D; linear-time paper, appendix B", "Heads of the Transformers that copy",
       "The paper: of 1, 2, 4 and 8 heads a single one is the best for both Transformers, at a width of 192.", "",
       "eight minutes on two cores", "half an hour on an H100 for each model", heads,
       "a quarter of an hour on two cores"},
  };
}

}  // namespace petroglyph
