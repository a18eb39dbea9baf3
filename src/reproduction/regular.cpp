// "Transformer Working Memory Enables Regular Language Reasoning and Natural Language Length Extrapolation": tables 1, 2 and 3,
// figures 3 and 4.

#include <algorithm>
#include <map>
#include <tuple>

#include "base/text.h"
#include "reproduction/experiment.h"

namespace petroglyph {

namespace {

// ---- Table 1 --------------------------------------------------------------------------------------------------------

struct Language {
  std::string name, label;
  std::string rnn, transformer, two, three;  // best / mean of three seeds, as in the table
};
const std::vector<Language> LANGUAGES = {
    {"even_pairs", "Even Pairs", "100.0 / 100.0", "99.7 / 73.2", "100.0 / 89.3", "100.0 / 96.6"},
    {"modular_arithmetic", "Modular Arithmetic", "100.0 / 100.0", "21.9 / 20.3", "96.4 / 82.6", "21.2 / 20.5"},
    {"parity_check", "Parity Check", "100.0 / 98.9", "52.3 / 50.1", "100.0 / 100.0", "100.0 / 88.7"},
    {"cycle_navigation", "Cycle Navigation", "100.0 / 100.0", "21.7 / 20.6", "100.0 / 100.0", "100.0 / 78.6"},
    {"D_2", "D_2", "100.0 / 100.0", "100.0 / 80.1", "100.0 / 100.0", "99.8 / 96.5"},
    {"D_3", "D_3", "100.0 / 100.0", "100.0 / 77.8", "100.0 / 99.7", "98.6 / 93.0"},
    {"D_4", "D_4", "100.0 / 100.0", "100.0 / 82.6", "100.0 / 98.7", "97.7 / 91.6"},
    {"D_12", "D_12", "100.0 / 100.0", "100.0 / 80.3", "100.0 / 99.8", "94.1 / 90.4"},
    {"Tomita_3", "Tomita 3", "100.0 / 100.0", "100.0 / 94.4", "100.0 / 99.7", "100.0 / 99.9"},
    {"Tomita_4", "Tomita 4", "100.0 / 100.0", "100.0 / 70.0", "100.0 / 99.8", "100.0 / 99.3"},
    {"Tomita_5", "Tomita 5", "100.0 / 100.0", "74.5 / 74.5", "100.0 / 99.8", "98.2 / 84.1"},
    {"Tomita_6", "Tomita 6", "100.0 / 100.0", "50.0 / 50.0", "100.0 / 98.5", "100.0 / 65.7"},
};

struct Recognizer {
  std::string part, label, words;
  std::string Language::*paper;
  std::string quick, evening;      // what it learns for
  std::vector<std::string> again;  // in the evening with seeds 2 and 3, too: what is not at 100.0 with the first
};
const std::vector<Recognizer> RECOGNIZERS = {
    {"regular_gpt",
     "RegularGPT C = 2",
     "--model regular_gpt --chunk 2",
     &Language::two,
     "--steps 1300",
     "--steps 5000",
     {"even_pairs", "modular_arithmetic", "cycle_navigation", "D_4", "D_12", "Tomita_4"}},
    {"regular_gpt_3",
     "RegularGPT C = 3",
     "--model regular_gpt --chunk 3",
     &Language::three,
     "--steps 1300",
     "--steps 5000 --seeds 1,2,3",
     {}},
    {"rnn",
     "RNN",
     "--model rnn",
     &Language::rnn,
     "--steps 15000 --lr 3e-3",
     "--steps 100000 --lr 3e-3",
     {"modular_arithmetic", "D_12"}},
    {"transformer",
     "Transformer",
     "--model transformer",
     &Language::transformer,
     "--layers 3 --steps 500",
     "--steps 5000 --lr 3e-4",
     {"even_pairs", "modular_arithmetic", "parity_check", "cycle_navigation", "D_2", "D_3", "D_4", "D_12", "Tomita_5",
      "Tomita_6"}},
};

const char* const PAPER = " --width 256 --batch 128 --steps 100000 --seeds 1,2,3 --eval-every 5000";
const char* const PAPER_SIZE =
    "The paper's width 256, batch 128, 100,000 steps and three seeds; of its three rates, 1e-4, 3e-4 and 5e-4, the "
    "middle one; the RNN, of which it says no rate, learns at 3e-3. Its 4.3 million parameters are the Transformer's "
    "here (4.27); RegularGPT, all of whose layers share their weights, has 0.79.";
std::string paper_words(const std::string& part) {
  return PAPER + std::string(part == "rnn" ? " --lr 3e-3" : " --lr 3e-4");
}

// What is known about the distance of a quick run.
std::string remark_on_language(const Recognizer& model, const Language& language) {
  const bool untaught = language.name == "modular_arithmetic" && model.part == "regular_gpt";
  return untaught ? "1,300 steps do not teach it; the paper takes 100,000" : "";
}

const std::string TESTED = " --test-every 7 --test-strings 64";  // odd: members of D_n and Tomita 5 are of even lengths

// Its part of one language with the other seeds.
std::string again_part(const Recognizer& model, const std::string& language) { return model.part + "-" + language; }

// On the test's longer strings, or another column of it.
Cell accuracy_of(const Recognizer& model, const Language& language, const Scale& scale,
                 const char* column = "accuracy") {
  Cell cell{model.part + "/results.csv", {{"task", language.name}}, column, Cell::Form::MEAN, 1};
  if (scale.evening() && std::count(model.again.begin(), model.again.end(), language.name) > 0)
    cell.others = {again_part(model, language.name) + "/results.csv"};
  return cell;
}

Cell best_and_mean(const Recognizer& model, const Language& language, const Scale& scale) {
  Cell cell = accuracy_of(model, language, scale);
  cell.form = Cell::Form::BEST_MEAN;
  return cell;
}

// Modular arithmetic once more, at the paper's size, with the + of the authors' code.
Cell arithmetic() { return of_seeds({"arithmetic/results.csv", {}, "accuracy", Cell::Form::BEST_MEAN, 1}); }
void add_arithmetic(Plan& plan, const Scale& scale) {
  const std::string options =
      "--task modular_arithmetic --leading-plus --chunk 2 --width 256 --batch 128 --lr 3e-4 --steps 100000 "
      "--eval-every 5000" +
      (scale.full() ? "" : TESTED);
  plan.commands.push_back({"arithmetic", "train_regular", words_of(options)});
  for (const std::string& seed : OTHER_SEEDS)
    plan.commands.push_back({seed_part("arithmetic", seed), "train_regular", words_of(options + " --seed " + seed)});
  plan.rows.push_back({"Modular Arithmetic, width 256, 100,000 steps", "96.4 / 82.6", arithmetic(),
                       "expressions begin with +, as in the authors' code", RECOGNIZERS[0].label});
}

constexpr double RECOGNIZED = 95;  // percent of the strings

// Of the seeds, as the paper asks whether a model can do it at all.
Side best(Side side) {
  side.cell.form = Cell::Form::BEST;
  return side;
}

struct LanguageClaims {
  Claim regular{"RegularGPT (C = 2) recognizes all twelve languages on longer strings", {}};
  Claim rnn{"an RNN does, too", {}};
  Claim transformer{"a Transformer is at chance on modular arithmetic, parity, cycle navigation, Tomita 5 and 6", {}};
  Claim better{"RegularGPT (C = 2) is nowhere behind a Transformer", {}};
  Claim three{"with C = 3 modular arithmetic is not learned", {}};
};

Side recognized(size_t recognizer, const Language& language, const Scale& scale) {
  return {language.label, accuracy_of(RECOGNIZERS[recognizer], language, scale)};
}

// Where the paper's Transformer is at chance. by_chance: times what one answer to all strings scores
void add_hard_language(LanguageClaims& claims, const Language& language, double by_chance, const Scale& scale) {
  const Side one_answer{"one answer to all", accuracy_of(RECOGNIZERS[3], language, scale, "one_answer")};
  claims.transformer.checks.push_back({recognized(3, language, scale), one_answer, by_chance});
  // Who has not learned short strings fails on long ones for another reason. What the paper's training teaches of these it says
  // of parity only (table 2).
  if (!scale.full() || language.name == "parity_check")
    claims.transformer.conditions.push_back({{"", {}, RECOGNIZED},
                                             {"a Transformer on strings of the training length, " + language.label,
                                              accuracy_of(RECOGNIZERS[3], language, scale, "same_length")}});
  if (language.name != "modular_arithmetic") return;
  claims.three.checks.push_back({recognized(1, language, scale), one_answer, by_chance});
  claims.three.conditions.push_back({{"", {}, RECOGNIZED}, {"C = 2", best(recognized(0, language, scale)).cell}});
}

void remark_on_seeds(LanguageClaims& claims) {  // those that were run again with others
  for (Claim* claim : {&claims.regular, &claims.rnn})
    claim->remark =
        "Accuracy of the best seed, %; the strings that are not of D_n or Tomita 3 are random, and can be told by "
        "less than the language (docs/regular_languages.md has them beside members with one symbol changed)";
  for (Claim* claim : {&claims.transformer, &claims.better, &claims.three})
    claim->remark = "Accuracy, %, the mean of the seeds";
}

void add_language_claims(Plan& plan, const Scale& scale) {
  constexpr double AS_GOOD = 1.005;  // times: both may be at 100 %
  // Three standard errors of the first three's 4,000 strings; Tomita's 500 have no more room.
  const std::map<std::string, double> by_chance = {{"modular_arithmetic", 1.1},
                                                   {"parity_check", 1.05},
                                                   {"cycle_navigation", 1.1},
                                                   {"Tomita_5", 1.03},
                                                   {"Tomita_6", 1.05}};
  LanguageClaims claims;
  for (const Language& language : LANGUAGES) {
    claims.regular.checks.push_back({{"", {}, RECOGNIZED}, best(recognized(0, language, scale))});
    claims.rnn.checks.push_back({{"", {}, RECOGNIZED}, best(recognized(2, language, scale))});
    claims.better.checks.push_back({recognized(3, language, scale), recognized(0, language, scale), AS_GOOD});
    const auto hard = by_chance.find(language.name);
    if (hard != by_chance.end()) add_hard_language(claims, language, hard->second, scale);
  }
  claims.better.conditions = claims.transformer.conditions;
  if (scale.evening()) remark_on_seeds(claims);
  if (!scale.quick())
    claims.regular.checks.push_back({{"", {}, RECOGNIZED}, best({"Modular Arithmetic, width 256", arithmetic()})});
  plan.claims = {claims.regular, claims.rnn, claims.transformer, claims.better, claims.three};
}

std::string languages_size(const Scale& scale) {
  if (scale.full()) return PAPER_SIZE + std::string(" Modular arithmetic without and with the + of the authors' code.");
  const std::string
      one = " one seed in place of three, so that the best and the mean are the same",
      tested =
          "; every seventh length of the test in place of all, 64 strings of each. The last two columns: what "
          "one answer to all strings would score, and whether the Transformer has learned its own lengths. It has the "
          "authors' blocks, but not their initial values; the RNN has tanh (docs/regular_languages.md).";
  return scale.evening()
             ? "Width 64 in place of 256; 5,000 steps in place of 100,000, at a rate of 1e-3, the "
               "Transformer's at 3e-4, the middle one of the paper's (RNN: 100,000 at 3e-3);" +
                   one + " except for C = 3, and for the others where the first is not at 100.0, which have three" +
                   tested + " Modular arithmetic once more at the paper's size, three seeds."
             : "Quick: width 64 in place of 256; 1,300 steps at a rate of 1e-3 in place of 100,000 (RNN: 15,000 at "
               "3e-3; Transformer: 500, of 3 blocks in place of 5);" +
                   one + tested;
}

std::string language_settings(const Recognizer& model, const Scale& scale) {
  if (scale.full()) return paper_words(model.part);
  return " " + (scale.evening() ? model.evening : model.quick) + TESTED + " --eval-every 1300 --eval-samples 128";
}

// Of each model the languages that are worth it with two seeds more.
void add_seeds_again(Plan& plan, const Scale& scale) {
  for (const Recognizer& model : RECOGNIZERS)
    for (const std::string& language : model.again)
      plan.commands.push_back({again_part(model, language), "train_regular",
                               words_of("--task " + language + " " + model.words + language_settings(model, scale) +
                                        " --seeds " + join(OTHER_SEEDS, ","))});
}

Plan languages(const Scale& scale) {
  Plan plan;
  plan.comparable = true;
  plan.size = languages_size(scale);
  for (const Recognizer& model : RECOGNIZERS) {
    plan.commands.push_back(
        {model.part, "train_regular", words_of("--all-tasks " + model.words + language_settings(model, scale))});
    plan.pictures.push_back({model.part + "/lengths.svg", model.label + ": accuracy against the length"});
    for (const Language& language : LANGUAGES)
      plan.rows.push_back({language.label, language.*model.paper, best_and_mean(model, language, scale),
                           scale.quick() ? remark_on_language(model, language) : "", model.label});
  }
  for (const Language& language : LANGUAGES)
    plan.rows.push_back(
        {language.label, "", accuracy_of(RECOGNIZERS[0], language, scale, "one_answer"), "", "one answer to all"});
  for (const Language& language : LANGUAGES)
    plan.rows.push_back({language.label, "", accuracy_of(RECOGNIZERS[3], language, scale, "same_length"), "",
                         "Transformer at the training length"});
  if (!scale.quick()) add_arithmetic(plan, scale);
  if (scale.evening()) add_seeds_again(plan, scale);
  add_language_claims(plan, scale);
  return plan;
}

// ---- Table 2 --------------------------------------------------------------------------------------------------------

struct Robustness {
  size_t recognizer;
  std::string quick, evening;
  std::vector<std::string> same, longer;
};
const std::vector<std::string> PROBABILITIES = {"0.1", "0.3", "0.5", "0.7", "0.9"};
const std::vector<Robustness> ROBUSTNESS = {
    {0, "--steps 800", "--steps 5000", {"100", "100", "100", "100", "100"}, {"100", "100", "100", "100", "100"}},
    {2,
     "--steps 20000 --lr 3e-3",
     "--steps 20000 --lr 3e-3",
     {"100", "100", "100", "100", "100"},
     {"100", "100", "100", "100", "100"}},
    {3,
     "--steps 2000",
     "--steps 100000 --lr 3e-4",
     {"98.4", "99.8", "99.6", "97.8", "77.2"},
     {"50.1", "49.7", "50.3", "49.9", "50.0"}},
};

std::string probabilities_size(const Scale& scale) {
  if (scale.full()) return PAPER_SIZE;
  return scale.evening()
             ? "Width 64 in place of 256, every seventh length of the test in place of all, 64 strings of each; "
               "100,000 steps of the Transformer, as in the paper, at 3e-4, the middle one of its rates; 5,000 of the "
               "RegularGPT at 1e-3 and 20,000 of the RNN at 3e-3. Three seeds."
             : "Quick: width 64; 800 steps of the RegularGPT and 2,000 of the Transformer at a rate of 1e-3, 20,000 of "
               "the RNN at 3e-3. Three seeds.";
}

// Of one probability of a 1, percent: on strings of "same", the training's length, or "longer".
Cell robust_accuracy(size_t recognizer, const char* lengths, const std::string& probability, const Scale& scale) {
  return of_seeds({RECOGNIZERS[recognizer].part + "/probabilities.csv",
                   {{"lengths", lengths}, {"probability", probability}},
                   "accuracy",
                   Cell::Form::PERCENT,
                   1},
                  !scale.full());
}

std::vector<Claim> claims_on_probabilities(const Scale& scale) {
  constexpr double RIGHT = 99, GUESSED = 55;  // percent; who guesses has 50
  Claim regular{"whatever the probability of a 1, RegularGPT is right on longer strings of bits", {}},
      recurrent{"so is an RNN", {}},
      transformer{"a Transformer that has learned 40 bits is at chance on longer ones", {}};
  for (const std::string& probability : PROBABILITIES) {
    const auto of = [&](size_t recognizer, const char* lengths) {
      return Side{probability, robust_accuracy(recognizer, lengths, probability, scale)};
    };
    regular.checks.push_back({{"", {}, RIGHT}, of(0, "longer")});
    recurrent.checks.push_back({{"", {}, RIGHT}, of(2, "longer")});
    transformer.checks.push_back({of(3, "longer"), {"", {}, GUESSED}});
  }
  // With bits as the training's. Of other ones not even the paper's Transformer knows strings of 40: 77.2 % at 0.9.
  const Side evenly{"on 40 bits, 0.5", robust_accuracy(3, "same", "0.5", scale)};
  transformer.conditions = {{{"", {}, 95}, evenly}};
  Claim struggles{"it struggles on 40 bits, too, where most are 1", {}, measured_of("Percent", !scale.full())};
  struggles.checks = {{{"on 40 bits, 0.9", robust_accuracy(3, "same", "0.9", scale)}, {"", {}, 95}}};
  struggles.conditions = transformer.conditions;
  return {regular, recurrent, transformer, struggles};
}

Plan probabilities(const Scale& scale) {
  Plan plan;
  plan.comparable = true;
  plan.size = probabilities_size(scale);
  for (const Robustness& robustness : ROBUSTNESS) {
    const Recognizer& model = RECOGNIZERS[robustness.recognizer];
    const std::string settings = scale.full() ? paper_words(model.part)
                                 : scale.evening()
                                     ? " " + robustness.evening + TESTED + " --eval-every 5000 --eval-samples 128"
                                     : " " + robustness.quick + TESTED + " --eval-every 400 --eval-samples 128";
    plan.commands.push_back(
        {model.part, "train_regular",
         words_of("--task parity_check --parity-probability 10,30,50,70,90 " + model.words + settings)});
    for (const bool same : {true, false})
      for (size_t p = 0; p < PROBABILITIES.size(); ++p)
        plan.rows.push_back(
            {model.label + (same ? ", 40 bits" : ", 41 to 500 bits"), (same ? robustness.same : robustness.longer)[p],
             robust_accuracy(robustness.recognizer, same ? "same" : "longer", PROBABILITIES[p], scale),
             p == 0 && scale.evening() && model.part == "rnn" ? "one of three seeds has not learned it" : "",
             PROBABILITIES[p]});
  }
  if (!scale.full()) add_seeds(plan);
  if (scale.full()) plan.model_sizes = {{"transformer", "transformer", 4.3, "table 4, of all models"}};
  plan.claims = claims_on_probabilities(scale);
  return plan;
}

// ---- Figures 3 and 4 ------------------------------------------------------------------------------------------------

Command learns(const std::string& task, const std::string& steps, const Scale& scale) {
  return {task, "train_regular",
          words_of("--task " + task +
                   (scale.full() ? " --width 256 --steps 100000 --lr 3e-4 --eval-every 5000"
                                 : " --steps " + steps + " --test-every 7 --test-strings 64 --eval-every 500"))};
}

std::string run_of(const std::string& task) { return "@" + task + "/" + task + "-seed-1"; }

// What a model does not recognize it has no clusters and no receptive field of.
Check recognizes(const std::string& task, bool seeds) {
  const Cell accuracy{task + "/results.csv", {{"task", task}}, "accuracy", Cell::Form::PERCENT, 1};
  return {{"", {}, 95}, {"it is right, on longer strings, %", of_seeds(accuracy, seeds)}};
}

Plan clusters(const Scale& scale) {
  Plan plan;
  plan.size = scale.full()
                  ? "Trained as in table 1, one seed; a string of 500 symbols."
                  : "Quick: width 64; 800 steps for parity, 4,000 for cycle navigation; a string of 500 symbols. Three "
                    "seeds.";
  plan.commands = {
      learns("parity_check", "800", scale),
      learns("cycle_navigation", "4000", scale),
      {"clusters", "inspect", {"clusters", run_of("parity_check"), run_of("cycle_navigation")}, Command::Kind::WRITES}};
  if (scale.quick()) add_seeds(plan);
  plan.comparable = true;
  // What `inspect` says of the model of a task.
  const auto said = [&](const std::string& task, const char* words, int digits) {
    return of_seeds({"clusters.log", {{"", task + " on"}}, words, Cell::Form::SAID, digits}, scale.quick());
  };
  for (const auto& [task, label, transitions] :
       {std::tuple("parity_check", "Parity", "2"), std::tuple("cycle_navigation", "Cycle Navigation", "5")})
    plan.rows.push_back({std::string(label) + ": clusters", transitions, said(task, "clusters in that plane: ", 0),
                         "the paper's number is that of the things that a piece of the string can do to the states"});
  for (const auto& [task, row, number, words] : {std::tuple("parity_check", 0, 2, "2 for parity"),
                                                 std::tuple("cycle_navigation", 1, 5, "5 for cycle navigation")}) {
    const Side found{"clusters", plan.rows[static_cast<size_t>(row)].ours};
    Claim claim{std::string("the vectors fall into as many clusters as there are state transitions: ") + words,
                {{{"", {}, number - 0.5}, found}, {found, {"", {}, number + 0.5}}},
                measured_of("In the plane of two principal components", scale.quick()),
                {recognizes(task, scale.quick())}};
    // Untrained models may have as many clusters of other things.
    claim.checks.push_back({{"", {}, 99}, {"nearest to their own, %", said(task, "nearest to its own: ", 2)}});
    plan.claims.push_back(claim);
  }
  plan.pictures = {
      {"clusters/clusters.svg", "the vectors of all layers in the plane of their two principal components"}};
  plan.listings = {{scale.quick() ? "Counted, seed 1:" : "Counted:", "clusters.log", ""}};
  return plan;
}

// What the paper trains on text, after table 5.
std::string paper_text_words() {
  return " --width 768 --heads 12 --embedding-deviation 0.02 --tied-head --context 512 --batch 32 --steps 50000 --lr "
         "6e-4 --eval-every 2000";
}

Plan fields(const Scale& scale) {
  const int window = scale.full() ? 512 : 64;  // of the text
  Plan plan;
  plan.size =
      scale.full()
          ? "Parity as in table 1; table 3's RegularGPT on text with C = 128 and K = 12, a string of 4 contexts."
          : "Quick: width 64, 800 steps of parity; a RegularGPT on text with C = 16, K = 2 and a "
            "context of 64, 8,000 steps. Three seeds.";
  plan.commands = {
      learns("parity_check", "800", scale),
      {"text", "train_text",
       words_of("--model regular_gpt" + text_options(scale) +
                (scale.full() ? " --chunk 128 --thickness 12" + paper_text_words() + " --sample-length 0"
                              : std::string(" --chunk 16 --thickness 2 --width 64 --heads 4 --context 64 --batch 16 "
                                            "--steps 8000 --eval-every 1000 --sample-length 0")))},
      {"fields", "inspect", {"receptive-field", run_of("parity_check"), "@text"}, Command::Kind::WRITES}};
  if (scale.quick()) add_seeds(plan);
  plan.commands.push_back(counts_command(scale, window));
  if (scale.full()) plan.model_sizes = {{"text", "regular_gpt", 123}};
  // How many positions, from the last one, have half of the gradient, or 99 %; of 500, and of 4 contexts.
  const auto within = [&](const std::string& task, const std::string& share) {
    return of_seeds({"fields.log", {{"", "regular_gpt, " + task}}, share + " within ", Cell::Form::SAID, 0},
                    scale.quick());
  };
  constexpr int SYMBOLS = 500;
  const int length = scale.full() ? 2048 : 256;
  // A model that knows nothing looks at the latest token alone.
  const Cell perplexity = last_perplexity("text", scale.full() ? "50000" : "8000", scale.quick());
  plan.claims = {
      {"on parity the receptive field covers the whole string",
       {{{"", {}, 0.9 * SYMBOLS}, {"99 % of the gradient within", within("parity_check", "99 %")}}},
       measured_of(text("Positions of %d", SYMBOLS), scale.quick()),
       {recognizes("parity_check", scale.quick())},
       false,
       {{text("half of it, where alike would be %d, within", SYMBOLS / 2),
         within("parity_check", "half of the gradient is")}}},
      {"on text the latest tokens count: the effect of a window",
       {{{"half of the gradient within", within("text", "half of the gradient is")}, {"", {}, 0.1 * length}}},
       measured_of(text("Positions of %d", length), scale.quick()),
       {{{"its perplexity", perplexity}, counted_best(window)}},
       false,
       {{"99 % of it within", within("text", "99 %")}}}};
  plan.pictures = {{"fields/receptive_field.svg", "the share of the gradient that the positions to the right have"}};
  plan.listings = {{scale.quick() ? "Counted, seed 1:" : "Counted:", "fields.log", ""}};
  return plan;
}

// ---- Table 3 --------------------------------------------------------------------------------------------------------

struct Extrapolator {
  std::string variant, label;
  std::vector<std::string> paper;  // at 512, 1024, 2048, 4096 and 8192 tokens
};

std::vector<Extrapolator> extrapolators(bool full) {
  const auto regular = [&](const std::string& chunk, const std::string& thickness) {
    return "regular_gpt:chunk=" + chunk + ":thickness=" + thickness;
  };
  // The small ones need as many layers for each length as the paper's for eight times the length.
  const std::vector<std::string> chunks = full ? std::vector<std::string>{"32", "64", "128", "128", "256"}
                                               : std::vector<std::string>{"12", "24", "32", "32", "48"};
  const std::string few = full ? "6" : "2", many = full ? "12" : "4";
  return {{"transformer:position=kerple", "KERPLE", {"24.71", "24.42", "24.21", "24.53", "24.74"}},
          {"transformer:position=t5", "T5", {"24.50", "24.38", "25.01", "28.91", "39.08"}},
          {"transformer:position=alibi", "ALiBi", {"24.53", "24.90", "25.08", "25.08", "25.08"}},
          {regular(chunks[0], few), "RegularGPT 32 / 6", {"32.06", "32.03", "791.74", "812.00", "818.49"}},
          {regular(chunks[1], few), "RegularGPT 64 / 6", {"30.17", "30.30", "30.56", "30.80", "1175.91"}},
          {regular(chunks[2], few), "RegularGPT 128 / 6", {"28.80", "28.94", "29.14", "29.25", "29.41"}},
          {regular(chunks[3], many), "RegularGPT 128 / 12", {"26.37", "26.91", "27.08", "27.28", "27.39"}},
          {regular(chunks[4], few), "RegularGPT 256 / 6", {"27.90", "34.38", "34.85", "35.11", "35.42"}}};
}

bool of_stories(const Scale& scale) { return scale.quick() && scale.text.empty(); }

// The quick run on other data and the paper's size are of one.
bool of_three_seeds(const Scale& scale) { return scale.evening() || of_stories(scale); }

// The perplexity of the last of so many tokens.
Cell extrapolated(const Extrapolator& model, const std::string& length, const Scale& scale) {
  return of_seeds({"train/lengths.csv", {{"variant", model.variant}}, length, Cell::Form::NUMBER, 2},
                  of_three_seeds(scale));
}

// What the paper says of table 3, by the models' places in it and those of four of its lengths.
class TextClaims {
 public:
  explicit TextClaims(const Scale& scale)
      : scale_(scale),
        models_(extrapolators(scale.full())),
        lengths_(scale.full() ? std::vector<std::string>{"512", "1024", "2048", "8192"}
                              : std::vector<std::string>{"64", "128", "256", "1024"}),
        perplexity_(measured_of("Perplexity", of_three_seeds(scale))) {}

