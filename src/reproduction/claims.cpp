// What became of the papers' claims: each is judged by the numbers of the largest run whose models have learned enough for
// it.

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/text.h"
#include "reproduction/page.h"

namespace petroglyph {

namespace {

// Given, or counted: it does not depend on a seed.
bool is_exact(const Side& side) {
  return side.cell.file.empty() || (side.cell.form == Cell::Form::SAID && side.cell.others.empty());
}

// How many numbers it should be judged by.
size_t planned(const Side& side) { return planned_numbers(side.cell); }

// Of each seed that was run the number, or the sum. A step that was not reached is later than all.
std::vector<double> side_numbers(const Side& side, const Finder& find) {
  if (side.cell.file.empty()) return {side.number};
  std::vector<double> numbers;
  for (size_t seed = 0; seed < planned(side); ++seed) {
    const Cell cell = of_one_seed(side.cell, seed);
    double number = cell_number(cell, find);
    if (cell.form == Cell::Form::STEP && std::isnan(number) && shown_cell(cell, find))
      number = std::numeric_limits<double>::infinity();
    for (const Cell& more : side.plus) number += cell_number(of_one_seed(more, seed), find);
    if (!std::isnan(number)) numbers.push_back(number);
  }
  return numbers;
}

std::string shown(const Side& side, const Finder& find) {
  const std::string number = side.cell.file.empty() ? number_text(side.number, 4)
                             : side.plus.empty()    ? shown_cell(side.cell, find).value_or("?")
                                                    : shown_seeds(side.cell, side_numbers(side, find)).value_or("?");
  return side.label.empty() ? number : side.label + " " + number;
}

enum class Outcome { NOT_MEASURED, CLOSE, HOLDS, FAILS };

// Of the numbers of one run each.
Outcome below_by_run(const Check& check, const std::vector<double>& less, const std::vector<double>& more) {
  size_t holds = 0;
  for (size_t i = 0; i < less.size(); ++i) holds += less[i] < check.factor * more[i];
  return holds == less.size() ? Outcome::HOLDS : holds == 0 ? Outcome::FAILS : Outcome::CLOSE;
}

// Whether each number of one side, times the spread where a side has only one seed, is below each of the other.
Outcome below(const Check& check, const std::vector<double>& less, const std::vector<double>& more) {
  const auto alone = [](const Side& side, const std::vector<double>& numbers) {
    return numbers.size() == 1 && !is_exact(side);
  };
  const double spread = alone(check.less, less) || alone(check.more, more) ? check.spread : 1;
  const auto [first, last] = std::minmax_element(less.begin(), less.end());
  const auto [least, most] = std::minmax_element(more.begin(), more.end());
  const bool given = check.less.cell.file.empty() || check.more.cell.file.empty();  // such a number has to be passed
  if (*last * spread < check.factor * *least) return Outcome::HOLDS;
  if (check.factor * *most * spread < *first || (given && check.factor * *most == *first)) return Outcome::FAILS;
  return Outcome::CLOSE;
}

// Of the means of the seeds.
Outcome alike(const Check& check, double less, double more) {
  if (std::isinf(less) && std::isinf(more)) return Outcome::CLOSE;
  const bool wanted = check.relation == Check::Relation::ALIKE;
  if (less == 0 || more == 0 || (less > 0) != (more > 0))  // no quotient says how far apart these are
    return (less == more) == wanted ? Outcome::HOLDS : Outcome::FAILS;
  const double times = std::max(less / more, more / less) / check.factor;
  if (times >= 1 && times < check.spread) return Outcome::CLOSE;
  return (times < 1) == wanted ? Outcome::HOLDS : Outcome::FAILS;
}

Outcome outcome_of(const Check& check, const Finder& find) {
  const std::vector<double> less = side_numbers(check.less, find), more = side_numbers(check.more, find);
  if (less.empty() || more.empty()) return Outcome::NOT_MEASURED;
  if (check.of_one_run && less.size() == more.size()) return below_by_run(check, less, more);
  return check.relation == Check::Relation::BELOW ? below(check, less, more)
                                                  : alike(check, mean_of(less), mean_of(more));
}

std::string sentence(const Check& check, Outcome outcome, const Finder& find) {
  const std::string left = shown(check.less, find),
                    right = (check.factor == 1 ? "" : number_text(check.factor, 3) + " × ") + shown(check.more, find);
  if (check.relation != Check::Relation::BELOW) {
    const bool within = (outcome == Outcome::HOLDS) == (check.relation == Check::Relation::ALIKE);
    return left +
           (outcome == Outcome::CLOSE ? " is about as near as "
            : within                  ? " is within "
                                      : " is not within ") +
           right;
  }
  if (outcome == Outcome::HOLDS) return left + " < " + right;
  if (outcome != Outcome::CLOSE) return left + " is not below " + right;
  const bool several = planned(check.less) > 1 || planned(check.more) > 1;
  if (several && (is_exact(check.less) || is_exact(check.more))) {
    const Side& measured = is_exact(check.less) ? check.more : check.less;
    const bool one = side_numbers(measured, find).size() == 1;
    return left + " is below " + right + (one ? " by less than seeds spread" : " with some seeds only");
  }
  return left + (several || check.spread > 1 ? ", within the spread of seeds of " : " is the same as ") + right;
}

// What was measured of one claim in one run.
struct Judgement {
  int holds = 0, fails = 0, close = 0, missing = 0;  // missing: all of it, or some seeds
  int open = 0;         // of those that fail or are close: with the missing seeds they may hold
  bool decided = true;  // the claim's conditions hold
  std::string why;

