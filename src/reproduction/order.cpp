// "Why Are Positional Encodings Nonessential for Deep Autoregressive Transformers?": what it derives, measured. It has no tables.

#include <algorithm>

#include "base/text.h"
#include "reproduction/experiment.h"
#include "train/compare.h"

namespace petroglyph {

namespace {

struct Question {
  std::string label, paper, model, causal, layers, position, column, remark;
};

const char *const SET = "0: a set", *const SEQUENCE = "not 0: a sequence";
const std::vector<Question> QUESTIONS = {
    {"question 1: no mask, 1 layer, tokens permuted", SET, "transformer", "no", "1", "none", "moved", "rounding"},
    {"question 1: no mask, 2 layers, tokens permuted", SET, "transformer", "no", "2", "none", "moved", "rounding"},
    {"no mask, 2 layers, learned positions", SEQUENCE, "transformer", "no", "2", "learned", "moved", ""},
    {"questions 2, 5: causal, 1 layer, the last output", SET, "transformer", "yes", "1", "none", "last", "rounding"},
    {"question 5: causal, 1 layer, learned positions, the last output", SEQUENCE, "transformer", "yes", "1", "learned",
     "last", ""},
    {"question 3: causal, 2 layers, the last output", SEQUENCE, "transformer", "yes", "2", "none", "last", ""},
    {"question 3: causal, 2 layers, the least moved later output", SEQUENCE, "transformer", "yes", "2", "none", "later",
     ""},
    {"question 3: causal, 4 layers, the least moved later output", SEQUENCE, "transformer", "yes", "4", "none", "later",
     ""},
    {"section 4: linear, causal, 1 layer, the last output", SET, "linear_transformer", "yes", "1", "none", "last",
     "rounding"},
    {"section 4: linear, causal, 2 layers, the least moved later output", SEQUENCE, "linear_transformer", "yes", "2",
     "none", "later", ""},
};

Cell cell_of(const Question& q) {
  return of_seeds({"ask/positions.csv",
                   {{"model", q.model},
                    {"causal", q.causal},
                    {"layers", q.layers},
                    {"position", q.position},
                    {"form", "parallel"},
                    {"weights", "random"}},
                   q.column,
                   Cell::Form::SCIENTIFIC,
                   1});
}

// Of question 4: after the fewer steps they know no more of stories than the last letter or two. In windows of 48.
constexpr int ASKED_WINDOW = 48;
int asked_steps(const Scale& scale) { return scale.evening() ? 10000 : 300; }

const char* const EVERYWHERE_ALIKE = "looking everywhere alike would be 0.074";  // the mean of 1/(t + 1) to 48

// Of question 4: a column of what the program says of a layer's attention.
Cell look_cell(const char* layer, const char* column) {
  return of_seeds({"ask/attention.csv", {{"layer", layer}}, column, Cell::Form::NUMBER, 3});
}

// What was learned, of one layer with a mask.
Side trained_side(const char* label, const char* position) {
  return {label, of_seeds({"ask/positions.csv",
                           {{"model", "transformer"},
                            {"causal", "yes"},
                            {"layers", "1"},
                            {"position", position},
                            {"form", "parallel"},
                            {"weights", "trained"}},
                           "perplexity",
                           Cell::Form::NUMBER,
                           2})};
}

// rows: as the questions stand above.
std::vector<Claim> claims_of_questions(const std::vector<Row>& rows) {
  constexpr double ROUNDING = 1e-5;
  const auto is_a_set = [&](const Row& row) { return Check{{row.label, row.ours}, {"", {}, ROUNDING}}; };
  const auto is_a_sequence = [&](const Row& row) { return Check{{"", {}, 100 * ROUNDING}, {row.label, row.ours}}; };
  return {{"without positions and without a mask a Transformer sees a set", {is_a_set(rows[0]), is_a_set(rows[1])}},
          {"one causal layer without positions sees a set behind its last token", {is_a_set(rows[3])}},
          {"with positions one layer, and layers without a mask, see a sequence",
           {is_a_sequence(rows[2]), is_a_sequence(rows[4])}},
          {"two causal layers and more see a sequence at every position",
           {is_a_sequence(rows[5]), is_a_sequence(rows[6]), is_a_sequence(rows[7])}},
          {"the same holds for linear Transformers", {is_a_set(rows[8]), is_a_sequence(rows[9])}},
          {"models of one layer require positional encodings",
           {{trained_side("one layer, learned positions", "learned"), trained_side("without", "none")}},
           "Perplexity of stories, the mean of three seeds",
           {},
           true}};
}

Plan questions(const Scale& scale) {
  Plan plan;
  plan.size =
      "Models of width 64 with random weights; sequences of 48 tokens and permutations of all but their last. A "
      "distance is relative to the outputs' norm; what is equal is apart by rounding, by 3e-6 at most. Three seeds.";
  plan.commands = {{"ask", "inspect", words_of("positions --trials 20 --steps " + std::to_string(asked_steps(scale))),
                    Command::Kind::NAMES}};
  add_seeds(plan);
  plan.commands.push_back(counts_command(scale, ASKED_WINDOW));
  plan.listings = {COUNTED_LISTING};
  for (const Question& q : QUESTIONS) plan.rows.push_back({q.label, q.paper, cell_of(q), q.remark});
  plan.rows[0].remark += "; outputs are permuted back before they are compared, where the paper writes f(X) = f(X′)";
  const std::string trained = "question 4: trained on " + with_commas(asked_steps(scale)) + " batches of stories, ";
  plan.rows.push_back({trained + "the first of two layers' weight on the new input", "most of it",
                       look_cell("1", "own"), EVERYWHERE_ALIKE});
  plan.rows.push_back({trained + "the second one's entropy, as a part of uniform", "1: everywhere alike",
                       look_cell("2", "entropy"), ""});
  plan.pictures = {
      {"ask/attention.svg",
       "Question 4: the paper reports a first layer that looks at the new input and a second that looks everywhere "
       "alike; here two layers, trained on stories for " +
           with_commas(asked_steps(scale)) + " steps"}};
  plan.claims = claims_of_questions(plan.rows);
  return plan;
}

const std::vector<std::pair<std::string, std::string>> POSITIONS = {
    {"none", "none"}, {"learned", "learned"}, {"sinusoidal", "sinusoidal"}, {"alibi", "ALiBi"},
    {"t5", "T5"},     {"kerple", "KERPLE"},   {"xl", "Transformer-XL"}};

std::string variants_of(const std::vector<std::string>& positions) {
  std::string list;
  for (const std::string& position : positions) list += (list.empty() ? "" : ",") + std::string("position=") + position;
  return list;
}

struct LengthSizes {
  std::vector<std::string> windows, letters;  // what is asked for; the first of each is that of the training
  std::string asked;                          // of the longest windows, how many
  std::string text, copying;                  // settings
};

LengthSizes length_sizes(const Scale& scale) {
  if (scale.full())
    return {{"256", "512", "1024", "2048"},
            {"64", "80", "96", "128"},
            "256",
            " --preset tiny --steps 5000 --eval-every 500 --sample-length 0 --evaluate-lengths 256,512,1024,2048",
            " --length 64 --width 192 --layers 12 --batch 320 --lr 5e-4 --steps 2000 --eval-every 10 "
            "--evaluate-lengths 32,64,80,96,128"};
  const std::string asked = scale.evening() ? "2000" : "128";
  return {{"64", "128", "256", "512"},
          {"16", "20", "24", "32"},
          asked,
          std::string(" --width 64 --layers 4 --heads 4 --context 64 --batch 16") +
              (scale.evening() ? " --steps 8000 --eval-every 2000" : " --steps 2000 --eval-every 500") +
              " --sample-length 0 --evaluate-lengths 64,128,256,512 --length-windows " + asked,
          std::string(" --length 16 --width 64 --layers 4 --lr 1e-3 --eval-samples 128 --eval-every 20 --steps ") +
              (scale.evening() ? "4000" : "2000") + " --stop-at 0.99 --evaluate-lengths 8,16,20,24,32"};
}

Cell generalization_cell(const std::string& part, const std::string& position, const std::string& length,
                         const Scale& scale) {
  const bool of_text = part == "text";
  const Cell cell{part + "/lengths.csv",
                  {{"variant", "position=" + position}},
                  length,
                  of_text ? Cell::Form::NUMBER : Cell::Form::PERCENT,
                  of_text ? 2 : 1};
  return of_seeds(cell, !scale.full());
}

// As cited there, of formal languages and tasks of reasoning, to which copying is next; and of text, of which the paper says
// nothing. A model that knows next to nothing loses nothing, either.
std::vector<Claim> claims_on_lengths(const LengthSizes& sizes, const std::vector<std::string>& copying,
                                     const Scale& scale) {
  const auto of_text = [&](const std::string& position, const std::string& length) {
    return Side{position + ", " + length + " characters", generalization_cell("text", position, length, scale)};
  };
  const auto of_letters = [&](const std::string& position, const std::string& length) {
    return Side{position + ", " + length + " letters", generalization_cell("copying", position, length, scale)};
  };
  Claim letters{"without positional encodings longer strings go better than with them",
                {},
                measured_of("Letters that are right, %", !scale.full())};
  for (const std::string& position : copying) {
    letters.conditions.push_back({{"", {}, 99}, of_letters(position, sizes.letters[0])});
    if (position == "none") continue;
    for (size_t i : {1, 2})
      letters.checks.push_back({of_letters(position, sizes.letters[i]), of_letters("none", sizes.letters[i])});
  }
  Claim text{"so do longer texts, of which the paper does not speak", {}, measured_of("Perplexity", !scale.full())};
  const std::vector<std::string>& windows = sizes.windows;
  for (const auto& [position, label] : POSITIONS)
    if (position != "none") text.checks.push_back({of_text("none", windows.back()), of_text(position, windows.back())});
  text.conditions = {{of_text("none", windows.front()), counted_best()}};
  text.beside = {{"what knows no letter", counted(0, scale).cell}};
  return {letters, text};
}

Plan generalization(const Scale& scale) {
  const LengthSizes sizes = length_sizes(scale);
  const std::vector<std::string> copying = {"none", "learned", "alibi"};
  Plan plan;
  plan.size =
      "The paper cites others for this and has no numbers of its own. Here Transformers learn from windows of " +
      sizes.windows[0] + " characters" + (scale.text.empty() ? " of stories" : "") + ", and from strings of " +
      sizes.letters[0] + " letters, and are asked for longer ones" +
      (scale.full() ? "."
                    : ". Width 64, 4 blocks; " + std::string(scale.evening() ? "8,000" : "2,000") +
                          " steps of text. Three seeds.");
  std::vector<std::string> all;
  for (const auto& [position, label] : POSITIONS) {
    all.push_back(position);
    for (const std::string& length : sizes.windows)
      plan.rows.push_back({label, "", generalization_cell("text", position, length, scale), "",
                           "perplexity of the last of " + length + " characters"});
  }
  for (const auto& [position, label] : POSITIONS) {
    if (std::find(copying.begin(), copying.end(), position) == copying.end()) continue;
    const Cell steps{"copying/compare.csv", {{"variant", "position=" + position}}, "step_99", Cell::Form::STEP, 0};
    plan.rows.push_back(
        {label, "", of_seeds(steps, !scale.full()), "", "copying: steps to 99 % of " + sizes.letters[0]});
    for (const std::string& length : sizes.letters)
      plan.rows.push_back({label, "", generalization_cell("copying", position, length, scale), "",
                           "copying of " + length + " letters, %"});
  }
  plan.commands = {
      {"text", "train_text", words_of("--compare " + variants_of(all) + text_options(scale) + sizes.text)},
      {"copying", "train_copy", words_of("--model transformer --compare " + variants_of(copying) + sizes.copying)}};
  if (!scale.full()) add_seeds(plan);
  plan.commands.push_back(counts_command(scale, {sizes.windows.back(), sizes.asked}));
  plan.claims = claims_on_lengths(sizes, copying, scale);
  plan.pictures = {{"text/lengths.svg", "text: perplexity of the last character against the length of the window"},
                   {"copying/lengths.svg", "copying: accuracy against the length"}};
  plan.listings = {COUNTED_LISTING};
  return plan;
}

// ---- Depth ----------------------------------------------------------------------------------------------------------

struct DepthSizes {
  std::string words, settings;
  int window;
};

DepthSizes depth_sizes(const Scale& scale) {
  const std::string text = scale.text.empty() ? "stories of a grammar of our own" : "the text of --data";
  if (scale.full())
    return {"The paper gives no sizes: 768 channels, 12 heads and 256 characters here, one epoch of " + text + ".",
            " --preset base --batch 32 --accumulate 10 --epochs 1 --schedule constant --eval-every 1000 --eval-samples "
            "2048",
            256};
  if (scale.evening())
    return {
        "The paper's depths; 128 channels, 4 heads, 5,000 steps of 8 windows of 64 characters of " + text +
            ". Three seeds.",
        " --width 128 --heads 4 --context 64 --batch 8 --lr 1e-3 --steps 5000 --eval-every 1000 --eval-samples 1024",
        64};
  return {"Quick: the paper's depths; 32 channels, 4 heads, 2,500 steps of 16 windows of 32 characters of " + text +
              ". Three seeds.",
          " --width 32 --heads 4 --context 32 --batch 16 --lr 2e-3 --steps 2500 --eval-every 500 --eval-samples 1024",
          32};
}

const std::vector<std::string> DEPTHS = {"12", "24", "42"};

// Question 4 is about deep models: what "inspect attention" says of a layer of one without positions.
Cell deep_look(const std::string& layers, const char* layer, const char* column, const Scale& scale) {
  const Cell cell{"look/attention.csv", {{"layers", layers}, {"layer", layer}}, column, Cell::Form::NUMBER, 3};
  return of_seeds(cell, !scale.full());
}

// Where the layers of the models that "train" left look. `without`: their names and perplexities. Quick ones were not asked.
void add_question_4(Plan& plan, const std::vector<Side>& without, const Scale& scale, int window) {
  Claim first{"question 4 of section 3: trained without positions, the first layer mainly looks at the new input", {}};
  Claim second{"question 4 of section 3: the second layer looks everywhere alike", {}};
  if (!scale.quick()) {
    Command look{"look", "inspect", {"attention"}, Command::Kind::WRITES};
    for (size_t i = 0; i < DEPTHS.size(); ++i) {
      const std::string &layers = DEPTHS[i], variant = without[i].cell.where[0].second, label = layers + " layers";
      look.words.push_back("@train/" + parse_variants(variant)[0].name);
      const Side own{label, deep_look(layers, "1", "own", scale)},
          even{label, deep_look(layers, "2", "entropy", scale)};
      plan.rows.push_back(
          {label, "most of it", own.cell, "", "without: the first layer's weight on the new character"});
      plan.rows.push_back(
          {label, "1: everywhere alike", even.cell, "", "the second one's entropy, of that of uniform"});
      first.checks.push_back({{"", {}, 0.5}, own});
      second.checks.push_back({{"", {}, 0.9}, even});
      for (Claim* claim : {&first, &second}) claim->conditions.push_back({without[i], counted_best(window)});
    }
    plan.commands.push_back(look);
    plan.pictures.push_back(
        {"look/attention.svg", "question 4: where the layers of the models without positions look"});
    first.remark = measured_of("Its weight there", !scale.full()) + "; of who looks everywhere alike it would be " +
                   (scale.full() ? "0.020" : "0.059");
    second.remark = measured_of("Its entropy, as a part of that of looking everywhere alike", !scale.full());
  }
  plan.claims.push_back(first);
  plan.claims.push_back(second);
}

// Deep models with and without sinusoids. The work that the paper cites trained such ones on books and found those without better.
Plan depths(const Scale& scale) {
  Plan plan;
  const DepthSizes sizes = depth_sizes(scale);
  plan.size = sizes.words;
  constexpr double AS_WELL = 1.03;  // times
  const auto side = [&](const std::string& layers, const std::string& position) {
    const Cell cell{"train/compare.csv",
                    {{"variant", "layers=" + layers + ":position=" + position}},
                    "last_loss",
                    Cell::Form::PERPLEXITY,
                    3};
    return Side{layers + " layers, " + position, of_seeds(cell, !scale.full())};
  };
  Claim claim{"models of 12, 24 and 42 layers do well without positional encodings",
              {},
              measured_of("Perplexity", !scale.full()) + "; as well is within 3 % of that with sinusoids"};
  if (scale.evening() && scale.text.empty())
    claim.remark +=
        "; all six know the stories so well that depth makes no difference either, and none gains by leaving positions "
        "out, which the paper says of one work, and of two others that they lost a little";
  std::string list;
  std::vector<Side> without;
  for (const std::string& layers : DEPTHS) {
    without.push_back(side(layers, "none"));
    for (const char* position : {"none", "sinusoidal"}) {
      const Side one = side(layers, position);
      plan.rows.push_back({layers + " layers", "", one.cell, "", std::string("perplexity, ") + position});
      list += (list.empty() ? "" : ",") + one.cell.where[0].second;
    }
    claim.checks.push_back({side(layers, "none"), side(layers, "sinusoidal"), AS_WELL});
    for (const char* position : {"none", "sinusoidal"})
      claim.conditions.push_back({side(layers, position), counted_best(sizes.window)});
  }
  plan.commands = {{"train", "train_text",
                    words_of("--model transformer --compare " + list + text_options(scale) + sizes.settings +
                             " --sample-length 0")}};
  plan.claims = {claim};
  plan.pictures = {{"train/compare.svg", "training loss, and accuracy on text that no training sees"}};
  add_question_4(plan, without, scale, sizes.window);
  if (!scale.full()) add_seeds(plan);
  plan.commands.push_back(counts_command(scale, sizes.window));
  plan.listings = {COUNTED_LISTING};
  return plan;
}

}  // namespace

std::vector<Experiment> position_experiments() {
  return {
      {"position-questions", POSITIONS_PAPER, "sections 3 and 4, figure 1", "Who sees the order of the inputs",
       "The paper: without positional encodings one layer sees a set; two causal layers see a sequence at every "
       "position; the same holds for linear Transformers.",
       "", "a minute on two cores", "", questions, "twenty minutes on two cores"},
      {"position-lengths", POSITIONS_PAPER, "section 5, length generalization",
       "Longer strings than those of the training",
       "The paper: a common benefit of leaving positional encodings out is better generalization to longer inputs.",
       "--data TEXT (data/tinyshakespeare.sh and its like)", "a quarter of an hour on two cores", "hours on a GPU",
       generalization, "three quarters of an hour on two cores"},
      {"position-depths", POSITIONS_PAPER, "section 5, the models of 12, 24 and 42 layers",
       "Deep models without positional encodings",
       "The paper: work of 2019 has trained models of 12, 24 and 42 layers without positional encodings, on books, and "
       "they gained by leaving sinusoids out; others saw slight losses.",
       "--data TEXT (data/wikitext103.sh and its like)", "a quarter of an hour on two cores", "weeks on a GPU", depths,
       "two hours on two cores"},
  };
}

}  // namespace petroglyph
