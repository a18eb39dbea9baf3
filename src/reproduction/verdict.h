// The verdict on a paper's claim from one measured experiment.
#pragma once

#include <string>

#include "reproduction/cells.h"

namespace petroglyph {

struct Verdict {
  // "confirmed": all comparisons hold with all seeds. "contradicted": none holds. "not decided": any other result,
  // with the reason. "not run": no result.
  std::string word = "not run";
  std::string number;     // the measured numbers, at most LONGEST_CELL characters
  std::string reason;     // for "not decided"
  bool is_final = false;  // measured by models that have learned enough: a smaller size gives no further information
  bool decided() const { return word == "confirmed" || word == "contradicted"; }
};

constexpr size_t LONGEST_CELL = 120;  // characters in a cell of the table of claims

Verdict verdict_of(const Claim& claim, const Measured& measured);
// The number of UTF-8 characters.
size_t characters_in(const std::string& words);

}  // namespace petroglyph