  bool measured() const { return holds + fails + close > 0; }
  // A run that is not finished can speak against a claim, not for it.
  bool unfinished() const { return !decided || (missing > 0 && fails + close == open); }
  std::string verdict(bool full) const {
    const std::string scale = full ? "" : " at reduced scale";
    if (!measured()) return "not run";
    if (unfinished()) return "not decided";
    if (fails + close + missing == 0) return "confirmed" + scale;
    return holds + close + missing == 0 ? "contradicted" + scale : "not confirmed";
  }
};

// The conditions that do not hold, and why nothing is decided then.
std::vector<std::string> unmet_of(const Claim& claim, const Finder& find) {
  std::vector<std::string> unmet;
  for (const Check& condition : claim.conditions) {
    const Outcome outcome = outcome_of(condition, find);
    const std::string words = sentence(condition, outcome, find);
    if (outcome == Outcome::NOT_MEASURED) unmet.push_back("whether it has learned enough was not measured: " + words);
    if (outcome == Outcome::CLOSE || outcome == Outcome::FAILS) unmet.push_back(condition.unmet + ": " + words);
  }
  return unmet;
}

// Whether a side is of several seeds, of which some were not run.
bool lacks_seeds(const Check& check, const Finder& find) {
  for (const Side* side : {&check.less, &check.more})
    if (side_numbers(*side, find).size() < planned(*side) || lacks_rows(side->cell, find)) return true;
  return false;
}

// Whether a comparison can still come to hold when the seeds that it lacks are there. One of BELOW cannot where two seeds are the
// wrong way round already; the means that the others are of may still move, but for one of a step that was not reached.
bool may_hold(const Check& check, const Finder& find) {
  const std::vector<double> less = side_numbers(check.less, find), more = side_numbers(check.more, find);
  if (check.relation != Check::Relation::BELOW) return std::isfinite(mean_of(less)) && std::isfinite(mean_of(more));
  if (check.of_one_run) return below_by_run(check, less, more) == Outcome::HOLDS;
  return *std::max_element(less.begin(), less.end()) < check.factor * *std::min_element(more.begin(), more.end());
}

// With the numbers that belong to it: "Steps to 99 %; last accuracy, % 97.1".
std::string remark_of(const Claim& claim, const Finder& find) {
  std::vector<std::string> parts;
  if (!claim.remark.empty()) parts.push_back(claim.remark);
  for (const Side& side : claim.beside)
    if (!side_numbers(side, find).empty()) parts.push_back(shown(side, find));
  return join(parts, "; ");
}

// Of many comparisons those that fail are named.
Judgement judge(const Claim& claim, const Finder& find) {
  constexpr size_t NAMED = 3;
  Judgement judgement;
  std::vector<std::string> held, failed;  // or close
  int few_seeds = 0;
  for (const Check& check : claim.checks) {
    const Outcome outcome = outcome_of(check, find);
    judgement.holds += outcome == Outcome::HOLDS;
    judgement.fails += outcome == Outcome::FAILS;
    judgement.close += outcome == Outcome::CLOSE;
    if (outcome == Outcome::NOT_MEASURED) {
      ++judgement.missing;
      continue;
    }
    const bool lacks = lacks_seeds(check, find);
    few_seeds += lacks;
    judgement.open += lacks && outcome != Outcome::HOLDS && may_hold(check, find);
    (outcome == Outcome::HOLDS ? held : failed).push_back(sentence(check, outcome, find));
  }
  if (!judgement.measured()) return judgement;
  const std::vector<std::string> unmet = unmet_of(claim, find);
  judgement.decided = unmet.empty();
  const bool few = claim.checks.size() <= NAMED;
  if (!few) judgement.why = text("%d of %zu comparisons hold", judgement.holds, claim.checks.size());
  std::vector<std::string> named = few ? held : std::vector<std::string>();
  named.insert(named.end(), failed.begin(), failed.begin() + std::min(failed.size(), NAMED));
  if (failed.size() > NAMED) named.push_back("and others");
  if (judgement.missing > 0) named.push_back(text("%d not measured", judgement.missing));
  if (few_seeds > 0) named.push_back(text("%d not of all seeds", few_seeds));
  judgement.missing += few_seeds;
  judgement.why += (judgement.why.empty() || named.empty() ? "" : ": ") + join(named, "; ");
  if (!judgement.decided) judgement.why = unmet[0] + (unmet.size() > 1 ? ", and others" : "") + ". " + judgement.why;
  const std::string remark = remark_of(claim, find);
  if (!remark.empty()) judgement.why += ". " + remark;
  return judgement;
}

// Whether a command was given what that part left.
bool reads(const DoneCommand& command, const std::string& folder) {
  const std::vector<std::string> words = words_of(command.line);
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return (word + "/").rfind(folder + "/", 0) == 0; });
}

