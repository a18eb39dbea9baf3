// The copying task (Jelassi et al. 2024, in the layout of the CausalRN paper's code): read a random string, repeat it.
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
  int prompt() const { return length_ + 2; }  // tokens up to SEP
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override;

  // The rule of the authors' code ("average accuracy" in the papers): 0 for a string whose EOS is not exactly at the end, else the
  // part of its letters that is right.
  double accuracy(const Batch& batch, const std::vector<int32_t>& best) const override;
  // The same for one answer of n+1 tokens to one string.
  double answer_accuracy(const int32_t* string, const int32_t* answer) const;
  double chance() const override { return 1.0 / LETTERS; }  // of letters at random, with EOS in its place

  static char letter(int32_t token);  // a … z; ^ | $ for BOS, SEP, EOS

 private:
  int length_;
};

}  // namespace petroglyph
