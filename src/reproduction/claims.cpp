// What became of the papers' claims: each is judged by the numbers that the largest run of its experiment left.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "base/text.h"
#include "reproduction/page.h"

namespace petroglyph {

namespace {

// A step that was not reached is later than all.
double number_of(const Side& side, const Finder& find) {
  if (side.cell.file.empty()) return side.number;
  double number = cell_number(side.cell, find);
  for (const Cell& cell : side.plus) number += cell_number(cell, find);
  const bool never = side.cell.form == Cell::Form::STEP && std::isnan(number) && shown_cell(side.cell, find);
  return never ? std::numeric_limits<double>::infinity() : number;
}

enum class Outcome { NOT_MEASURED, CLOSE, HOLDS, FAILS };

// Of all seeds; a step that was not reached is later than all.
struct Range {
  double least, most;
};

std::optional<Range> range_of(const Side& side, const Finder& find) {
  std::vector<double> numbers = cell_seeds(side.cell, find);
  for (const Cell& cell : side.plus) {
    const std::vector<double> more = cell_seeds(cell, find);
    if (more.size() != numbers.size()) return std::nullopt;
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] += more[i];
  }
  if (numbers.size() < 2) return std::nullopt;
  for (double& x : numbers)
    if (std::isnan(x)) x = std::numeric_limits<double>::infinity();
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  return Range{*least, *most};
}

std::string shown_sum(const Side& side, const Finder& find) {
  const auto digits = [&](double x) { return text("%.*f", side.cell.digits, x); };
  const std::optional<Range> seeds = range_of(side, find);
  return digits(number_of(side, find)) +
         (seeds ? " (" + digits(seeds->least) + " to " + digits(seeds->most) + ")" : std::string());
}

std::string shown(const Side& side, const Finder& find) {
  const std::string number = side.cell.file.empty() ? number_text(side.number, 4)
                             : side.plus.empty()    ? shown_cell(side.cell, find).value_or("?")
                                                    : shown_sum(side, find);
  return side.label.empty() ? number : side.label + " " + number;
}

// Of what does not depend on a seed, or is taken as it is.
std::optional<Range> only_number_of(const Side& side, const Finder& find) {
  const double number = number_of(side, find);
  return side.cell.others.empty() && !std::isnan(number) ? std::optional<Range>({number, number}) : std::nullopt;
}

// How many times each seed's number is that of each of the other side, the least and the most of it; 1 where they overlap.
Range times_apart(const Range& a, const Range& b) {
  // Of two zeros, and of two steps that were not reached, 1.
  const auto quotient = [](double x, double y) { return x == y ? 1 : x / y; };
  return {std::max({1.0, quotient(a.least, b.most), quotient(b.least, a.most)}),
          std::max(quotient(a.most, b.least), quotient(b.most, a.least))};
}

Outcome outcome_of_seeds(const Check& check, const Range& left, const Range& right) {
  if (check.relation == Check::Relation::BELOW) {
    if (left.most < check.factor * right.least) return Outcome::HOLDS;
    const double most = check.factor * right.most;
    const bool given = check.less.cell.file.empty() || check.more.cell.file.empty();  // a given number has to be passed
    return most < left.least || (given && most == left.least) ? Outcome::FAILS : Outcome::CLOSE;
  }
  const bool nowhere = std::isinf(left.least) && std::isinf(right.least);  // no seed of either has arrived
  if (nowhere || left.least < 0 || right.least < 0) return Outcome::CLOSE;
  const Range times = times_apart(left, right);
  const bool near = times.most < check.factor, far = times.least >= check.factor;
  if (!near && !far) return Outcome::CLOSE;
  return near == (check.relation == Check::Relation::ALIKE) ? Outcome::HOLDS : Outcome::FAILS;
}

Outcome outcome_of(const Check& check, const Finder& find) {
  std::optional<Range> left = range_of(check.less, find), right = range_of(check.more, find);
  if (left && !right && check.spread == 1) right = only_number_of(check.more, find);
  if (right && !left && check.spread == 1) left = only_number_of(check.less, find);
  if (left && right) return outcome_of_seeds(check, *left, *right);
  const double less = number_of(check.less, find), more = check.factor * number_of(check.more, find);
  if (std::isnan(less) || std::isnan(more)) return Outcome::NOT_MEASURED;
  if (std::isinf(less) && std::isinf(more)) return Outcome::CLOSE;
  if (check.relation != Check::Relation::BELOW) {
    if (less == 0 || more == 0 || (less > 0) != (more > 0))  // no quotient says how far apart these are
      return (less == more) == (check.relation == Check::Relation::ALIKE) ? Outcome::HOLDS : Outcome::FAILS;
    const double times = std::max(less / more, more / less / check.factor / check.factor);  // of the factor
    if (times >= 1 && times < check.spread) return Outcome::CLOSE;
    return (times < 1) == (check.relation == Check::Relation::ALIKE) ? Outcome::HOLDS : Outcome::FAILS;
  }
  if (less * check.spread < more) return Outcome::HOLDS;
  if (check.spread > 1 && less <= more * check.spread) return Outcome::CLOSE;
  const bool both = cells_of(check).size() > 1;  // measured; a given number has to be passed
  return both && less == more ? Outcome::CLOSE : Outcome::FAILS;
}

std::string sentence(const Check& check, Outcome outcome, const Finder& find) {
  const std::string factor = check.factor == 1 ? "" : number_text(check.factor, 3) + " × ";
  if (check.relation != Check::Relation::BELOW) {
    const bool within = (outcome == Outcome::HOLDS) == (check.relation == Check::Relation::ALIKE);
    return shown(check.less, find) +
           (outcome == Outcome::CLOSE ? " is about as near as "
            : within                  ? " is within "
                                      : " is not within ") +
           factor + shown(check.more, find);
  }
  const bool seeds = check.spread > 1 || !check.less.cell.others.empty() || !check.more.cell.others.empty();
  const char* const relation = outcome == Outcome::HOLDS   ? " < "
                               : outcome != Outcome::CLOSE ? " is not below "
                               : seeds                     ? ", within the spread of seeds of "
                                                           : " is the same as ";
  return shown(check.less, find) + relation + factor + shown(check.more, find);
}

// What was measured of one claim in one run.
struct Judgement {
  int holds = 0, fails = 0, close = 0, missing = 0;
  bool decided = true;  // the claim's conditions hold
  std::string why;

