#include "reproduction/verdict.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace petroglyph {

namespace {

enum class Outcome { HOLDS, FAILS, CLOSE, NOT_MEASURED };

// The numbers of one side: one for each seed, or their best or mean.
struct SideNumbers {
  std::vector<double> values;
  bool is_exact = false;  // a constant, a best or mean, or a log's number that does not depend on a seed
  size_t missing = 0;
  std::string shown;
};

SideNumbers numbers_of(const Side& side, const Measured& measured) {
  if (!side.cell) return {{side.factor * side.number}, true, 0, number_text(side.number, 6)};
  const Numbers numbers = numbers_of(*side.cell, measured);
  SideNumbers found{numbers.values, side.cell->file.empty() && numbers.runs == 1, numbers.missing,
                    shown(*side.cell, numbers)};
  if (found.values.empty()) return found;
  if (side.of == Side::Of::BEST) found.values = {*std::max_element(found.values.begin(), found.values.end())};
  if (side.of == Side::Of::MEAN) found.values = {mean_of(found.values)};
  if (side.of != Side::Of::SEEDS) found.shown = shown_number("%1", found.values[0]), found.is_exact = true;
  for (double& value : found.values) value *= side.factor;
  return found;
}

// Whether every number of the left side is below every number of the right side. If a side has only one seed, the
// ratio must be at least `spread`. Equal numbers decide nothing, except that a given constant must be passed.
Outcome below(const SideNumbers& left, const SideNumbers& right, double spread, bool given) {
  const auto alone = [](const SideNumbers& side) { return side.values.size() == 1 && !side.is_exact; };
  const double margin = alone(left) || alone(right) ? spread : 1;
  const auto [least, most] = std::minmax_element(left.values.begin(), left.values.end());
  const auto [first, last] = std::minmax_element(right.values.begin(), right.values.end());
  if (*most * margin < *first) return Outcome::HOLDS;
  if (*last * margin < *least || (given && *last == *least)) return Outcome::FAILS;
  return Outcome::CLOSE;
}

// Whether the ratio of the means is below `within`; if it is up to `spread` times larger, nothing is decided.
Outcome alike(double left, double right, double within, double spread) {
  if (std::isinf(left) && std::isinf(right)) return Outcome::CLOSE;
  if (left <= 0 || right <= 0) return left == right ? Outcome::HOLDS : Outcome::FAILS;  // no ratio exists
  const double times = std::max(left / right, right / left) / within;
  if (times >= 1 && times < spread) return Outcome::CLOSE;
  return times < 1 ? Outcome::HOLDS : Outcome::FAILS;
}

struct Judged {
  Outcome outcome = Outcome::NOT_MEASURED;
  size_t missing = 0;
  std::string sentence;
};

std::string labelled(const std::string& label, const Side& side, const SideNumbers& numbers) {
  const std::string factor = side.cell && side.factor != 1 ? number_text(side.factor, 3) + " × " : "";
  return factor + (label.empty() ? "" : label + " ") + (numbers.shown.empty() ? "?" : numbers.shown);
}

// "16 letters: CausalRN 65 (64 to 65) < Transformer 57 (56 to 58)": the common part of both labels comes first.
std::string sentence_of(const Comparison& comparison, const SideNumbers& left, const SideNumbers& right,
                        Outcome outcome) {
  const Side &a = comparison.left, &b = comparison.right;
  std::string shared, first, second;
  if (a.cell && b.cell) {
    const bool columns = a.column == b.column;
    shared = columns ? a.column : a.row == b.row ? a.row : "";
    first = columns ? a.row : shared.empty() ? a.row + ", " + a.column : a.column;
    second = columns ? b.row : shared.empty() ? b.row + ", " + b.column : b.column;
  } else {
    shared = a.cell ? a.row + ", " + a.column : b.row + ", " + b.column;
  }
  const bool above = !a.cell && b.cell;  // the measured number comes first
  const std::string words = above ? " above " : " below ";
  std::string sign = outcome == Outcome::HOLDS   ? (above ? " > " : " < ")
                     : outcome == Outcome::CLOSE ? " overlaps with "
                                                 : " is not" + words;
  if (comparison.relation == "~")
    sign = (outcome == Outcome::CLOSE   ? " about at the limit of "
            : outcome == Outcome::HOLDS ? " within "
                                        : " not within ") +
           number_text(comparison.within, 3) + " × ";
  const std::string one = labelled(first, a, left), other = labelled(second, b, right);
  return shared + (shared.empty() ? "" : ": ") + (above ? other + sign + one : one + sign + other);
}

Judged judge(const Comparison& comparison, double spread, const Measured& measured) {
  const SideNumbers left = numbers_of(comparison.left, measured), right = numbers_of(comparison.right, measured);
  Judged judged;
  judged.missing = left.missing + right.missing;
  if (!left.values.empty() && !right.values.empty()) {
    const bool given = !comparison.left.cell || !comparison.right.cell;
    judged.outcome = comparison.relation == "<"
                         ? below(left, right, spread, given)
                         : alike(mean_of(left.values), mean_of(right.values), comparison.within, spread);
  }
  judged.sentence = sentence_of(comparison, left, right, judged.outcome);
  return judged;
}

// The first condition that does not hold, as a sentence.
std::string unmet_condition(const Claim& claim, const Measured& measured) {
  for (const Comparison& condition : claim.conditions) {
    const Judged judged = judge(condition, 1, measured);
    if (judged.outcome == Outcome::HOLDS) continue;
    const bool known = judged.outcome != Outcome::NOT_MEASURED;
    return (known ? "the models have learned too little: " : "not measured: ") + judged.sentence;
  }
  return "";
}

}  // namespace

size_t characters_in(const std::string& words) {
  return static_cast<size_t>(
      std::count_if(words.begin(), words.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

Verdict verdict_of(const Claim& claim, const Measured& measured) {
  Verdict verdict;
  size_t holds = 0, fails = 0, found = 0, missing = 0;
  std::vector<std::string> all, against;
  for (const Comparison& need : claim.needs) {
    const Judged judged = judge(need, claim.spread, measured);
    missing += judged.missing;
    if (judged.outcome == Outcome::NOT_MEASURED) continue;
    ++found;
    holds += judged.outcome == Outcome::HOLDS;
    fails += judged.outcome == Outcome::FAILS;
    all.push_back(judged.sentence);
    if (judged.outcome != Outcome::HOLDS) against.push_back(judged.sentence);
  }
  if (found == 0 && claim.open.empty()) return verdict;
  const std::string counted = text("%zu of %zu comparisons hold", holds, claim.needs.size());
  verdict.number = claim.number.empty() ? join(all, "; ") : with_numbers(claim.number, measured);
  if (characters_in(verdict.number) > LONGEST_CELL) verdict.number = counted;
  verdict.word = "not decided";
  const std::string unmet = unmet_condition(claim, measured);
  const bool unfinished = missing > 0 || found < claim.needs.size();
  verdict.is_final = !claim.open.empty() || (!unfinished && unmet.empty());
  if (!claim.open.empty())
    verdict.reason = with_numbers(claim.open, measured);
  else if (unfinished)
    verdict.reason = text("not all of its runs are done: %zu of %zu", measured.done(), measured.runs.size());
  else if (!unmet.empty())
    verdict.reason = unmet;
  else if (holds == found || fails == found)
    verdict.word = holds == found ? "confirmed" : "contradicted";
  else
    verdict.reason =
        counted + ": " + against[0] + (against.size() > 1 ? text("; and %zu more", against.size() - 1) : "");
  return verdict;
}

}  // namespace petroglyph
