// The copying task (Jelassi et al. 2024, in the layout of the CausalRN paper's code): read a random string and repeat
// it.
//
//   input    BOS  s1 … sn  SEP  s1 … sn        2(n+1) tokens
//   target    −    − …  −   s1  s2 … sn  EOS   the first n+1 positions do not count
#pragma once

#include "tasks/task.h"

namespace petroglyph {

class Copying final : public Task {
 public:
  static constexpr int BOS = 0, SEP = 1, EOS = 2, FIRST_LETTER = 3, LETTERS = 26;

  explicit Copying(int length) : length_(length) {}  // n ≥ 1 letters

  int vocab() const { return FIRST_LETTER + LETTERS; }
  int context() const { return 2 * (length_ + 1); }
  int prompt() const { return length_ + 2; }  // tokens up to and including SEP
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override;

  // The metric of the authors' code ("average accuracy" in the papers): 0 for a string whose EOS is not exactly at
  // the end, otherwise the fraction of its letters that are correct.
  double accuracy(const Batch& batch, const std::vector<int32_t>& best) const override;
  // The same metric for one answer of n+1 tokens to one string.
  double answer_accuracy(const int32_t* string, const int32_t* answer) const;
  double chance() const override { return 1.0 / LETTERS; }  // of random letters with a correct EOS

  static char letter(int32_t token);  // a … z; ^ | $ for BOS, SEP, EOS

 private:
  int length_;
};

}  // namespace petroglyph