  bool measured() const { return holds + fails + close > 0; }
  // A run that is not finished can speak against a claim, not for it.
  bool unfinished() const { return !decided || (missing > 0 && fails + close == 0); }
  std::string verdict(bool full) const {
    const std::string scale = full ? "" : " at reduced scale";
    if (!measured()) return "not run";
    if (!decided) return "not decided";
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
    if (outcome == Outcome::CLOSE || outcome == Outcome::FAILS) unmet.push_back("learned too little: " + words);
  }
  return unmet;
}

// Whether a side is of several seeds, of which some were not run.
bool lacks_seeds(const Check& check, const Finder& find) {
  for (const Side* side : {&check.less, &check.more})
    if (!side->cell.others.empty() && cell_seeds(side->cell, find).size() < 1 + side->cell.others.size()) return true;
  return false;
}

// Of many comparisons those that fail are named.
Judgement judge(const Claim& claim, const Finder& find) {
  constexpr size_t NAMED = 3;
  Judgement judgement;
  std::vector<std::string> held, failed;  // or close
  for (const Check& check : claim.checks) {
    const Outcome outcome = outcome_of(check, find);
    judgement.holds += outcome == Outcome::HOLDS;
    judgement.fails += outcome == Outcome::FAILS;
    judgement.close += outcome == Outcome::CLOSE;
    judgement.missing += outcome == Outcome::NOT_MEASURED || lacks_seeds(check, find);
    if (outcome == Outcome::NOT_MEASURED) continue;
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
  judgement.why += (judgement.why.empty() || named.empty() ? "" : ": ") + join(named, "; ");
  if (!judgement.decided) judgement.why = unmet[0] + (unmet.size() > 1 ? ", and others" : "") + ". " + judgement.why;
  if (!claim.remark.empty()) judgement.why += ". " + claim.remark;
  return judgement;
}

// Whether a command was given what that part left.
bool reads(const DoneCommand& command, const std::string& folder) {
  const std::vector<std::string> words = words_of(command.line);
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return (word + "/").rfind(folder + "/", 0) == 0; });
}

// The parts whose numbers a claim compares, and of what has no weights of its own those that it was made from.
std::set<std::string> parts_behind(const Claim& claim, const Record& record) {
  std::set<std::string> parts;
  for (const Check& check : claim.checks)
    for (const Cell& cell : cells_of(check)) {
      parts.insert(cell.file.substr(0, cell.file.find_first_of("/.")));
      for (const std::string& other : cell.others) parts.insert(other.substr(0, other.find('/')));
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

std::vector<PageClaim> claims_of(const Experiment& experiment, const std::vector<Kept>& kept) {
  std::vector<PageClaim> lines;
  for (const Claim& claim : experiment.plan({}).claims) lines.push_back(judged(experiment, claim.says, kept));
  return lines;
}

}  // namespace petroglyph
