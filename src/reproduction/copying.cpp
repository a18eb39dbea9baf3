// "An All-MLP Sequence Modeling Architecture That Excels at Copying", section 3. Its figures have no numbers beside their curves;
// what its text says of them stands here.

#include "reproduction/experiment.h"

namespace petroglyph {

namespace {

// Quick: strings, widths and depths at which two cores show the effect in seconds, at the rate that is best for the relation
// networks (appendix D). Full: the paper's.
const char* const SMALL =
    " --length 16 --width 64 --layers 4 --hidden 64 --lr 1e-3 --eval-samples 128 --eval-every 5 --steps 300";
const char* const SMALL_SIZE =
    "Quick: strings of 16 letters in place of 128, width 64 and 4 blocks in place of 192 and 12, batch 64 in place of "
    "320, learning rate 1e-3 in place of 5e-4.";
const char* const PAPER =
    " --length 128 --width 192 --layers 12 --batch 320 --lr 5e-4 --steps 2000 --eval-samples 320 --eval-every 10 "
    "--stop-at 2";
const char* const PAPER_SIZE =
    "The paper's sizes. An evaluation every 10 steps, not at each: a step of the paper's curves may be off by 9.";

std::string size_words(const Scale& scale) { return scale.full ? PAPER_SIZE : SMALL_SIZE; }

Cell step_99(const std::string& variant, const std::string& part = "train") {
  return {part + "/compare.csv", {{"variant", variant}}, "step_99", Cell::Form::STEP, 0};
}

Cell last_accuracy(const std::string& variant) {
  return {"train/compare.csv", {{"variant", variant}}, "last_accuracy", Cell::Form::PERCENT, 1};
}

// Variants of the CausalRN, and the step at which each reaches 99 % and the accuracy at its last evaluation.
Plan ablation(const Scale& scale, const std::vector<std::pair<std::string, std::string>>& variants) {
  Plan plan;
  plan.size = size_words(scale);
  std::string list;
  for (const auto& [setting, label] : variants) {
    list += (list.empty() ? "" : ",") + setting;
    plan.rows.push_back({label, "", step_99(setting), "", "steps to 99 %"});
    plan.rows.push_back({label, "", last_accuracy(setting), "", "last accuracy, %"});
  }
  plan.commands = {{"train", "train_copy", words_of("--compare " + list + (scale.full ? PAPER : SMALL))}};
  plan.pictures = {{"train/compare.svg", "training loss, and accuracy on fresh strings"}};
  return plan;
}

Plan post_norm(const Scale& scale) {
  Plan plan = ablation(scale, {{"post-norm=on", "with post-reduction norm"}, {"post-norm=off", "without"}});
  if (!scale.full) {
    plan.rows[0].remark = "as in the paper the norm makes training steadier: it arrives in about half the steps";
    plan.rows[2].remark = "at this size the model still learns without it";
  }
  return plan;
}

Plan pre_norm(const Scale& scale) {
  Plan plan = ablation(
      scale,
      {{"pre-norm=exact", "exact"}, {"pre-norm=approximate", "approximate, μ(x) + μ(y)"}, {"pre-norm=none", "none"}});
  plan.rows[0].paper = "phase change near 200";
  if (!scale.full) {
    plan.rows[0].remark = "the phase change is there, earlier: shorter strings, smaller model, twice the rate";
    plan.rows[3].remark = "no phase change, as in the paper: a slow, even rise";
    plan.rows[5].remark = "as above";
  }
  return plan;
}

Plan activation(const Scale& scale) {
  Plan plan = ablation(scale, {{"activation=exp", "exp"}, {"activation=relu", "ReLU"}, {"activation=elu", "ELU"}});
  plan.rows[2].paper = "gradual descent";
  plan.rows[4].paper = "gradual descent";
  if (!scale.full) plan.rows[2].remark = plan.rows[4].remark = "as in the paper, slower than exp, and no sudden change";
  return plan;
}

Plan curves(const Scale& scale) {
  Plan plan = ablation(scale, {{"causal_rn", "CausalRN"}, {"transformer", "Transformer"}});
  std::vector<std::string>& words = plan.commands[0].words;
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "--hidden") words[i + 1] = "0";  // each model's own: the width, and 4 widths
  plan.rows.insert(plan.rows.begin(), {{"CausalRN", "1.34", {}, "", "parameters, millions"},
                                       {"Transformer", "5.33", {}, "", "parameters, millions"}});
  plan.rows[0].ours = {"train/compare.csv", {{"variant", "causal_rn"}}, "parameters", Cell::Form::MILLIONS, 2};
  plan.rows[1].ours = {"train/compare.csv", {{"variant", "transformer"}}, "parameters", Cell::Form::MILLIONS, 2};
  if (scale.full) {
    plan.rows[0].remark = plan.rows[1].remark = "with embeddings and readout, which the paper does not count";
  } else {
    plan.rows[0].remark = plan.rows[1].remark = "smaller models here";
    plan.rows[2].remark = "both wait, then fall almost at once, as in the paper";
  }
  return plan;
}

const std::vector<std::pair<std::string, std::string>> MODELS = {{"causal_rn", "CausalRN"},
                                                                 {"linear_causal_rn", "Linear CausalRN"},
                                                                 {"transformer", "Transformer"},
                                                                 {"linear_transformer", "Linear Transformer"}};

std::string length_remark(const std::string& model, int length, bool full) {
  if (full) return "";
  if (model == "linear_causal_rn" && length == 32)
    return "reaches 99 % at none of these lengths; its last accuracy falls as strings grow, as in the paper";
  if (model == "linear_transformer" && length == 32)
    return "behind its quadratic sister at each length, as in the paper";
  if (model == "causal_rn" && length == 32) return "before the Transformer at each length, as in the paper";
  return "";
}

Plan lengths(const Scale& scale) {
  Plan plan;
  plan.size = size_words(scale) +
              (scale.full ? "" : " Lengths 8 to 32 in place of 16 to 256, at most 500 steps in place of 2,000.");
  const std::string settings =
      scale.full ? " --width 192 --layers 12 --batch 320 --lr 5e-4 --steps 2000 --eval-samples 320 --eval-every 10 "
                   "--stop-at 0.99"
                 : " --width 64 --layers 4 --lr 1e-3 --steps 500 --eval-samples 128 --eval-every 5 --stop-at 0.99";
  const std::vector<int> all = scale.full ? std::vector<int>{16, 32, 64, 128, 256} : std::vector<int>{8, 16, 24, 32};
  Plot plot{"steps.svg", "Steps to 99 % accuracy", "letters", "steps", {}, true, true};
  std::string list;
  for (const auto& [model, label] : MODELS) list += (list.empty() ? "" : ",") + model;
  for (const int length : all) {
    const std::string part = "length" + std::to_string(length);
    plan.commands.push_back(
        {part, "train_copy", words_of("--compare " + list + " --length " + std::to_string(length) + settings)});
  }
  for (const auto& [model, label] : MODELS) {
    Plot::Curve curve{label, {}};
    for (const int length : all) {
      const Cell cell = step_99(model, "length" + std::to_string(length));
      curve.points.emplace_back(length, cell);
      const bool never = model == "linear_causal_rn" && length >= 128;
      plan.rows.push_back({label, never ? "not in 2,000" : "", cell, length_remark(model, length, scale.full),
                           std::to_string(length) + " letters"});
    }
    plot.curves.push_back(curve);
  }
  plan.plots = {plot};
  return plan;
}

}  // namespace

