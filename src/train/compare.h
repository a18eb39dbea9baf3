// Variants of one program's run, trained in turn on the same samples, and one table and one figure of them all.
//
//   --compare causal_rn,transformer:position=alibi,transformer:position=none
//
//   runs/NAME/causal_rn/, runs/NAME/transformer-position-alibi/, …     a run each (run.h)
//   runs/NAME/compare.csv, runs/NAME/compare.svg
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/program.h"
#include "base/text.h"
#include "figures/figure.h"
#include "train/group.h"
#include "train/run.h"

namespace petroglyph {

struct Variant {
  std::string label;                   // "transformer:position=alibi", as the user wrote it
  std::string name;                    // of its folder
  std::vector<std::string> arguments;  // {"--model=transformer", "--position=alibi"}
  int64_t parameters = 0;              // once it is made
  std::string weights;                 // their fingerprint, once it is trained
};

// A comma between variants; in each a colon between its settings, OPTION=VALUE or a model's name.
// Throws UsageError where one is empty or there twice.
std::vector<Variant> parse_variants(const std::string& list);

// Throws UsageError where a variant sets an option that no model depends on, such as its name: that would be two runs of one model;
// or one that all have in common, such as the lengths of their table.
void check_differences(const Variant& variant, const Options& options, const std::string& list);

// Throws UsageError for an option of all for which every variant names its own.
void refuse_overridden(const std::vector<Variant>& variants, const Options& common, const std::string& list);
// Throws UsageError where a variant sets an option that does nothing in it, or one that all have does nothing in any of them.
// idle: Options::idle() of each variant.
void refuse_idle(const std::vector<Variant>& variants, const std::vector<std::map<std::string, std::string>>& idle,
                 const std::string& list);

// From the variants' logs: the steps to 50, 90 and 99 % evaluated accuracy where any of them got so far, the last evaluation and
// the weights' fingerprint, printed and saved (compare.csv); loss and accuracy against steps, drawn (compare.svg). chance: the
// accuracy of guesses; 0: not drawn.
void write_comparison(const std::string& folder, const std::string& title, const std::vector<Variant>& variants,
                      double chance);

// What models make of other lengths than they were trained on.
struct LengthTable {
  std::string title;     // "Copying 16 letters"
  std::string quantity;  // "accuracy"
  std::string unit;      // of the lengths: "letters"
  bool percent;          // the values are parts of one
  std::vector<int> lengths;
  std::vector<std::string> labels;
  std::vector<std::vector<double>> values;  // [label][length]
  double chance = 0;                        // what guesses would reach at any length; 0: not drawn
};
Figure lengths_figure(const LengthTable& table);
// What measure(length) gives, for each; its Error, such as too little memory for the longest, names the length.
std::vector<double> at_lengths(const std::vector<int>& lengths, const std::function<double(int)>& measure);
// Printed, and saved as lengths.csv and lengths.svg.
void write_lengths(const std::string& folder, const LengthTable& table);

// The comparison that a program was asked for. A Session is one run from the words of a command line:
//   Session(words);  prepare();  settings, run;  LengthTable length_table() of the trained model, by all ranks together
template <class Session>
class Comparison {
 public:
  // common: what the words say without any variant
  Comparison(Session& common, std::vector<std::string> words)
      : group_(common.settings, common.options, "compare", std::move(words), {"compare"}),
        ranks_(common.settings.ranks),
        list_(common.compared().empty() ? option_of_group(*ranks_, group_.name(), "compare") : common.compared()),
        resume_(common.settings.resume),
        variants_(parse_variants(list_)) {
    for (const Variant& variant : variants_) check_differences(variant, common.options, list_);
    refuse_overridden(variants_, common.options, list_);
    if (!resume_) check_use();
  }

