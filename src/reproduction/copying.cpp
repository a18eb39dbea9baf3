// "An All-MLP Sequence Modeling Architecture That Excels at Copying", section 3. Its figures have no numbers beside their curves;
// what its text says of them stands here.

#include <algorithm>

#include "base/text.h"
#include "reproduction/experiment.h"

namespace petroglyph {

namespace {

// Quick: strings, widths and depths at which two cores show the effect in seconds, at the rate that is best for the relation
// networks (appendix D). Full: the paper's.
const char* const COPY_QUICK =
    " --length 16 --width 64 --layers 4 --hidden 64 --lr 1e-3 --eval-samples 128 --eval-every 5 --steps 300";
const char* const COPY_QUICK_SIZE =
    "Quick: strings of 16 letters in place of 128, width 64 and 4 blocks in place of 192 and 12, batch 64 in place of "
    "320, learning rate 1e-3 in place of 5e-4, 300 steps in place of 2,000.";
// Of figure 4, whose lengths are several.
const char* const LENGTHS_QUICK_SIZE =
    "Quick: 8 to 32 letters in place of 16 to 256, width 64 and 4 blocks in place of 192 and 12, batch 64 in place of "
    "320, learning rate 1e-3 in place of 5e-4, at most 500 steps in place of 2,000. Three seeds.";
const char* const COPY_FULL =
    " --length 128 --width 192 --layers 12 --batch 320 --lr 5e-4 --steps 2000 --eval-samples 320 --eval-every 10 "
    "--stop-at 2";
// With 320 strings a step the CausalRN takes 20 seconds for it on two cores with AVX2: three hours for each variant that does
// not learn.
const char* const COPY_EVENING =
    " --length 128 --width 192 --layers 12 --batch 32 --lr 5e-4 --steps 500 --eval-samples 32 --eval-every 20 "
    "--stop-at 0.99";
// Figure 3, whose two models do.
const char* const CURVES_EVENING =
    " --length 128 --width 192 --layers 12 --batch 320 --lr 5e-4 --steps 500 --eval-samples 64 --eval-every 5 "
    "--stop-at 0.99";
const char* const COPY_FULL_SIZE =
    "The paper's sizes. An evaluation every 10 steps, not at each: a step may be off by 9; log.csv has the training "
    "accuracy, which is on fresh strings too, of every step.";
const char* const COPY_EVENING_SIZE =
    "The paper's models, strings and rate; batch 32 in place of 320, at most 500 steps in place of 2,000, evaluated "
    "every 20 steps.";

// Once more with a tenth of the batch, until nothing is wrong.
const char* const PERFECT_EVENING =
    "--compare causal_rn,transformer --length 128 --width 192 --layers 12 --batch 32 --lr 5e-4 --steps 2000 "
    "--eval-samples 320 --eval-every 20 --stop-at 1";
const char* const CURVES_EVENING_SIZE =
    "The paper's models, strings, batch and rate; until 99 % of the letters of 64 strings are right, at most 500 steps "
    "in place of 2,000, evaluated every 5 steps. And with batch 32 in place of 320, until all letters of 320 strings "
    "are right, in at most 2,000 steps, evaluated every 20.";

struct CopySizes {
  std::string words, settings;
};
CopySizes sizes_of(const Scale& scale) {
  if (scale.full()) return {COPY_FULL_SIZE, COPY_FULL};
  return scale.evening() ? CopySizes{COPY_EVENING_SIZE, COPY_EVENING} : CopySizes{COPY_QUICK_SIZE, COPY_QUICK};
}

Cell step_99(const std::string& variant, const std::string& part = "train") {
  return {part + "/compare.csv", {{"variant", variant}}, "step_99", Cell::Form::STEP, 0};
}

Cell last_accuracy(const std::string& variant, const std::string& part = "train") {
  return {part + "/compare.csv", {{"variant", variant}}, "last_accuracy", Cell::Form::PERCENT, 1};
}

// Of three seeds where they are short enough.
Cell step_99_of(const std::string& variant, bool seeds) { return of_seeds(step_99(variant), seeds); }

// Variants of the CausalRN, and the step at which each reaches 99 % and the accuracy at its last evaluation.
Plan ablation(const CopySizes& sizes, const std::vector<std::pair<std::string, std::string>>& variants, bool seeds) {
  Plan plan;
  plan.size = sizes.words + (seeds ? " Three seeds." : "");
  std::string list;
  for (const auto& [setting, label] : variants) {
    list += (list.empty() ? "" : ",") + setting;
    plan.rows.push_back({label, "", step_99_of(setting, seeds), "", "steps to 99 %"});
    plan.rows.push_back({label, "", of_seeds(last_accuracy(setting), seeds), "", "last accuracy, %"});
  }
  plan.commands = {{"train", "train_copy", words_of("--compare " + list + sizes.settings)}};
  if (seeds) add_seeds(plan);
  plan.pictures = {{"train/compare.svg", "training loss, and accuracy on fresh strings"}};
  return plan;
}

// That the first of the variants is at 99 % before the others.
Claim first_is_before(const std::string& says, const std::vector<std::pair<std::string, std::string>>& variants,
                      bool seeds) {
  Claim claim{says, {}, measured_of("Steps to 99 %", seeds)};
  for (size_t i = 1; i < variants.size(); ++i)
    claim.checks.push_back({{variants[0].second, step_99_of(variants[0].first, seeds)},
                            {variants[i].second, step_99_of(variants[i].first, seeds)},
                            1,
                            SEED_SPREAD});
  return claim;
}

// Variants of which the paper says that the first is the better one.
Plan figure_2(const Scale& scale, const std::string& says,
              const std::vector<std::pair<std::string, std::string>>& variants) {
  const bool seeds = !scale.full();
  Plan plan = ablation(sizes_of(scale), variants, seeds);
  plan.claims = {first_is_before(says, variants, seeds)};
  return plan;
}

Plan post_norm(const Scale& scale) {
  Plan plan = figure_2(scale, "with normalization after the sum training arrives sooner (the paper: is more stable)",
                       {{"post-norm=on", "with post-reduction norm"}, {"post-norm=off", "without"}});
  plan.claims[0].remark += ": that, and not stability itself, is what is measured";
  if (scale.evening()) {
    plan.claims[0].remark += "; without it the loss begins to fall as soon, and then all but stops";
    plan.claims[0].beside = {{"last accuracy without it, %", of_seeds(last_accuracy("post-norm=off"))}};
  }
  if (scale.quick()) {
    plan.rows[0].remark = "it arrives in about half the steps";
    plan.rows[2].remark = "at this size the model still learns without it";
  }
  return plan;
}

// A plateau, and then an almost vertical descent: that in so many times the steps to 50 % a model is at 99 %.
constexpr double SUDDENLY = 1.5;

Side step_50_of(const std::string& label, const std::string& variant, bool seeds) {
  Cell half = step_99(variant);
  half.column = "step_50";
  return {label + ", to 50 %", of_seeds(half, seeds)};
}

Check falls_suddenly(const std::string& label, const std::string& variant, bool seeds) {
  Check check{{label, step_99_of(variant, seeds)}, step_50_of(label, variant, seeds), SUDDENLY};
  check.of_one_run = true;
  return check;
}

// Sudden with the exact norm, and before the others have half of the letters: who never has says nothing else of "only".
Claim change_of_phase(const std::vector<std::pair<std::string, std::string>>& variants, bool seeds) {
  const auto& [exact, label] = variants[0];
  Claim claim{"only exact normalization of each pair gives a sudden change of phase",
              {falls_suddenly(label, exact, seeds)},
              measured_of("Steps to 99 %", seeds)};
  for (size_t i = 1; i < variants.size(); ++i)
    claim.checks.push_back(
        {{label, step_99_of(exact, seeds)}, step_50_of(variants[i].second, variants[i].first, seeds), 1, SEED_SPREAD});
  return claim;
}

Plan pre_norm(const Scale& scale) {
  const bool seeds = !scale.full();
  const std::vector<std::pair<std::string, std::string>> variants = {
      {"pre-norm=exact", "exact"}, {"pre-norm=approximate", "approximate, μ(x) + μ(y)"}, {"pre-norm=none", "none"}};
  Plan plan = ablation(sizes_of(scale), variants, seeds);
  plan.claims = {change_of_phase(variants, seeds)};
  plan.claims[0].remark +=
      "; but on 16 letters, at width 192 and batch 320, the Linear CausalRN, whose norm is approximate, rises from 50 "
      "to 90 % in 10 to 15 steps, too, though not to 99 % within 1.5 times; on 128 it rises for 2,000 steps "
      "(copy-lengths --evening)";
  plan.rows[0].paper = "phase change near 200";
  if (scale.quick()) {
    plan.rows[0].remark = "the phase change is there, earlier: shorter strings, smaller model, twice the rate";
    plan.rows[3].remark = "no phase change, as in the paper: a slow, even rise";
    plan.rows[5].remark = "as above";
  }
  return plan;
}

Plan activation(const Scale& scale) {
  Plan plan = figure_2(scale, "exp converges fundamentally faster than ReLU and ELU",
                       {{"activation=exp", "exp"}, {"activation=relu", "ReLU"}, {"activation=elu", "ELU"}});
  if (scale.evening()) {
    plan.claims[0].remark += ": by then ReLU and ELU have hardly begun; one who guesses has 3.8 % of the letters";
    plan.claims[0].beside = {{"last accuracy with ReLU, %", of_seeds(last_accuracy("activation=relu"))},
                             {"with ELU, %", of_seeds(last_accuracy("activation=elu"))}};
  }
  plan.rows[2].paper = "gradual descent";
  plan.rows[4].paper = "gradual descent";
  if (scale.quick())
    plan.rows[2].remark = plan.rows[4].remark = "as in the paper, slower than exp, and no sudden change";
  return plan;
}

// Both arrive, suddenly, neither in many more steps than the other.
Claim curves_are_alike(const Scale& scale) {
  constexpr double MANY = 1.5;
  const bool seeds = !scale.full();
  const Side relation{"CausalRN", step_99_of("causal_rn", seeds)},
      transformer{"Transformer", step_99_of("transformer", seeds)};
  return {"the learning curves of CausalRN and Transformer are very similar",
          {{relation, transformer, MANY, 1, Check::Relation::ALIKE},
           falls_suddenly("CausalRN", "causal_rn", seeds),
           falls_suddenly("Transformer", "transformer", seeds)},
          measured_of("Steps to 99 %", seeds) +
              (scale.evening() ? "; with 320 strings a step training ends there, the paper's goes on" : "")};
}

// In the paper, after 2,000 steps, both models are right on everything (appendix D). In the evening the plan gets runs that end
// there, with as many strings a step as two cores can train on for so long.
Claim makes_no_mistakes(Plan& plan, const Scale& scale) {
  constexpr double ALL = 99.9999;  // percent: a letter of 40,960 is 0.0024
  const std::string part = scale.full() ? "train" : "perfect";
  Claim claim{"both come to be right on all letters of an evaluation (appendix D)",
              {},
              measured_of("Of 320 fresh strings, %", scale.evening())};
  if (scale.quick()) return claim;
  for (const auto& [model, label] : {std::pair("causal_rn", "CausalRN"), {"transformer", "Transformer"}}) {
    Cell last = of_seeds(last_accuracy(model, part), scale.evening()), steps = of_seeds(step_99(model, part));
    last.digits = 2;
    claim.checks.push_back({{"a letter less than", {}, ALL}, {label, last}});
    if (scale.full()) continue;
    steps.column = "last_step";
    steps.form = Cell::Form::NUMBER;
    plan.rows.push_back({std::string(label) + ", batch 32", "", steps, "", "last step, of at most 2,000"});
    plan.rows.push_back({std::string(label) + ", batch 32", "100", last, "", "last accuracy, %"});
    claim.beside.push_back({std::string(label) + ", 32 strings a step: at step", steps});
  }
  if (scale.full()) return claim;
  for (const std::string& seed : {std::string(), OTHER_SEEDS[0], OTHER_SEEDS[1]})
    plan.commands.push_back({seed.empty() ? part : seed_part(part, seed), "train_copy",
                             words_of(PERFECT_EVENING + (seed.empty() ? std::string() : " --seed " + seed))});
  return claim;
}

Plan curves(const Scale& scale) {
  constexpr ModelSize::Counts BLOCKS = ModelSize::Counts::BLOCKS;
  const CopySizes sizes = scale.evening() ? CopySizes{CURVES_EVENING_SIZE, CURVES_EVENING} : sizes_of(scale);
  Plan plan = ablation(sizes, {{"causal_rn", "CausalRN"}, {"transformer", "Transformer"}}, !scale.full());
  for (Command& command : plan.commands)
    for (size_t i = 0; i + 1 < command.words.size(); ++i)
      if (command.words[i] == "--hidden") command.words[i + 1] = "0";  // each model's own: the width, and 4 widths
  plan.rows.insert(plan.rows.begin(), {{"CausalRN", "1.34", {}, "", "parameters, millions"},
                                       {"Transformer", "5.33", {}, "", "parameters, millions"}});
  plan.rows[0].ours = {"train/compare.csv", {{"variant", "causal_rn"}}, "parameters", Cell::Form::MILLIONS, 2};
  plan.rows[1].ours = {"train/compare.csv", {{"variant", "transformer"}}, "parameters", Cell::Form::MILLIONS, 2};
  if (!scale.quick())
    plan.model_sizes = {{"train", "causal_rn", 1.34, "blocks and readout, 1,331,712 + 5,568 here", BLOCKS},
                        {"train", "transformer", 5.33, "blocks", BLOCKS}};
  if (scale.quick()) {
    plan.rows[0].remark = plan.rows[1].remark = "smaller models here";
    plan.rows[2].remark = "both wait, then fall almost at once, as in the paper";
  } else {
    plan.rows[0].remark = "the paper's number is of blocks and readout, 1,331,712 + 5,568; ours has the embeddings too";
    plan.rows[1].remark = "the paper's number is of the blocks, 5,329,152; ours has embeddings and readout too";
  }
  Claim copies{"a CausalRN learns to copy 128 letters", {}};
  if (!scale.quick())
    copies.checks = {
        {{"", {}, 99},
         {"last accuracy on fresh strings of 128 letters, %", of_seeds(last_accuracy("causal_rn"), !scale.full())}}};
  plan.claims = {curves_are_alike(scale), copies, makes_no_mistakes(plan, scale)};
  return plan;
}

const std::vector<std::pair<std::string, std::string>> MODELS = {{"causal_rn", "CausalRN"},
                                                                 {"linear_causal_rn", "Linear CausalRN"},
                                                                 {"transformer", "Transformer"},
                                                                 {"linear_transformer", "Linear Transformer"}};

std::string length_remark(const std::string& model, int length) {
  if (length != 32) return "";
  if (model == "linear_causal_rn")
    return "reaches 99 % of 8 letters only, and not with each seed; its last accuracy falls as strings grow";
  if (model == "linear_transformer") return "behind its quadratic sister at each length, as in the paper";
  return model == "causal_rn"
             ? "on 24 and 32 letters each seed before each of the Transformer's; on 8 and 16 they overlap"
             : "";
}

// From this length on the paper's Linear CausalRN does not learn to copy within its steps.
constexpr int UNLEARNED_LENGTH = 128;
constexpr int PAPER_STEPS = 2000;
constexpr int PAPER_BATCH = 320, QUICK_BATCH = 64;
const char* const FOUR_MODELS = "causal_rn,linear_causal_rn,transformer,linear_transformer";

// What the paper says of one of its curves; the others have no numbers.
std::string said_of(const std::string& model, int length) {
  return model == "linear_causal_rn" && length >= UNLEARNED_LENGTH ? "not in 2,000" : "";
}

// Models that learn to copy strings of one length.
struct LengthRun {
  std::string part;
  int length;
  std::string models;
  int batch;
  std::string settings;
  bool beside = false;  // has another batch than the figure at this length: stands in the table only

