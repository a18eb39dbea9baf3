// "MLPs for NLP: Towards Discovering Inductive Bias from Scratch": scaling, neurons, contexts, the DCT-MLP and samples. Apart from
// two exponents the paper prints no numbers: its results are pictures.

#include <tuple>

#include "base/text.h"
#include "reproduction/experiment.h"

namespace petroglyph {

namespace {

std::string text_words(const Scale& scale) {
  return scale.text.empty()        ? "stories of a grammar of our own, a token a character"
         : scale.tokenizer.empty() ? "the text of --data, a token a character"
                                   : "the text of --data";
}

// ---- Scaling --------------------------------------------------------------------------------------------------------

std::string compute_size(const Scale& scale) {
  if (scale.full())
    return "The paper's five budgets from 1e16 to 3e18 operations; it gives the range of its sizes, not each.";
  const std::string on =
      " operations in place of 1e16 to 3e18, thousands of parameters in place of 50 to 900 millions, " +
      text_words(scale) + ". Three seeds.";
  return (scale.evening() ? "Budgets from 1e11 to 8e11" : "Quick: budgets from 3e9 to 2.4e10") + on;
}

// At a minimum within the sizes that were tried: beyond them a parabola says nothing.
Side best_loss(const char* label, const char* model, const std::string& budget, const Scale& scale) {
  const Cell loss{
      "train/optima.csv", {{"model", model}, {"budget", budget}, {"inside", "1"}}, "loss", Cell::Form::NUMBER, 3};
  return {label, of_seeds(loss, !scale.full())};
}

// As optima.csv has them.
std::vector<std::string> budgets_of(const Scale& scale) {
  if (scale.full()) return {"1e+16", "4e+16", "1.7e+17", "7e+17", "3e+18"};
  if (scale.evening()) return {"1e+11", "2e+11", "4e+11", "8e+11"};
  return {"3e+09", "6e+09", "1.2e+10", "2.4e+10"};
}

Claim falls_with_compute(const Scale& scale) {
  Claim claim{"with more compute an MLP becomes a better model of text",
              {},
              measured_of("The loss at the minimum of each budget's parabola", !scale.full())};
  const std::vector<std::string> budgets = budgets_of(scale);
  for (size_t i = 0; i + 1 < budgets.size(); ++i)
    claim.checks.push_back({best_loss(budgets[i + 1].c_str(), "mlp_lm", budgets[i + 1], scale),
                            best_loss(budgets[i].c_str(), "mlp_lm", budgets[i], scale)});
  return claim;
}

// rows: a and b of the MLP, and of the Transformer.
std::vector<Claim> claims_on_scaling(const std::vector<Row>& rows, const Scale& scale) {
  constexpr double ALIKE = 1.15;  // times
  const Side mlp{"MLP: a", rows[0].ours}, transformer{"Transformer: a", rows[2].ours};
  const std::string largest = budgets_of(scale).back();
  // Laws of models that know the last few letters only are laws of something else.
  const auto learned = [&](const char* label, const char* model) {
    Side side = best_loss(label, model, largest, scale);
    side.cell.form = Cell::Form::PERPLEXITY;
    return Check{side, counted(4, scale)};
  };
  const std::vector<Check> conditions = {learned("Transformer's perplexity", "transformer"),
                                         learned("MLP's perplexity", "mlp_lm")};
  Claim papers{"the exponents are 0.24 and 0.76", {}, measured_of("Exponents", !scale.full()), conditions};
  for (const Row& row : rows)
    papers.checks.push_back({{row.label, row.ours}, {"", {}, std::stod(row.paper)}, ALIKE, 1, Check::Relation::ALIKE});
  Claim falls = falls_with_compute(scale);
  falls.conditions = {conditions[1]};
  return {{"MLP and Transformer have the same exponents",
           {{mlp, transformer, ALIKE, 1, Check::Relation::ALIKE}},
           measured_of("N_opt ∝ C^a", !scale.full()),
           conditions},
          {"the Transformer has the lower loss",
           {{best_loss("Transformer", "transformer", largest, scale), best_loss("MLP", "mlp_lm", largest, scale)}},
           measured_of("At the minimum of the largest budget's parabola", !scale.full()),
           conditions},
          falls,
          papers};
}

Plan compute(const Scale& scale) {
  Plan plan;
  plan.comparable = true;
  plan.size = compute_size(scale);
  plan.commands = {{"train", "scaling",
                    words_of("--what compute" + text_options(scale) +
                             (scale.full()      ? " --preset paper"
                              : scale.evening() ? " --budgets 1e11,2e11,4e11,8e11 --widths 48,80,128,192,256,384"
                                                : " --budgets 3e9,6e9,1.2e10,2.4e10"))}};
  if (!scale.full()) add_seeds(plan);
  for (const auto& [model, label] : {std::pair("mlp_lm", "MLP"), {"transformer", "Transformer"}}) {
    for (const auto& [quantity, letters, exponent] :
         {std::tuple("parameters", "N_opt ∝ C^a: a", "0.24"), std::tuple("tokens", "D_opt ∝ C^b: b", "0.76")})
      plan.rows.push_back(
          {std::string(label) + ", " + letters, exponent,
           of_seeds({"train/laws.csv", {{"model", model}, {"quantity", quantity}}, "exponent", Cell::Form::NUMBER, 2},
                    !scale.full()),
           ""});
    plan.pictures.push_back({std::string("train/scaling_") + model + ".svg",
                             std::string("figure 1, ") + label + ": the loss at each budget, and the power laws"});
  }
  if (scale.quick() && scale.text.empty())
    plan.rows[0].remark =
        "as in the paper the two exponents add up to 1 by C = 6ND, but here the MLP's and the Transformer's differ; a "
        "small vocabulary of characters and small budgets give other laws than billions of words";
  plan.claims = claims_on_scaling(plan.rows, scale);
  plan.commands.push_back(counts_command(scale));
  plan.listings = {COUNTED_LISTING};
  plan.pictures.push_back({"train/loss.svg", "figure 3: the best loss against compute"});
  plan.tables = {"train/points.csv", "train/optima.csv"};
  return plan;
}

Cell perplexity_at(const std::string& model, const std::string& setting, const std::string& tokens = "") {
  Cell cell{"train/points.csv", {{"model", model}, {"setting", setting}}, "perplexity", Cell::Form::NUMBER, 2};
  if (!tokens.empty()) cell.where.emplace_back("tokens", tokens);
  return cell;
}

Plan contexts(const Scale& scale) {
  Plan plan;
  plan.size = scale.full() ? "The paper's width of 16,384 and 10 billion tokens."
                           : "Quick: width 128 in place of 16,384, 200,000 tokens in place of 10 billion, " +
                                 text_words(scale) + ". Three seeds.";
  const std::vector<std::string> lengths = scale.full() ? std::vector<std::string>{"3", "7", "15", "31", "63", "127"}
                                                        : std::vector<std::string>{"1", "3", "7", "15", "31", "63"};
  plan.commands = {
      {"train", "scaling",
       words_of("--what context" + text_options(scale) +
                (scale.full() ? " --preset paper"
                              : " --widths 128 --tokens 200000 --contexts 1,3,7,15,31,63 --eval-samples 4096"))}};
  if (!scale.full()) add_seeds(plan);
  for (const std::string& length : lengths) {
    const Cell cell = perplexity_at("mlp_lm", length);
    Cell parameters = cell;
    parameters.column = "parameters";
    parameters.form = Cell::Form::MILLIONS;
    parameters.digits = 3;
    plan.rows.push_back({"context " + length, "", of_seeds(cell, !scale.full()), "", "perplexity"});
    plan.rows.push_back({"context " + length, "", parameters, "", "parameters, millions"});
  }
  if (!scale.full() && scale.text.empty())
    plan.rows[8].remark = "worse than 15: 200,000 tokens seem too few to teach a wider first layer what to leave out";
  plan.claims = {{"an MLP's parameters grow with the context",
                  {{{"context " + lengths.front() + ":", plan.rows[1].ours},
                    {"context " + lengths.back() + ":", plan.rows.back().ours}}},
                  "Millions: a matter of counting"}};
  plan.pictures = {{"train/context.svg", "figure 10: perplexity and parameters against the context"}};
  return plan;
}

std::string dct_size(const Scale& scale) {
  if (scale.full()) return "The paper's depths, 16 heads of 4 frequencies, a context of 2,048.";
  const std::string small =
      "width 64, 4 heads of 4 frequencies, a context of 64 in place of 2,048, one rate for both, 2e-3, " +
      text_words(scale);
  return scale.evening() ? "The paper's depths; 6e7 tokens in place of 2e9 to 6e9, " + small + ". Three seeds."
                         : "Quick: " + small + ". Three seeds.";
}

// The depths of both models, and what points.csv says of the tokens: whole steps of 64 windows of 2,048 in the paper's runs.
struct DctSizes {
  std::vector<std::string> deep, shallow;
  std::vector<std::pair<std::string, std::string>> amounts;  // in points.csv, and in words
};

DctSizes dct_sizes(const Scale& scale) {
  if (scale.quick()) return {{"2", "4", "6"}, {"1", "2"}, {{"", ""}}};
  if (scale.evening()) return {{"6", "12", "18"}, {"2", "4", "6"}, {{"", ""}}};
  return {
      {"6", "12", "18"}, {"2", "4", "6"}, {{"2000027648", " after 2e9 tokens"}, {"5999951872", " after 6e9 tokens"}}};
}

std::string dct_settings(const Scale& scale, const DctSizes& sizes) {
  if (scale.full()) return " --preset paper";
  return " --context 64 --tokens " + std::string(scale.evening() ? "6e7" : "1500000") + " --depths " +
         join(sizes.deep, ",") + " --transformer-depths " + join(sizes.shallow, ",") + " --eval-samples " +
         (scale.evening() ? "1024" : "256");
}

Side dct_side(const Scale& scale, const std::string& label, const std::string& depth, const std::string& tokens) {
  Cell cell = perplexity_at(label == "DCT-MLP" ? "dct_mlp" : "transformer", depth, tokens);
  cell.digits = 3;
  return {label + ", depth " + depth, of_seeds(cell, !scale.full())};
}

std::vector<Claim> dct_claims(const Scale& scale, const DctSizes& sizes, const Check& learned) {
  const std::string& tokens = sizes.amounts[0].first;
  const Side transformer = learned.less, as_deep = dct_side(scale, "DCT-MLP", sizes.deep.front(), tokens);
  std::string what = measured_of("Perplexity", !scale.full());
  if (!scale.full()) what += "; a context of 64 in place of 2,048";
  // The paper's: at three times the depth, about three times the parameters.
  return {{"with three times the depth the DCT-MLP matches a small Transformer",
           {{dct_side(scale, "DCT-MLP", sizes.deep.back(), tokens), transformer, 1.05}},
           what,
           {learned},
           false,
           {as_deep}},
          {"the Transformer needs less depth", {{transformer, as_deep}}, what, {learned}}};
}

Plan dct(const Scale& scale) {
  Plan plan;
  plan.size = dct_size(scale);
  const int window = scale.full() ? 2048 : 64;
  const DctSizes sizes = dct_sizes(scale);
  plan.commands = {{"train", "scaling", words_of("--what dct" + text_options(scale) + dct_settings(scale, sizes))}};
  if (!scale.full()) add_seeds(plan);
  plan.commands.push_back(counts_command(scale, window));
  for (const auto& [label, depths] : {std::pair("DCT-MLP", sizes.deep), std::pair("Transformer", sizes.shallow)})
    for (const std::string& depth : depths)
      for (const auto& [tokens, words] : sizes.amounts) {
        const Side side = dct_side(scale, label, depth, tokens);
        plan.rows.push_back({side.label, "", side.cell, "", "perplexity" + words});
      }
  const Side transformer = dct_side(scale, "Transformer", sizes.shallow.back(), sizes.amounts[0].first);
  plan.claims = dct_claims(scale, sizes, {transformer, counted(4, scale, window)});
  plan.listings = {COUNTED_LISTING};
  plan.pictures = {{"train/dct.svg", "figure 9: perplexity against parameters"}};
  plan.tables = {"train/points.csv"};
  return plan;
}

// ---- Neurons --------------------------------------------------------------------------------------------------------

std::vector<PlanPicture> pictures_of_neurons() {
  std::vector<PlanPicture> pictures = {
      {"neurons/types.svg", "figure 4, left: types over training"},
      {"neurons/ratios.svg", "figures 5 and 15: ℓ1/ℓ2, from 1 to √15 = 3.87, at the start, half way and at the end"},
      {"neurons/norms.svg",
       "figure 7, and appendix J over time: norms of the slices at the start, half way and at the end, below them "
       "those of the cosine transforms; a neuron is sparse in it where only its lowest frequencies are large"},
      {"neurons/windows.svg", "figure 6: an example of each type, and its cosine transform"}};
  for (const char* type : {"ngram", "bag_of_words", "hybrid", "dct_sparse", "other"})
    pictures.push_back({std::string("neurons/examples_") + type + ".svg", "figure 12"});
  return pictures;
}

// The part that looks at what another trained: "neurons" of "train", "neurons-T15w256" of "T15w256".
std::string neurons_of(const std::string& part) { return part == "train" ? "neurons" : "neurons-" + part; }

// Neurons of a model that has learned no more than the last few letters, or its text by heart, are not those of a model of text.
Check knows_text(const std::string& label, const Cell& perplexity, const Scale& scale) {
  return {{label + ": perplexity", perplexity}, counted(4, scale)};
}

// For each model that the plan trains.
void add_neurons(Plan& plan) {
  for (const Command& trained : std::vector<Command>(plan.commands))
    plan.commands.push_back(
        {neurons_of(trained.part), "inspect", {"neurons", "@" + trained.part}, Command::Kind::WRITES});
}

Plan neurons(const Scale& scale) {
  Plan plan;
  const std::string steps = scale.full() ? "610351" : "8000";  // 10 billion samples of 16,384 a step
  plan.size = scale.full()
                  ? "The paper's width of 16,384 and 10 billion tokens."
                  : "Quick: an embedding of 64 and a width of 256 in place of 512 and 16,384, " + text_words(scale) +
                        ", 8,000 steps of 256 windows. Three seeds. The heuristics of appendix H, their two variances "
                        "scaled to the embedding.";
  plan.commands = {{"train", "train_text",
                    words_of("--model mlp_lm" + text_options(scale) +
                             (scale.full() ? " --preset base --batch 1024 --accumulate 16 --warmup 61035 --steps " +
                                                 steps + " --snapshots 50000 --eval-every 10000 --sample-length 0"
                                           : " --preset small --width 256 --steps " + steps +
                                                 " --snapshots 1000 --eval-every 1000 --sample-length 0"))}};
  if (scale.quick()) add_seeds(plan);
  add_neurons(plan);
  plan.commands.push_back(counts_command(scale));
  const auto share = [&](const char* column, const std::string& step) {
    return of_seeds({"neurons/types.csv", {{"step", step}}, column, Cell::Form::PERCENT, 1}, scale.quick());
  };
  for (const auto& [column, label] : {std::pair("ngram", "n-gram"),
                                      {"bag_of_words", "bag of words"},
                                      {"hybrid", "hybrid"},
                                      {"dct_sparse", "DCT-sparse"},
                                      {"other", "other"}})
    for (const std::string& step : {std::string("0"), steps})
      plan.rows.push_back({label, "", share(column, step), "", "step " + step + ", %"});
  const bool stories = !scale.full() && scale.text.empty();
  if (stories) {
    plan.rows[1].remark = "n-grams come, as in the paper, though fewer than on WikiText-2 (docs/mlps.md)";
    plan.rows[3].remark = "none: 15 characters are two or three words, and a bag of letters probably tells little";
  }
  const std::string measured = measured_of(stories ? "Stories" : "Text", scale.quick());
  const Cell bags = share("bag_of_words", steps);
  const std::vector<Check> learned = {knows_text("the model", last_perplexity("train", steps, scale.quick()), scale)};
  plan.claims = {{"some neurons become bags of words",
                  {{{"", {}, 0}, {"bags of words, %", bags}}},
                  measured + (scale.full() ? "" : "; of characters, of which a bag tells less than one of words"),
                  learned}};
  plan.pictures = pictures_of_neurons();
  plan.listings = {{"Figures 13 and 14: the words behind neurons", "neurons/words.txt", ""}};
  plan.tables = {"neurons/types.csv", "neurons/ratios.csv"};
  return plan;
}

// Figure 11: one model of `width` for each context, and one for each other width that reads `context` tokens.
struct TypeSizes {
  std::string words, settings, steps;
  std::vector<int> contexts, widths;
  int context, width;
  bool seeds = false;
};

TypeSizes type_sizes(const Scale& scale) {
  const std::vector<int> contexts = {7, 15, 31};
  if (scale.full())
    return {"10 billion tokens; the paper does not say which contexts and widths.",
            " --preset base --batch 1024 --accumulate 16 --warmup 61035",
            "610351",
            contexts,
            {1024, 4096, 16384},
            15,
            16384};
  if (scale.evening())
    return {"An embedding of 128 in place of 512, widths to 8,192 in place of 16,384, " + text_words(scale) +
                ", 5,000 steps of 1,024 windows in place of 10 billion tokens. Three seeds.",
            " --preset tiny",
            "5000",
            contexts,
            {512, 2048, 8192},
            15,
            2048,
            true};
  return {"Quick: an embedding of 64, widths to 1,024 in place of 16,384, " + text_words(scale) +
              ", 3,000 steps of 256 windows. Three seeds.",
          " --preset small",
          "3000",
          contexts,
          {64, 256, 1024},
          15,
          256,
          true};
}

const std::vector<std::pair<const char*, const char*>> TYPES_OF_FIGURE_11 = {
    {"ngram", "n-gram"}, {"bag_of_words", "bag of words"}, {"other", "other"}};

struct TypedModel {
  int context, width;
  std::string part() const { return "T" + std::to_string(context) + "w" + std::to_string(width); }
};

std::vector<TypedModel> typed_models(const TypeSizes& sizes) {
  std::vector<TypedModel> models;
  for (const int context : sizes.contexts) models.push_back({context, sizes.width});
  for (const int width : sizes.widths)
    if (width != sizes.width) models.push_back({sizes.context, width});
  return models;
}

// How many percent of a model's neurons are of a type.
Cell share_of(const TypedModel& model, const char* type, const TypeSizes& sizes) {
  return of_seeds({neurons_of(model.part()) + "/types.csv", {{"step", sizes.steps}}, type, Cell::Form::PERCENT, 1},
                  sizes.seeds);
}

// Of how many tokens a neuron makes something, on average.
Cell large_slices_of(const TypedModel& model, const TypeSizes& sizes) {
  return of_seeds({neurons_of(model.part()) + "/types.csv", {{"step", sizes.steps}}, "large_slices"}, sizes.seeds);
}

std::vector<Plot> plots_of_types(const TypeSizes& sizes) {
  Plot by_context{"contexts.svg", "Types of neurons", "context", "percent", {}, true, false};
  Plot by_width{"widths.svg", "Types of neurons", "width", "percent", {}, true, false};
  for (const auto& [type, label] : TYPES_OF_FIGURE_11) {
    Plot::Curve over_contexts{label, {}}, over_widths{label, {}};
    for (const int context : sizes.contexts)
      over_contexts.points.emplace_back(context, share_of({context, sizes.width}, type, sizes));
    for (const int width : sizes.widths)
      over_widths.points.emplace_back(width, share_of({sizes.context, width}, type, sizes));
    by_context.curves.push_back(over_contexts);
    by_width.curves.push_back(over_widths);
  }
  return {by_context, by_width};
}

// Of 64 neurons, as many as the small embedding has, a share of a quarter is known to a fifth of itself: two of them are alike
// within 1.3 times, and apart beyond 1.3 · 1.5.
std::vector<Claim> claims_on_types(const TypeSizes& sizes, const Scale& scale) {
  constexpr double ALIKE = 1.3;
  const double spread = scale.quick() ? 1.5 : 1;
  const std::string measured = measured_of(std::string("n-grams, %") + (scale.quick()     ? " of 64 neurons"
                                                                        : scale.evening() ? " of 128 neurons"
                                                                                          : ""),
                                           sizes.seeds);
  const auto of_width = [&](int width) {
    return Side{text("width %d", width), share_of({sizes.context, width}, "ngram", sizes)};
  };
  const auto of_context = [&](int context) {
    return Side{text("context %d", context), share_of({context, sizes.width}, "ngram", sizes)};
  };
  const auto learned = [&](const TypedModel& model) {
    return knows_text(text("context %d, width %d", model.context, model.width),
                      last_perplexity(model.part(), sizes.steps, sizes.seeds), scale);
  };
  Claim alike{"the shares of the types are about the same at all widths", {}, measured};
  for (const int width : sizes.widths) alike.conditions.push_back(learned({sizes.context, width}));
  for (const auto& [one, other] : {std::pair(0, 1), {0, 2}, {1, 2}})
    alike.checks.push_back(
        {of_width(sizes.widths[one]), of_width(sizes.widths[other]), ALIKE, spread, Check::Relation::ALIKE});
  // Apart for certain, which no widths are.
  const double apart = ALIKE * spread;
  Claim longer{"a long context changes them, more than a width does", alike.checks,
               measured + "; an n-gram has up to 2 large slices of 7, 5 of 15, 12 of 31"};
  for (const int context : sizes.contexts)
    longer.beside.push_back(
        {text("large slices, context %d", context), large_slices_of({context, sizes.width}, sizes)});
  for (const TypedModel& model : typed_models(sizes)) longer.conditions.push_back(learned(model));
  for (Check& check : longer.checks) check.factor = apart, check.spread = 1;
  longer.checks.insert(longer.checks.begin(), {of_context(sizes.contexts[1]), of_context(sizes.contexts[2]), apart, 1,
                                               Check::Relation::APART});
  Claim most{"most neurons become n-grams or bags of words (figure 4)",
             {},
             measured_of("n-grams and bags, %", sizes.seeds),
             longer.conditions};
  for (const int context : sizes.contexts)
    most.checks.push_back({{"", {}, 50},
                           {text("context %d", context),
                            of_context(context).cell,
                            0,
                            {share_of({context, sizes.width}, "bag_of_words", sizes)}}});
  return {most, alike, longer};
}

Plan types(const Scale& scale) {
  const TypeSizes sizes = type_sizes(scale);
  const std::vector<TypedModel> models = typed_models(sizes);
  Plan plan;
  plan.size = sizes.words;
  for (const TypedModel& model : models)
    plan.commands.push_back(
        {model.part(), "train_text",
         words_of("--model mlp_lm" + text_options(scale) + sizes.settings +
                  text(" --width %d --context %d --steps ", model.width, model.context) + sizes.steps +
                  " --snapshots " + sizes.steps + " --eval-every " + sizes.steps + " --sample-length 0")});
  if (sizes.seeds) add_seeds(plan);
  add_neurons(plan);
  for (const auto& [type, label] : TYPES_OF_FIGURE_11)
    for (const TypedModel& model : models)
      plan.rows.push_back({text("context %d, width %d", model.context, model.width), "", share_of(model, type, sizes),
                           "", std::string(label) + ", %"});
  for (const TypedModel& model : models)
    plan.rows.push_back({text("context %d, width %d", model.context, model.width), "", large_slices_of(model, sizes),
                         "", "large slices"});
  for (const TypedModel& model : models)
    plan.rows.push_back({text("context %d, width %d", model.context, model.width), "",
                         last_perplexity(model.part(), sizes.steps, sizes.seeds), "", "perplexity"});
  plan.commands.push_back(counts_command(scale));
  plan.listings = {COUNTED_LISTING};
  plan.plots = plots_of_types(sizes);
  plan.claims = claims_on_types(sizes, scale);
  return plan;
}

// ---- Samples --------------------------------------------------------------------------------------------------------

struct Writer {
  std::string part, label, words;
};

Plan generations(const Scale& scale) {
  Plan plan;
  plan.size = scale.full()
                  ? "The paper's widths and 10 billion tokens; 64 tokens at temperature 0.5."
                  : "Quick: widths 128 and 512 in place of 8,192 and 16,384 and a Transformer of 2 blocks, each "
                    "sees 15 characters, " +
                        text_words(scale) + ", 1,500 steps. 200 characters at temperature 0.5.";
  const std::string common =
      scale.full() ? " --preset base --batch 1024 --accumulate 16 --warmup 61035 --steps 610351 --eval-every 10000 "
                     "--sample-length 0"
                   : " --preset small --steps 1500 --eval-every 500 --sample-length 0";
  const std::vector<Writer> writers = {
      {"large", "MLP, the larger one", scale.full() ? "--model mlp_lm --width 16384" : "--model mlp_lm --width 512"},
      {"small", "MLP, the smaller one", scale.full() ? "--model mlp_lm --width 8192" : "--model mlp_lm --width 128"},
      {"transformer", "Transformer that sees the same window", "--model transformer --readout last"}};
  if (scale.full())
    plan.model_sizes = {{"transformer", "transformer", 20, "blocks, with an MLP of 8,192; ours are 18.9 million",
                         ModelSize::Counts::BLOCKS, 0.06}};
  const std::string prompt = scale.text.empty()
                                 ? "One winter the old king went to the harbour. There he"
                                 : "The robber pointed his gun at the cashier and demanded money. It was";
  for (const Writer& writer : writers) {
    plan.commands.push_back({writer.part, "train_text", words_of(writer.words + text_options(scale) + common)});
    Command says{writer.part + "-says", "generate", {"@" + writer.part, "--prompt", prompt}, Command::Kind::SAYS};
    for (const std::string& word :
         words_of(std::string("--temperature 0.5 --length ") + (scale.full() ? "64 --quiet" : "200 --quiet")))
      says.words.push_back(word);
    plan.commands.push_back(says);
    plan.listings.push_back({writer.label, writer.part + "-says.log", ""});
    plan.rows.push_back(
        {writer.label + ": loss",
         "",
         {writer.part + "/log.csv", {{"step", scale.full() ? "610351" : "1500"}}, "eval_loss", Cell::Form::NUMBER, 3},
         ""});
  }
  return plan;
}

}  // namespace

std::vector<Experiment> mlp_experiments() {
  const std::string data = "--data TEXT or shards of C4 (data/c4.sh) --tokenizer FOLDER with GPT-2's two files";
  return {
      {"mlp-scaling", MLP_PAPER, "figures 1 and 3", "Loss at fixed compute, and what it is best spent on",
       "The paper: at each budget the loss is about a parabola of log N; MLP and Transformer have the same exponents, "
       "the Transformer the lower loss.",
       data, "ten minutes on two cores", "weeks on a GPU", compute, "an hour or two on two cores", WIKITEXT_2},
      {"mlp-neurons", MLP_PAPER, "figures 4 to 7 and 12 to 15, appendix J", "What the first layer's neurons become",
       "The paper: most become n-grams, early, or bags of words, gradually; ℓ1/ℓ2 over time becomes bimodal between 1 "
       "and √15 = 3.87; what remains is sparse in the cosine transform.",
       data, "a minute on two cores", "days on a GPU", neurons},
      {"mlp-types", MLP_PAPER, "figure 11", "Types of neurons against context and width",
       "The paper: the shares of the types are about the same in different settings; a long context changes them most.",
       data, "five minutes on two cores", "weeks on a GPU", types, "one to three hours on two cores", WIKITEXT_2},
      {"mlp-context", MLP_PAPER, "figure 10", "Perplexity and parameters against the context",
       "The paper: parameters grow with the context, which makes long ones impractical for an MLP.", data,
       "a minute on two cores", "weeks on a GPU", contexts},
      {"mlp-dct", MLP_PAPER, "figure 9", "DCT-MLP against a small Transformer",
       "The paper: with about three times the parameters and depth the DCT-MLP matches a small Transformer; on three "
       "times the data with 1.5 times.",
       data, "four minutes on two cores", "days on a GPU", dct, "four hours on two cores", WIKITEXT_2},
      {"mlp-generations", MLP_PAPER, "appendix A", "Samples of two MLPs and a Transformer",
       "The paper shows samples of three models, to look at.", data, "two minutes on two cores", "days on a GPU",
       generations},
  };
}

}  // namespace petroglyph