  // The exit status.
  int run(const std::string& title) {
    check_models();
    for (Variant& variant : variants_) {  // all before the first one learns: the folder has room for them
      Session session(words_of(variant));
      session.settings.quiet = true;  // it has been said
      prepare(session, variant);
      variant.parameters = session.run->model().parameters.size();
      group_.begin();
      session.run->save();
    }
    LengthTable lengths;
    double chance = 0;
    for (Variant& variant : variants_) {
      group_.check();
      std::printf("\n%s\n", variant.label.c_str());
      Session session(words_of(variant));
      prepare(session, variant);
      if (!session.run->train()) return interrupted(session.settings.program);
      const LengthTable table = session.length_table();
      group_.check();
      chance = session.run->chance();
      variant.weights = text("%016llx", static_cast<unsigned long long>(session.run->model().parameters.fingerprint()));
      if (lengths.labels.empty())
        lengths = {title, table.quantity, table.unit, table.percent, table.lengths, {}, {}, table.chance};
      lengths.labels.push_back(variant.label);
      lengths.values.push_back(table.values.at(0));
    }
    if (!ranks_->first()) return 0;
    write_comparison(group_.folder(), title, variants_, chance);
    if (!lengths.lengths.empty()) write_lengths(group_.folder(), lengths);
    return 0;
  }

 private:
  std::vector<std::string> words_of(const Variant& variant) const {
    std::vector<std::string> words = group_.words();
    words.insert(words.end(), variant.arguments.begin(), variant.arguments.end());
    // One that was not begun takes from --init what it would have taken at first.
    if (resume_ && !goes_on(variant)) words.push_back("--no-resume");
    return words;
  }

  bool goes_on(const Variant& variant) const { return goes_on_in_group(*ranks_, group_.name(), variant.name, resume_); }

  void check_use() const {
    std::vector<std::map<std::string, std::string>> idle;
    std::map<std::string, std::string> labels;  // of what was seen: a variant in other words is the same one
    for (const Variant& variant : variants_) {
      const Session session(words_of(variant));
      idle.push_back(session.options.idle());
      const auto [before, is_new] = labels.emplace(session.options.to_json().text(), variant.label);
      if (!is_new)
        throw UsageError("--compare " + list_ + ": " + before->second + " and " + variant.label + " are the same");
    }
    refuse_idle(variants_, idle, list_);
  }

  // All before anything is written: what is wrong with the last one shows at once, and leaves nothing.
  void check_models() const {
    for (const Variant& variant : variants_) {
      Session session(words_of(variant));
      prepare(session, variant);
    }
  }

  // Goes on where there is a checkpoint.
  void prepare(Session& session, const Variant& variant) const {
    session.settings.group = group_.name() + "/";
    session.settings.name = variant.name;
    session.settings.ranks = ranks_;
    session.settings.resume = goes_on(variant);
    session.prepare();
  }

  int interrupted(const std::string& program) const {
    std::printf("go on with: %s --resume --name %s\n", called(program).c_str(), group_.name().c_str());
    return INTERRUPTED_STATUS;
  }

  Group group_;
  std::shared_ptr<Ranks> ranks_;
  std::string list_;
  bool resume_;
  std::vector<Variant> variants_;
};

// What a program does whose runs can be compared: one run, or those that its --compare names. Returns the exit status. Its Session
// also tells compared(), what --compare said, and show()s what there is to see of the trained model: by all ranks together, and the
// first one writes.
template <class Session>
int train_or_compare(const std::vector<std::string>& words, Session& session, const std::shared_ptr<Ranks>& ranks) {
  session.settings.ranks = ranks;
  const bool begun = session.settings.resume && !option_of_group(*ranks, session.settings.name, "compare").empty();
  if (begun || !session.compared().empty()) return Comparison<Session>(session, words).run(session.title());
  if (!session.settings.resume) session.options.refuse_idle();
  session.prepare();
  const bool finished = session.run->train();
  if (finished) session.show();
  std::printf("weights %016llx\n", static_cast<unsigned long long>(session.run->model().parameters.fingerprint()));
  return finished ? 0 : INTERRUPTED_STATUS;
}

}  // namespace petroglyph