  bool trains(const std::string& model) const {
    const std::vector<std::string> all = split(models, ',');
    return std::find(all.begin(), all.end(), model) != all.end();
  }
};

LengthRun paper_run(const std::string& part, int length, const std::string& models, int batch,
                    const std::string& settings) {
  return {part, length, models, batch,
          " --width 192 --layers 12 --lr 5e-4 --stop-at 0.99 --batch " + std::to_string(batch) + settings};
}

// Models of a run that were trained with other seeds, too, and the part that these go by: its own, or one for these models.
struct Again {
  std::string part, models;
};

void add_other_seeds(std::vector<LengthRun>& runs, LengthRun run, const Again& again) {
  run.models = again.models;
  const std::string settings = run.settings;
  for (const std::string& seed : OTHER_SEEDS) {
    run.part = seed_part(again.part, seed);
    run.settings = settings + " --seed " + seed;
    runs.push_back(run);
  }
}

LengthRun beside(LengthRun run) { return run.beside = true, run; }

// At 16 to 64 letters the paper's batch; at 128 and 256 a tenth of it, and 128 for the linear models once more with all of it (that
// of the others is in figure 3). The shorter strings with the tenth, too. Three seeds each.
std::vector<LengthRun> evening_length_runs() {
  const std::string quadratic = "causal_rn,transformer", linear = "linear_causal_rn,linear_transformer",
                    papers = " --steps " + std::to_string(PAPER_STEPS), rarely = " --eval-samples 32 --eval-every 20",
                    every5 = " --steps 1000 --eval-samples 64 --eval-every 5", every20 = " --steps 1000" + rarely,
                    every10 = papers + " --eval-samples 64 --eval-every 10";
  constexpr int WHOLE = PAPER_BATCH, TENTH = PAPER_BATCH / 10;
  std::vector<LengthRun> runs;
  for (const std::string seed : {"1", "2", "3"})
    runs.push_back(
        paper_run("seed" + seed, 16, quadratic, WHOLE, " --steps 500 --eval-samples 64 --eval-every 1 --seed " + seed));
  const std::vector<std::pair<LengthRun, std::vector<Again>>> others = {
      {paper_run("linear16", 16, linear, WHOLE, every5), {{"linear16", linear}}},
      {paper_run("whole32", 32, FOUR_MODELS, WHOLE, every5), {{"whole32", quadratic}, {"linear32", linear}}},
      {paper_run("whole64", 64, FOUR_MODELS, WHOLE, every5),
       {{"whole64", quadratic}, {"whole-linear64", "linear_causal_rn"}, {"attention64", "linear_transformer"}}},
      {beside(paper_run("length32", 32, FOUR_MODELS, TENTH, every20)), {{"length32", FOUR_MODELS}}},
      {beside(paper_run("length64", 64, FOUR_MODELS, TENTH, every20)), {{"length64", quadratic}, {"linear64", linear}}},
      {paper_run("length128", 128, FOUR_MODELS, TENTH, every20),
       {{"length128", quadratic}, {"length-linear128", linear}}},
      {paper_run("length256", 256, quadratic, TENTH, papers + rarely), {{"length256", quadratic}}},
      {paper_run("linear256", 256, linear, TENTH, papers + rarely), {{"linear256", linear}}},
      {beside(paper_run("linear128", 128, "linear_causal_rn", WHOLE, every10)), {{"linear128", "linear_causal_rn"}}},
      {beside(paper_run("attention128", 128, "linear_transformer", WHOLE, every10)),
       {{"attention128", "linear_transformer"}}},
  };
  for (const auto& [run, again] : others) {
    runs.push_back(run);
    for (const Again& models : again) add_other_seeds(runs, run, models);
  }
  return runs;
}

std::vector<LengthRun> length_runs(const Scale& scale) {
  if (scale.evening()) return evening_length_runs();
  std::vector<LengthRun> runs;
  if (scale.quick())
    for (const int length : {8, 16, 24, 32}) {
      runs.push_back({"length" + std::to_string(length), length, FOUR_MODELS, QUICK_BATCH,
                      " --width 64 --layers 4 --lr 1e-3 --steps 500 --eval-samples 128 --eval-every 5 --stop-at 0.99"});
      const LengthRun first = runs.back();
      add_other_seeds(runs, first, {first.part, FOUR_MODELS});
    }
  if (scale.full())
    for (const int length : {16, 32, 64, 128, 256})
      runs.push_back(paper_run("length" + std::to_string(length), length, FOUR_MODELS, PAPER_BATCH,
                               " --steps " + std::to_string(PAPER_STEPS) + " --eval-samples 320 --eval-every 10"));
  return runs;
}

// A length and a batch: a column of the figure, or beside it.
struct LengthAndBatch {
  int length, batch;
};

// Each once, of the figure or of what stands beside it.
std::vector<LengthAndBatch> lengths_of(const std::vector<LengthRun>& runs, bool beside) {
  std::vector<LengthAndBatch> all;
  for (const LengthRun& run : runs) {
    const bool known = std::any_of(all.begin(), all.end(), [&](const LengthAndBatch& one) {
      return one.length == run.length && one.batch == run.batch;
    });
    if (run.beside == beside && !known) all.push_back({run.length, run.batch});
  }
  return all;
}

// The step of a model there, or what else `of` reads of a part, of all seeds that were run.
Cell length_cell(const std::vector<LengthRun>& runs, const std::string& model, const LengthAndBatch& at,
                 Cell (*of)(const std::string& model, const std::string& part) = step_99) {
  Cell cell;
  for (const LengthRun& run : runs) {
    if (run.length != at.length || run.batch != at.batch || !run.trains(model)) continue;
    if (cell.file.empty()) {
      cell = of(model, run.part);
    } else {
      cell.others.push_back(run.part + "/compare.csv");
    }
  }
  return cell;
}

void add_length_claims(Plan& plan, const std::vector<LengthRun>& runs, const Scale& scale) {
  Claim first{"the CausalRN converges before the Transformer", {}, "Steps to 99 %"};
  Claim linear{"the linear models do constantly worse", {}};
  const auto compare = [&](const LengthAndBatch& at, const std::string& letters, bool in_figure) {
    const auto side = [&](const char* label, const char* model) {
      return Side{letters + ": " + label, length_cell(runs, model, at)};
    };
    const Side relation = side("CausalRN", "causal_rn"), transformer = side("Transformer", "transformer");
    if (relation.cell.file.empty()) return;
    if (in_figure) first.checks.push_back({relation, transformer, 1, SEED_SPREAD});
    linear.checks.push_back({relation, side("Linear CausalRN", "linear_causal_rn"), 1, SEED_SPREAD});
    linear.checks.push_back({transformer, side("Linear Transformer", "linear_transformer"), 1, SEED_SPREAD});
  };
  for (const LengthAndBatch& at : lengths_of(runs, false)) compare(at, std::to_string(at.length) + " letters", true);
  for (const LengthAndBatch& at : lengths_of(runs, true))
    compare(at, std::to_string(at.length) + " letters, batch " + std::to_string(at.batch), false);
  if (scale.evening())
    first.remark +=
        "; the Transformer comes first with 16 and 32 letters and with 32 strings of 64, the CausalRN with 256 letters "
        "and with 320 strings of 128 (copy-curves --evening); with 320 strings of 64 and 32 of 128 the seeds overlap";
  plan.claims = {first, linear};
}

// With as many steps as the paper's, and at 128 letters, where with a tenth of its batch there are half of them, with all of it. That
// shorter strings are learned shows that it is not the model that cannot.
void add_unlearned_claim(Plan& plan, const std::vector<LengthRun>& runs, const Scale& scale) {
  Claim claim{"the Linear CausalRN does not converge on strings of 128 letters and more",
              {},
              measured_of("Steps to 99 %", scale.evening()) + ", with the approximate norm"};
  const std::string model = "linear_causal_rn";
  for (const bool beside : {false, true})
    for (const LengthAndBatch& at : lengths_of(runs, beside)) {
      const Cell step = length_cell(runs, model, at);
      if (step.file.empty() || at.length < UNLEARNED_LENGTH) continue;
      const std::string letters = text("%d letters, %d strings a step", at.length, at.batch);
      if (at.batch < PAPER_BATCH && at.length == UNLEARNED_LENGTH) continue;
      claim.checks.push_back({{"", {}, PAPER_STEPS}, {letters + ":", step}});
      claim.beside.push_back({letters + ": last accuracy, %", length_cell(runs, model, at, last_accuracy)});
    }
  const LengthAndBatch learned = scale.quick() ? LengthAndBatch{16, QUICK_BATCH} : LengthAndBatch{64, PAPER_BATCH};
  claim.conditions = {
      {{std::to_string(learned.length) + " letters:", length_cell(runs, model, learned)}, {"", {}, PAPER_STEPS}}};
  plan.claims.push_back(claim);
}

// Rows of the runs that are not the figure's.
void add_runs_beside(Plan& plan, const std::vector<LengthRun>& runs) {
  for (const LengthAndBatch& at : lengths_of(runs, true)) {
    const std::string letters = std::to_string(at.length) + " letters";
    for (const auto& [model, name] : MODELS) {
      const Cell cell = length_cell(runs, model, at);
      if (cell.file.empty()) continue;
      const std::string label = name + ", batch " + std::to_string(at.batch);
      plan.rows.push_back({label, said_of(model, at.length), cell, "", letters});
      if (at.length < UNLEARNED_LENGTH) continue;
      const std::string part = cell.file.substr(0, cell.file.find('/'));
      plan.rows.push_back({label + ", last accuracy, %", "", length_cell(runs, model, at, last_accuracy), "", letters});
      plan.pictures.push_back({part + "/compare.svg", text("%s, %s: training loss, and accuracy on fresh strings",
                                                           label.c_str(), letters.c_str())});
    }
  }
}

Plan lengths(const Scale& scale) {
  Plan plan;
  plan.size = scale.quick() ? LENGTHS_QUICK_SIZE : sizes_of(scale).words;
  if (scale.evening())
    plan.size =
        "The paper's models and rate; to 64 letters its batch of 320; at 128 and 256 batch 32, evaluated every 20 "
        "steps; to 128 letters at most 1,000 steps in place of 2,000. Beside the figure: 32 and 64 letters with batch "
        "32, and at 128 the linear models with 320 and 2,000 steps. The mean of three seeds, the first and the last to "
        "arrive.";
  const std::vector<LengthRun> runs = length_runs(scale);
  for (const LengthRun& run : runs)
    plan.commands.push_back(
        {run.part, "train_copy",
         words_of("--compare " + run.models + " --length " + std::to_string(run.length) + run.settings)});
  const char* const letters = scale.evening() ? "letters; 320 strings a step, from 128 letters on 32" : "letters";
  Plot plot{"steps.svg", "Steps to 99 % accuracy", letters, "steps", {}, true, true};
  for (const auto& [model, label] : MODELS) {
    Plot::Curve curve{label, {}};
    for (const LengthAndBatch& at : lengths_of(runs, false)) {
      const Cell cell = length_cell(runs, model, at);
      curve.points.emplace_back(at.length, cell);
      plan.rows.push_back({label, said_of(model, at.length), cell, scale.quick() ? length_remark(model, at.length) : "",
                           std::to_string(at.length) + " letters"});
    }
    plot.curves.push_back(curve);
  }
  plan.plots = {plot};
  add_length_claims(plan, runs, scale);
  add_unlearned_claim(plan, runs, scale);
  add_runs_beside(plan, runs);
  return plan;
}

}  // namespace

std::vector<Experiment> copying_experiments() {
  const std::string cost = "a few minutes on two cores", gpu = "about five minutes on an H100 for each model",
                    evening = "an hour or two on two cores";
  return {
      {"copy-post-norm", COPYING_PAPER, "figure 2 (a)", "Copying without the norm after the sum",
       "The paper: normalization after the sum over the pairs makes training more stable.", "", cost, gpu, post_norm,
       evening},
      {"copy-pre-norm", COPYING_PAPER, "figure 2 (b)", "Copying without the norm before the activation",
       "The paper: only exact normalization of each pair gives a sudden change of phase, near iteration 200: the "
       "memory can no longer be folded into one vector.",
       "", cost, gpu, pre_norm, evening},
      {"copy-activation", COPYING_PAPER, "figure 2 (c)", "Copying with other activations",
       "The paper: exp converges fundamentally faster; ReLU and ELU descend slowly and evenly.", "", cost, gpu,
       activation, evening},
      {"copy-curves", COPYING_PAPER, "figure 3", "Learning curves of CausalRN and Transformer",
       "The paper: the two curves are very similar: a plateau, then an almost vertical descent.", "", cost, gpu, curves,
       "seven hours on two cores"},
      {"copy-lengths", COPYING_PAPER, "figure 4", "Steps to 99 % against the length of the string",
       "The paper: the CausalRN converges before the Transformer; the linear models do constantly worse, and the "
       "Linear CausalRN does not converge from 128 letters on.",
       "", "six minutes on two cores", "about an hour on an H100", lengths, "forty hours on two cores"},
  };
}

}  // namespace petroglyph