  std::vector<Claim> all() const {
    return {baselines_keep(), t5_loses(), loses(), keeps(), is_behind(), is_better_thick(), is_close(), long_chunks()};
  }

 private:
  enum Model : size_t { KERPLE, T5, ALIBI, C32, C64, C128, THICK, C256 };
  static constexpr double KEPT = 1.1;            // times
  static constexpr double SPREAD = 1.09;         // what the quick run's three seeds of each but T5 lie within
  static constexpr double CLOSE = 1.12;          // times: the paper's own are 1.08 and 1.11
  static constexpr double T5_LAST_BUCKET = 113;  // math/positions.cpp

  Side side(size_t model, size_t length) const {
    return {models_[model].label + ", " + lengths_[length] + " tokens",
            extrapolated(models_[model], lengths_[length], scale_)};
  }
  // Who uses only the last few tokens keeps its perplexity at any length.
  Check learned(size_t model) const { return {side(model, 0), counted_best()}; }
  Check knows_some(size_t model) const { return {side(model, 0), counted(4, scale_)}; }

  Claim baselines_keep() const {
    return {"KERPLE and ALiBi keep their perplexity at 16 times the length",
            {{side(KERPLE, 3), side(KERPLE, 0), KEPT}, {side(ALIBI, 3), side(ALIBI, 0), KEPT}},
            perplexity_,
            {learned(KERPLE), learned(ALIBI)}};
  }
  Claim t5_loses() const {
    Check trains_all{{"the last bucket's first distance", {}, T5_LAST_BUCKET},
                     {"those that are trained, to", {}, std::stod(lengths_[0]) - 1}};
    trains_all.unmet = "it says nothing of T5";
    return {
        "T5 loses some of it",
        {{side(T5, 0), side(T5, 3), 1 / KEPT}},
        perplexity_ + (scale_.full() ? ""
                                     : "; more than the paper's 24.50 to 39.08, as the last five of its 32 buckets are "
                                       "of distances from 67 on, which a context of 64 never trains"),
        {trains_all, learned(T5)}};
  }
  Claim loses() const {
    return {
        "RegularGPT loses its perplexity where a length needs more layers than it has learned",
        {{side(C32, 1), side(C32, 2), 1 / KEPT}, {side(C64, 2), side(C64, 3), 1 / KEPT}},
        perplexity_ + (of_stories(scale_) ? "; the paper's grow 25 and 38 times, these by a few percent, which those "
                                            "that need no more layers lose, too"
                                          : ""),
        {learned(C32), learned(C64)}};
  }
  Claim keeps() const {
    return {
        "it keeps it where no length needs more", {{side(C128, 3), side(C128, 0), KEPT}}, perplexity_, {learned(C128)}};
  }
  Claim is_behind() const {
    Claim claim{"on the length of the training RegularGPT is behind KERPLE, T5 and ALiBi", {}, perplexity_};
    for (const size_t baseline : {KERPLE, T5, ALIBI})
      for (size_t regular = C32; regular < models_.size(); ++regular)
        claim.checks.push_back({side(baseline, 0), side(regular, 0), 1, SPREAD});
    claim.conditions = {knows_some(KERPLE)};
    claim.beside = {counted_best()};
    return claim;
  }
  Claim is_better_thick() const {
    return {"a thicker RegularGPT is better: 128 / 12 than 128 / 6",
            {{side(THICK, 0), side(C128, 0), 1, SPREAD}},
            perplexity_,
            {knows_some(C128), knows_some(THICK)},
            false,
            {counted_best()}};
  }
  // T5's only at the length that has trained its buckets.
  Claim is_close() const {
    Claim claim{"128 / 12 is close to KERPLE, T5 and ALiBi",
                {{side(THICK, 0), side(T5, 0), CLOSE}},
                perplexity_ + text("; close is within %.2f times, as in the paper", CLOSE),
                {knows_some(KERPLE), knows_some(THICK)}};
    for (size_t length = 0; length < lengths_.size(); ++length)
      for (const size_t baseline : {KERPLE, ALIBI})
        claim.checks.push_back({side(THICK, length), side(baseline, length), CLOSE});
    return claim;
  }
  Claim long_chunks() const {
    return {"a chunk of half the context is too long: 256 / 6 is behind 128 / 6 on longer texts",
            {{side(C128, 1), side(C256, 1), 1, SPREAD}, {side(C128, 3), side(C256, 3), 1, SPREAD}},
            perplexity_,
            {knows_some(C128)}};
  }

