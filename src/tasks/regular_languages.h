// Regular languages: read a string, give one answer at its end (regular_gpt, section 5, table 1).
//
//   even_pairs           of 0 1        1 where the first and the last symbol differ: an odd number of unequal neighbours
//   parity_check         of 0 1        the number of 1s mod 2
//   cycle_navigation     of 0 1 2      moves −1, 0, +1 on a circle of five, from 0: where they end
//   modular_arithmetic   of 0…4 + − *  the expression's value mod 5; * binds tighter
//   D_2 D_3 D_4 D_12     of 0 1        1 where 0 and 1 are balanced brackets, never more than n deep
//   Tomita_3             of 0 1        1 where no odd run of 1s is followed at once by an odd run of 0s
//   Tomita_4             of 0 1        1 where there is no 000
//   Tomita_5             of 0 1        1 where the 0s and the 1s are both even in number
//   Tomita_6             of 0 1        1 where the number of 0s less that of 1s is divisible by three
//
// The first four are those of Deletang et al. 2023, the others of Bhattamishra et al. 2020, where the answer is membership of the
// whole string. Each is one automaton, and all answers are read off its states.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tasks/task.h"

namespace petroglyph {

// A state that every symbol moves, and an answer that depends on the state alone.
struct Automaton {
  int symbols = 2, classes = 2;
  int start = 0;
  std::vector<int> table;   // (states,symbols): the next state
  std::vector<int> answer;  // of each state
  int sink = -1;            // the state that nothing leaves; −1: none

  int states() const { return static_cast<int>(answer.size()); }
  int next(int state, int symbol) const { return table[static_cast<size_t>(state) * symbols + symbol]; }
  int after(const int32_t* string, int length) const;  // the state that a string leads to
  int label(const int32_t* string, int length) const { return answer[static_cast<size_t>(after(string, length))]; }
};

std::vector<std::string> language_names();
// Throws Error where there is no language of this name.
Automaton automaton_of(const std::string& language);

using SymbolString = std::vector<int32_t>;
class Draws;

// One string, one answer. Half of a language's strings are members and half are not, where the length allows both: samples of
// even number are members. The paper's code has the members first, but a piece of a batch would not know where the others begin.
class RegularLanguage final : public Task {
 public:
  struct Settings {
    std::string language;
    int shortest = 1, longest = 40;  // every step draws one length for all its strings, evenly
    float ones = 0.5f;               // parity_check: how likely a symbol is 1
    bool leading_plus = false;       // modular_arithmetic: "+1*3" instead of "1*3", as the paper's code has it
    bool near_misses = false;        // a language's other half are members with one bit flipped, not random strings
    bool every_position = false;     // the model has logits for every position; only the last one's count
  };
  // Throws Error where the settings do not fit the language.
  explicit RegularLanguage(Settings settings);

  int vocab() const { return automaton_.symbols; }
  int classes() const { return automaton_.classes; }
  int context() const { return tokens_of(settings_.longest); }
  const Automaton& automaton() const { return automaton_; }
  // Whether its answer is membership, and not a sum or a place.
  bool is_membership() const { return has_members_; }
  // Whether strings of this length can be members, and near misses of members.
  bool has_members(int length) const;
  bool has_near_misses(int length) const;
  // The longest training length, of those that have members if the task is membership: evaluations are of this length.
  int evaluated_length() const;
  // How many tokens a string of this length has: an expression ends with a digit, so that an even length becomes odd.
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

// The other protocol (Bhattamishra et al. 2020): only members are read, and after every symbol two bits are predicted.
//   D_n                 whether 0 may follow, whether 1 may
//   Tomita_3, Tomita_4  whether the string followed by 0 is a member, and followed by 1
//   Tomita_5, Tomita_6  01 where the string so far is a member, 10 where it is not
std::vector<int> next_symbol_targets(const std::string& language, const SymbolString& string);

// `count` members of low … high symbols, in the lengths that Bhattamishra et al. draw; different ones where `distinct`, and none of
// `apart`. Throws Error where it does not find as many. Their way of drawing brackets has few distinct strings: 10,000 of 2 to 50 symbols
// are about 57 different ones of D_2, 58 of D_3, 147 of D_4, 466 of D_12.
std::vector<SymbolString> draw_members(const std::string& language, int low, int high, int count, bool distinct,
                                       uint64_t seed, uint32_t stream, const std::vector<SymbolString>& apart = {});

// That protocol as a task: `training` members of 2 … longest symbols, epoch after epoch, and other members for the test. Strings of one batch have different lengths; the shorter ones are followed by symbols that
// do not count, which a model must not look ahead to. A string is right where all its bits are.
class NextSymbol final : public Task {
 public:
  // training may be 0, where it is only tested on strings of shortest … longest symbols. `most` strings of the test, or fewer where
  // a language has few: a fifth of all that 2,000 tries find different ones, or all of them where it is only tested.
  NextSymbol(const std::string& language, int shortest, int longest, int training, int most, int samples_a_step,
             uint64_t seed);

  static constexpr int VOCAB = 2, CLASSES = 2;
  int64_t training_strings() const { return static_cast<int64_t>(training_.size()); }
  int64_t evaluation_samples() const override { return static_cast<int64_t>(test_.size()); }
  std::string loss_name() const override { return "squared error"; }

  // Training strings from the stream "train", those of the test from any other: `first` counts from its first one, round and round.
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override;
  double accuracy(const Batch& batch, const std::vector<int32_t>& best) const override;

 private:
  std::string language_;
  int samples_a_step_;
  std::vector<SymbolString> training_, test_;
};

}  // namespace petroglyph
