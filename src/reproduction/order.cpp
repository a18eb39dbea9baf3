// "Why Are Positional Encodings Nonessential for Deep Autoregressive Transformers?": what it derives, measured. It has no tables.

#include "reproduction/experiment.h"

namespace petroglyph {

namespace {

struct Question {
  std::string label, paper, model, causal, layers, position, column, remark;
};

Plan questions(const Scale&) {
  const std::string set = "0: a set", sequence = "not 0: a sequence";
  const std::vector<Question> all = {
      {"question 1: no mask, 1 layer, tokens permuted", set, "transformer", "no", "1", "none", "moved", "rounding"},
      {"question 1: no mask, 2 layers, tokens permuted", set, "transformer", "no", "2", "none", "moved", "rounding"},
      {"no mask, 2 layers, learned positions", sequence, "transformer", "no", "2", "learned", "moved", ""},
      {"questions 2, 5: causal, 1 layer, the last output", set, "transformer", "yes", "1", "none", "last", "rounding"},
      {"question 5: causal, 1 layer, learned positions, the last output", sequence, "transformer", "yes", "1",
       "learned", "last", ""},
      {"question 3: causal, 2 layers, the last output", sequence, "transformer", "yes", "2", "none", "last", ""},
      {"question 3: causal, 2 layers, the least moved later output", sequence, "transformer", "yes", "2", "none",
       "later", ""},
      {"question 3: causal, 4 layers, the least moved later output", sequence, "transformer", "yes", "4", "none",
       "later", ""},
      {"section 4: linear, causal, 1 layer, the last output", set, "linear_transformer", "yes", "1", "none", "last",
       "rounding"},
      {"section 4: linear, causal, 2 layers, the least moved later output", sequence, "linear_transformer", "yes", "2",
       "none", "later", ""},
  };
  Plan plan;
  plan.size =
      "Models of width 64 with random weights; sequences of 48 tokens and permutations of all but their last. A "
      "distance is "
      "relative to the outputs' norm; what is equal is apart by rounding, about 1e-7.";
  plan.commands = {{"ask", "inspect", words_of("positions --trials 20 --steps 300"), Command::Kind::NAMES}};
  for (const Question& q : all)
    plan.rows.push_back({q.label,
                         q.paper,
                         {"ask/positions.csv",
                          {{"model", q.model},
                           {"causal", q.causal},
                           {"layers", q.layers},
                           {"position", q.position},
                           {"form", "parallel"},
                           {"weights", "random"}},
                          q.column,
                          Cell::Form::SCIENTIFIC,
                          1},
                         q.remark});
  plan.pictures = {
      {"ask/attention.svg",
       "Question 4: the paper reports a first layer that looks at the new input and a second that looks everywhere "
       "alike; these two layers, trained on stories for 300 steps, do not divide their work so"}};
  return plan;
}

Plan generalization(const Scale& scale) {
  const std::vector<std::pair<std::string, std::string>> positions = {
      {"none", "none"}, {"learned", "learned"}, {"sinusoidal", "sinusoidal"}, {"alibi", "ALiBi"},
      {"t5", "T5"},     {"kerple", "KERPLE"},   {"xl", "Transformer-XL"}};
  const std::vector<std::string> longer =
      scale.full ? std::vector<std::string>{"64", "80", "96", "128"} : std::vector<std::string>{"16", "20", "24", "32"};
  Plan plan;
  plan.size =
      "The paper cites others for this and has no numbers of its own; here Transformers learn to copy strings of " +
      longer[0] + " letters and are asked for longer ones" + (scale.full ? "." : ". Width 64, 4 blocks.");
  std::string list;
  for (const auto& [position, label] : positions) {
    list += (list.empty() ? "" : ",") + std::string("position=") + position;
    for (const std::string& length : longer)
      plan.rows.push_back({label + ": accuracy at " + length + " letters, %",
                           "",
                           {"train/lengths.csv", {{"variant", "position=" + position}}, length, Cell::Form::PERCENT, 1},
                           ""});
  }
  std::string asked = scale.full ? "32," : "8,12,";
  for (const std::string& length : longer) asked += length + (length == longer.back() ? "" : ",");
  plan.commands = {
      {"train", "train_copy",
       words_of("--model transformer --compare " + list + " --length " + longer[0] + " --evaluate-lengths " + asked +
                (scale.full ? " --width 192 --layers 12 --batch 320 --lr 5e-4 --steps 2000 --eval-every 10"
                            : " --width 64 --layers 4 --lr 1e-3 --eval-samples 128 --eval-every 10 --steps 400"))}};
  plan.pictures = {{"train/lengths.svg", "accuracy against the length"}, {"train/compare.svg", "while they learned"}};
  return plan;
}

}  // namespace

std::vector<Experiment> position_experiments() {
  return {
      {"position-questions", POSITIONS_PAPER, "sections 3 and 4, figure 1", "Who sees the order of the inputs",
       "The paper: without positional encodings one layer sees a set; two causal layers see a sequence at every "
       "position; the "
       "same holds for linear Transformers.",
       "", "a minute on two cores", "", questions},
      {"position-lengths", POSITIONS_PAPER, "section 5, length generalization",
       "Longer strings than those of the training",
       "The paper: a common benefit of leaving positional encodings out is better generalization to longer inputs.", "",
       "two minutes on two cores", "hours on a GPU", generalization},
  };
}

}  // namespace petroglyph