  const Scale& scale_;
  std::vector<Extrapolator> models_;
  std::vector<std::string> lengths_;
  std::string perplexity_;
};

std::string extrapolation_size(const Scale& scale) {
  if (scale.full())
    return "The paper's sizes, one seed in place of three; the rate falls by a cosine, of which the paper says "
           "nothing.";
  return std::string(scale.evening() ? "A" : "Quick: a") +
         " context of 64 in place of 512 and lengths an eighth of the paper's, chunks of 12, 24, 32 and 48 in place of "
         "32, 64, 128 and 256, which need as many layers at each length, a third of the thickness, width 64, a rate of "
         "2e-3 in place of 6e-4, " +
         (scale.evening() ? "40,000 steps of 16 windows in place of 50,000 of 32" : "2,500 steps") + ", characters" +
         (scale.text.empty() ? " of our own stories." : ".") + (of_three_seeds(scale) ? " Three seeds." : "");
}

// What the long tests ask: after texts of so many tokens, so many times.
struct LongTests {
  std::vector<std::string> lengths;
  std::string windows;
};

LongTests long_tests(const Scale& scale) {
  if (scale.full()) return {{"512", "1024", "2048", "4096", "8192"}, "1000"};
  return {{"64", "128", "256", "512", "1024"}, scale.evening() ? "8000" : "128"};
}

std::string extrapolation_settings(const Scale& scale, const LongTests& tests) {
  const std::string asked =
      " --evaluate-lengths " + join(tests.lengths, ",") + " --length-windows " + tests.windows + " --sample-length 0";
  if (scale.full()) return " --layers 12 --norm affine --gelu tanh" + paper_text_words() + asked;
  return " --width 64 --layers 4 --heads 4 --context 64 --batch 16" +
         std::string(scale.evening() ? " --steps 40000 --eval-every 10000" : " --steps 2500 --eval-every 500") + asked;
}

Plan extrapolation(const Scale& scale) {
  const std::vector<std::string> theirs = {"512", "1024", "2048", "4096", "8192"};
  const LongTests tests = long_tests(scale);
  Plan plan;
  plan.comparable = scale.full();
  plan.size = extrapolation_size(scale);
  std::string list;
  for (const Extrapolator& model : extrapolators(scale.full())) {
    list += (list.empty() ? "" : ",") + model.variant;
    for (size_t i = 0; i < theirs.size(); ++i) {
      Row row{model.label, model.paper[i], extrapolated(model, tests.lengths[i], scale), "",
              theirs[i] + " tokens" + (scale.full() ? "" : ", here " + tests.lengths[i])};
      if (!scale.full() && i == 0) row.remark = "here " + model.variant;
      plan.rows.push_back(row);
    }
  }
  plan.commands = {{"train", "train_text",
                    words_of("--compare " + list + text_options(scale) + extrapolation_settings(scale, tests))}};
  if (of_three_seeds(scale)) add_seeds(plan);
  plan.commands.push_back(counts_command(scale, {tests.lengths.back(), tests.windows}));
  plan.claims = TextClaims(scale).all();
  plan.listings = {COUNTED_LISTING};
  if (scale.full())
    plan.model_sizes = {
        {"train", "transformer", 123}, {"train", "regular_gpt", 81, "K = 6"}, {"train", "regular_gpt", 123, "K = 12"}};
  plan.pictures = {{"train/lengths.svg", "perplexity of the last token against the length"}};
  return plan;
}

// ---- Lemma 1 --------------------------------------------------------------------------------------------------------

Plan lemma(const Scale&) {
  Plan plan;
  plan.size = "Matrices of 2 rows, as in the paper's appendix D.2; 999 random pairs.";
  plan.commands = {{"lemma", "inspect", words_of("lemma1 --trials 999"), Command::Kind::SAYS, false}};
  plan.listings = {{"The two weights, one product step by step, and the check:", "lemma.log", ""}};
  const Cell right{"lemma.log", {{"", "times W2: A B\n"}, {"", "\n"}}, "\n", Cell::Form::SAID, 0};  // behind two rows
  plan.rows = {{"right products of 999", "", right, ""}};
  plan.claims = {
      {"two layers multiply Boolean matrices exactly", {{{"", {}, 998.5}, {"right products of 999:", right}}}}};
  return plan;
}

}  // namespace

std::vector<Experiment> regular_experiments() {
  const std::string text =
      "--data TEXT or shards of OpenWebText2 (data/openwebtext2.sh) --tokenizer FOLDER with GPT-2's two files";
  return {
      {"regular-languages", REGULAR_PAPER, "table 1", "Twelve regular languages, four models",
       "The paper: trained on strings of up to 40 or 50 symbols and tested on longer ones, up to 500 or 100, "
       "RegularGPT does about as well as an RNN, a Transformer does not. Best / mean accuracy of three seeds, percent.",
       "", "half an hour on two cores", "days on a GPU", languages, "twenty hours on two cores"},
      {"regular-probabilities", REGULAR_PAPER, "table 2", "Parity of bits that are not evenly 0 and 1",
       "The paper: whatever the probability of a 1, RegularGPT and the RNN are right; the Transformer is so only where "
       "it has learned. Accuracy, percent.",
       "", "ten minutes on two cores", "hours on a GPU", probabilities, "six hours on two cores"},
      {"regular-text", REGULAR_PAPER, "table 3", "Perplexity of texts longer than those of the training",
       "The paper: KERPLE and ALiBi keep their perplexity, T5 loses some; RegularGPT keeps it as far as the depth that "
       "it has learned reaches. C / K: chunk and thickness.",
       text, "a quarter of an hour on two cores", "days on a GPU", extrapolation, "three to four hours on two cores",
       WIKITEXT_2},
      {"regular-clusters", REGULAR_PAPER, "figure 3", "What the layers make of a string: clusters",
       "The paper: the vectors fall into as many clusters as there are state transitions: 2 for parity, 5 for cycle "
       "navigation.",
       "", "three minutes on two cores", "hours on a GPU", clusters},
      {"regular-fields", REGULAR_PAPER, "figure 4", "Receptive fields",
       "The paper: on parity every symbol counts, a slanted line from corner to corner; on text it is the latest "
       "tokens that count.",
       text, "five minutes on two cores", "hours on a GPU", fields},
      {"regular-lemma", REGULAR_PAPER, "lemma 1, appendices C and D", "An MLP that multiplies matrices of 0 and 1",
       "The paper: two layers with a ReLU between them give the product of two Boolean matrices exactly, and so a "
       "transition of two strings from those of its halves.",
       "", "a second on two cores", "", lemma},
  };
}

}  // namespace petroglyph