std::vector<Experiment> copying_experiments() {
  const std::string cost = "half a minute on two cores", hours = "about an hour on a GPU for each model";
  return {
      {"copy-post-norm", COPYING_PAPER, "figure 2 (a)", "Copying without the norm after the sum",
       "The paper: normalization after the sum over the pairs makes training more stable.", "", cost, hours, post_norm},
      {"copy-pre-norm", COPYING_PAPER, "figure 2 (b)", "Copying without the norm before the activation",
       "The paper: only exact normalization of each pair gives a sudden change of phase, near iteration 200: the "
       "memory can no longer be folded into one vector.",
       "", cost, hours, pre_norm},
      {"copy-activation", COPYING_PAPER, "figure 2 (c)", "Copying with other activations",
       "The paper: exp converges fundamentally faster; ReLU and ELU descend slowly and evenly.", "", cost, hours,
       activation},
      {"copy-curves", COPYING_PAPER, "figure 3", "Learning curves of CausalRN and Transformer",
       "The paper: the two curves are very similar: a plateau, then an almost vertical descent.", "", cost, hours,
       curves},
      {"copy-lengths", COPYING_PAPER, "figure 4", "Steps to 99 % against the length of the string",
       "The paper: the CausalRN converges before the Transformer; the linear models do constantly worse, and the "
       "Linear CausalRN does not converge from 128 letters on.",
       "", "two minutes on two cores", "a day on a GPU", lengths},
  };
}

}  // namespace petroglyph
