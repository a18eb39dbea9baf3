// Variants of one program's run, trained one after another on the same samples, with one table and one figure of all.
//
//   --compare causal_rn,transformer:position=alibi,transformer:position=none
//
//   runs/NAME/causal_rn/, runs/NAME/transformer-position-alibi/, …     an ordinary run each (run.h)
//   runs/NAME/compare.csv, runs/NAME/compare.svg                       made from their logs
//
// The same command again skips what is finished and continues the rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/interrupt.h"
#include "base/program.h"
#include "base/text.h"
#include "figures/figure.h"
#include "train/run.h"
#include "train/run_page.h"

namespace petroglyph {

struct Variant {
  std::string label;                   // "transformer:position=alibi", as the user wrote it
  std::string name;                    // of its folder
  std::vector<std::string> arguments;  // {"--model=transformer", "--position=alibi"}
  int64_t parameters = 0;              // known once the model is made
  std::string weights = {};            // their fingerprint, once the run is finished

  bool sets(const std::string& option) const {
    return std::any_of(arguments.begin(), arguments.end(),
                       [&](const std::string& word) { return word.rfind("--" + option + "=", 0) == 0; });
  }
};

// --compare; example: of its words, "mamba,transformer:position=alibi"
void declare_compare(Options& options, RunSettings& settings, const std::string& example);

std::vector<std::string> names_of(const std::vector<Variant>& variants);  // of their folders

// Commas separate variants; colons separate a variant's settings: OPTION=VALUE, or a model's name. Throws UsageError
// for an empty variant, for one that is listed twice, and for lengths of one variant, since a table has one list.
std::vector<Variant> parse_variants(const std::string& list);

// The table of the variants, printed and saved (compare.csv), and loss and accuracy against steps (compare.svg): the
// steps to 50, 90 and 99 % evaluated accuracy if any variant reached these, the last evaluation, the weights'
// fingerprint. chance: the accuracy of random answers; 0: not drawn.
void write_comparison(const std::string& folder, const std::string& title, const std::vector<Variant>& variants,
                      double chance);

// Measurements at other lengths than the models were trained on.
struct LengthTable {
  std::string title;     // "Copying 16 letters"
  std::string quantity;  // "accuracy"
  std::string unit;      // of the lengths: "letters"
  bool percent;          // the values are fractions of one
  std::vector<int> lengths;
  std::vector<std::string> labels;
  std::vector<std::vector<double>> values;  // [label][length]
  double chance = 0;                        // at any length; 0: not drawn
};
Figure lengths_figure(const LengthTable& table);
// measure(length) for each length.
std::vector<double> at_lengths(const std::vector<int>& lengths, bool quiet, const std::function<double(int)>& measure);
// Printed, and saved as lengths.csv and lengths.svg.
void write_lengths(const std::string& folder, const LengthTable& table);

std::string fingerprint_text(const Model& model);  // 16 hexadecimal digits

// Prints how to continue several runs after an interruption. Returns the exit status.
int interrupted_runs(const std::string& name);

// Trains the variants in turn, in runs/NAME/. Each one is prepared before the first is trained: an error in the last one
// shows before anything is written. A Session is one run from the words of a command line:
//   Session(words), settings, options, prepare(), run
// done(session): called by all ranks together when a run is finished. Returns whether all were: not after a signal.
template <class Session, class Done>
bool train_variants(const std::vector<std::string>& words, const RunSettings& settings, const std::string& name,
                    std::vector<Variant>& variants, Done done) {
  const auto session_of = [&](const Variant& variant) {
    std::vector<std::string> all = words;
    all.insert(all.end(), variant.arguments.begin(), variant.arguments.end());
    all.push_back("--no-resume");  // each run finds out itself
    auto session = std::make_unique<Session>(all);
    session->settings.group = name + "/";
    session->settings.name = variant.name;
    session->settings.ranks = settings.ranks;
    return session;
  };
  std::map<std::string, size_t> without_effect;  // in how many variants
  for (Variant& variant : variants) {
    const auto session = session_of(variant);
    for (const auto& [option, reason] : session->options.without_effect())
      if (variant.sets(option) || ++without_effect[option] == variants.size())
        throw UsageError("\"" + variant.label + "\": " + reason);
    session->settings.quiet = true;
    session->prepare();
    variant.parameters = session->run->model().parameters.size();
    if (settings.ranks->any(interrupted())) return false;
  }
  for (Variant& variant : variants) {
    if (!settings.quiet) std::printf("\n%s\n", variant.label.c_str());
    const auto session = session_of(variant);
    session->prepare();
    if (!session->run->train()) return false;
    variant.weights = fingerprint_text(session->run->model());
    done(*session);
    if (settings.ranks->any(interrupted())) return false;
  }
  return true;
}

// --compare. Of a Session also: length_table() of the trained model, title().
template <class Session>
int compare_runs(const std::vector<std::string>& words, Session& common) {
  const RunSettings& settings = common.settings;
  const std::string name = name_of_runs(settings, "compare"), folder = "runs/" + name;
  std::vector<Variant> variants = parse_variants(settings.compare);
  LengthTable lengths;
  std::vector<std::vector<double>> values;
  double chance = 0;
  const bool finished = train_variants<Session>(words, settings, name, variants, [&](Session& session) {
    const LengthTable table = session.length_table();
    chance = session.run->chance();
    if (values.empty()) lengths = table;
    values.push_back(table.values.at(0));
  });
  if (!finished) return interrupted_runs(name);
  if (!settings.ranks->first()) return 0;
  write_comparison(folder, common.title(), variants, chance);
  lengths.labels.clear();
  for (const Variant& variant : variants) lengths.labels.push_back(variant.label);
  lengths.values = values;
  if (!lengths.lengths.empty()) write_lengths(folder, lengths);
  write_runs_page(folder, common.title(), names_of(variants));
  return 0;
}

// A program's run, or several with --compare. Returns the exit status. Session::show() shows results of the trained
// model.
template <class Session>
int train_or_compare(const std::vector<std::string>& words, Session& session, const std::shared_ptr<Ranks>& ranks) {
  session.settings.ranks = ranks;
  if (!session.settings.compare.empty()) return compare_runs(words, session);
  if (!session.settings.resume) session.options.refuse_without_effect();
  session.prepare();
  const bool finished = session.run->train();
  if (finished) session.show(), session.run->finish_page();
  std::printf("weights %s\n", fingerprint_text(session.run->model()).c_str());
  return finished ? 0 : INTERRUPTED_STATUS;
}

// main() of a program whose runs can be compared.
template <class Session>
int run_session(const std::string& program, int argc, char** argv) {
  return run_ranks(program, argc, argv, [](const std::vector<std::string>& words, const std::shared_ptr<Ranks>& ranks) {
    Session session(words);
    return train_or_compare(words, session, ranks);
  });
}

}  // namespace petroglyph