// The parts whose numbers a claim shows, and of what has no weights of its own those that it was made from.
std::set<std::string> parts_behind(const Claim& claim, const Record& record) {
  std::set<std::string> parts;
  for (const Cell& cell : cells_of(claim)) {
    parts.insert(cell.file.substr(0, cell.file.find_first_of("/.")));
    for (const std::string& other : cell.others) parts.insert(other.substr(0, other.find_first_of("/.")));
  }
  const std::string folder = folder_of(record.experiment, record.scale);
  for (const DoneCommand& command : record.commands)
    if (parts.count(command.part) == 1 && command.weights.empty())
      for (const DoneCommand& other : record.commands)
        if (reads(command, part_folder(folder, other.part))) parts.insert(other.part);
  return parts;
}

// The weights of these parts; of many the first ones.
std::string weights_behind(const Claim& claim, const Record& record) {
  constexpr size_t SHOWN = 4;
  const std::set<std::string> parts = parts_behind(claim, record);
  std::vector<std::string> weights;
  for (const DoneCommand& command : record.commands)
    if (parts.count(command.part) == 1)
      for (const Fingerprint& f : command.weights)
        weights.push_back((f.run.empty() ? command.part : f.run) + " " + f.weights);
  if (weights.empty()) return "nothing is trained";
  const size_t more = weights.size() > SHOWN ? weights.size() - SHOWN : 0;
  weights.resize(weights.size() - more);
  return join(weights, ", ") + (more > 0 ? text(" and %zu more in its section", more) : "");
}

// What a user types for such a run.
std::string command_of(const std::string& experiment, const Scale& scale) {
  const std::string data =
      std::string(scale.text.empty() ? "" : " --data FILE") + (scale.validation.empty() ? "" : " --val FILE") +
      (scale.tokenizer.empty() ? "" : " --tokenizer NAME") + (scale.images.empty() ? "" : " --cifar FOLDER");
  const std::string edition = edition_of(scale);
  return "./reproduce run " + experiment + (edition == "data" ? "" : " --" + edition) + data;
}

// A claim in the words and comparisons of one run's plan; null where that has none.
const Claim* find_claim(const std::vector<Claim>& claims, const std::string& says) {
  const auto found = std::find_if(claims.begin(), claims.end(), [&](const Claim& claim) { return claim.says == says; });
  return found == claims.end() ? nullptr : &*found;
}

// By the first run that measured all of it or speaks against it, of models that have learned enough; where there is none, by the
// first that measured some.
PageClaim judged(const Experiment& experiment, const std::string& says, const std::vector<Kept>& kept) {
  PageClaim line{experiment.paper, experiment.where, says, "not run", "", "", "", ""};
  for (const Kept& one : kept) {
    const Scale& scale = one.record.scale;
    const std::vector<Claim> claims = experiment.plan(scale).claims;
    const Claim* const claim = find_claim(claims, says);
    const Judgement judgement = claim ? judge(*claim, one.find) : Judgement();
    if (!judgement.measured() || (judgement.unfinished() && line.verdict != "not run")) continue;
    line.verdict = judgement.verdict((scale.full() || experiment.full.empty()) && !claim->small);
    line.why = judgement.why;
    line.id = kept_folder(experiment.name, edition_of(scale));
    line.command = command_of(experiment.name, scale);
    line.weights = weights_behind(*claim, one.record);
    if (!judgement.unfinished()) break;
  }
  return line;
}

}  // namespace

// The best first, as in Judgement::verdict.
std::string tally_of(const std::vector<PageClaim>& claims) {
  std::vector<std::string> counts;
  for (const char* verdict : {"confirmed", "confirmed at reduced scale", "not confirmed", "contradicted",
                              "contradicted at reduced scale", "not decided", "not run"}) {
    const auto count =
        std::count_if(claims.begin(), claims.end(), [&](const PageClaim& claim) { return claim.verdict == verdict; });
    if (count > 0) counts.push_back(text("%td %s", count, verdict));
  }
  return text("%zu claims: ", claims.size()) + join(counts, ", ") + ".";
}

std::vector<PageClaim> claims_of(const Experiment& experiment, const std::vector<Kept>& kept) {
  std::vector<PageClaim> lines;
  for (const Claim& claim : experiment.plan({}).claims) lines.push_back(judged(experiment, claim.says, kept));
  return lines;
}

}  // namespace petroglyph
