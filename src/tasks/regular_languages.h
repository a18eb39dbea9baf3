// Regular languages: the model reads a string and gives one answer at its end (regular_gpt, section 5, table 1).
//
//   even_pairs           of 0 1        1 if the first and the last symbol differ: an odd number of unequal neighbours
//   parity_check         of 0 1        the number of 1s mod 2
//   cycle_navigation     of 0 1 2      the position after moves −1, 0, +1 on a circle of five, from position 0
//   modular_arithmetic   of 0…4 + − *  the expression's value mod 5; * has precedence
//   D_2 D_3 D_4 D_12     of 0 1        1 if 0 and 1 are balanced brackets with a depth of at most n
//   Tomita_3             of 0 1        1 if no odd run of 1s is directly followed by an odd run of 0s
//   Tomita_4             of 0 1        1 if 000 does not occur
//   Tomita_5             of 0 1        1 if the numbers of 0s and of 1s are both even
//   Tomita_6             of 0 1        1 if the number of 0s minus the number of 1s is divisible by three
//
// The first four are those of Deletang et al. 2023. The others are from Bhattamishra et al. 2020; their answer is the
// membership of the whole string. Each language is one automaton, and the states of the automaton give all answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace petroglyph {

// A finite automaton: each symbol changes the state, and the answer depends only on the state.
struct Automaton {
  int symbols = 2, classes = 2;
  int start = 0;
  std::vector<int> table;   // (states,symbols): the next state
  std::vector<int> answer;  // for each state
  int sink = -1;            // the absorbing state; −1: none

  int states() const { return static_cast<int>(answer.size()); }
  int next(int state, int symbol) const { return table[static_cast<size_t>(state) * symbols + symbol]; }
  int after(const int32_t* string, int length) const;  // the state after reading a string
  int label(const int32_t* string, int length) const { return answer[static_cast<size_t>(after(string, length))]; }
};

std::vector<std::string> language_names();
// Throws Error if no language has this name.
Automaton automaton_of(const std::string& language);

using SymbolString = std::vector<int32_t>;
class Draws;

// One answer for each string. Half of a language's strings are members, if the length allows both: the samples with
// even index. The paper's code puts all members first. That is not possible here, because batch() may compute any
// part of a batch without the index where the other strings begin.
class RegularLanguage final : public Task {
 public:
  struct Settings {
    std::string language;
    int shortest = 1, longest = 40;  // every step draws one length for all its strings, uniformly
    float ones = 0.5f;               // only parity_check: the probability of a 1
    bool leading_plus = false;       // only modular_arithmetic: "+1*3" instead of "1*3", as in the paper's code
    bool near_misses = false;        // strings that are no members are members with one bit flipped, not random
    bool every_position = false;     // the model has logits at every position; only the last one counts
  };
  // Throws Error for an unknown language, and for lengths that are not 1 ≤ shortest ≤ longest.
  explicit RegularLanguage(Settings settings);

  int vocab() const { return automaton_.symbols; }
  int classes() const { return automaton_.classes; }
  int context() const { return tokens_of(settings_.longest); }
  const Automaton& automaton() const { return automaton_; }
  // Whether the answer is membership; otherwise it is a sum or a position.
  bool is_membership() const { return has_members_; }
  // Whether members of this length exist, and near misses of members.
  bool has_members(int length) const;
  bool has_near_misses(int length) const;
  // The length of evaluation strings: the longest training length, or the longest one that has members if the task is
  // membership.
  int evaluated_length() const;
  // The number of tokens of a string of this length. An expression ends with a digit, so an even length becomes odd.
  int tokens_of(int length) const;

  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override;

  static char character(int32_t symbol) { return "01234+-*"[symbol]; }

 private:
  SymbolString draw(int length, bool member, Draws& draws) const;
  SymbolString draw_expression(int length, Draws& draws) const;
  SymbolString draw_other(int length, Draws& draws) const;
  SymbolString draw_near_miss(int length, Draws& draws) const;

  Settings settings_;
  Automaton automaton_;
  bool has_members_ = false;
};

// The other protocol (Bhattamishra et al. 2020): the model reads members only, and predicts two bits after every
// symbol.
//   D_n                 whether 0 may follow, whether 1 may follow
//   Tomita_3, Tomita_4  whether the string followed by 0 is a member, and followed by 1
//   Tomita_5, Tomita_6  01 if the string so far is a member, 10 if it is not
std::vector<int> next_symbol_targets(const std::string& language, const SymbolString& string);

// `count` members of low … high symbols, with the length distribution of Bhattamishra et al. If `distinct` is set,
// all members are different. None of them is in `apart`. Throws Error if it does not find enough. Their method of
// drawing brackets has few distinct strings: 10,000 strings of 2 to 50 symbols contain about 57 distinct ones of D_2,
// 58 of D_3, 147 of D_4, 466 of D_12.
std::vector<SymbolString> draw_members(const std::string& language, int low, int high, int count, bool distinct,
                                       uint64_t seed, uint32_t stream, const std::vector<SymbolString>& apart = {});

// This protocol as a task: `training` members of 2 … longest symbols, in epochs, and other members for the test. The
// strings of one batch have different lengths. Shorter strings are padded with symbols that do not count, so a model
// must be causal. A string is correct if all its bits are.
class NextSymbol final : public Task {
 public:
  // training may be 0 for a model that is only tested, on strings of shortest … longest symbols. The test has `most`
  // strings, or fewer if the language has few: a fifth of the distinct strings among 2,000 draws, or all of them if
  // there is no training.
  NextSymbol(const std::string& language, int shortest, int longest, int training, int most, int samples_a_step,
             uint64_t seed);

  static constexpr int VOCAB = 2, CLASSES = 2;
  int64_t training_strings() const { return static_cast<int64_t>(training_.size()); }
  int64_t evaluation_samples() const override { return static_cast<int64_t>(test_.size()); }
  std::string loss_name() const override { return "squared error"; }

  // The stream "train" gives training strings, any other stream test strings: from `first` on, starting again after
  // the last one.
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override;
  double accuracy(const Batch& batch, const std::vector<int32_t>& best) const override;

 private:
  std::string language_;
  int samples_a_step_;
  std::vector<SymbolString> training_, test_;
};

}  // namespace petroglyph
