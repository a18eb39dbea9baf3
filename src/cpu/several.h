// Several vector registers as one number: what a formula says is done to all of them, one operation after the other.
//
// 2^y is a chain of ten instructions, each of which waits for the one before. Compilers write down the chain of one vector after
// that of another, and a processor that chooses among some 100 instructions sees too few chains then to keep its units busy: a
// third of the relation's time was lost. Here the type brings chains side by side, and the formulas are those of math/, which
// take any type of number.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpu/simd.h"

namespace petroglyph {

// Where there is no such instruction, doubles are rounded to floats (numerics.h). Until version 14, g++ takes a vector of as many
// floats, widened again, for what it was, and leaves that rounding out; so the result passes where the compiler cannot look.
//
// With AVX-512 g++ may not look either: it puts a chain together again where each of its sums is used once, and the relation's
// backward pass takes 8 % longer. With half as many registers it is right to.
template <int COUNT, class Register>
[[gnu::always_inline]] inline Register fused(Register a, Register b, Register c) {
  Register sum = c;
  for (int l = 0; l < COUNT; ++l) sum[l] = numerics::fma(a[l], b[l], c[l]);
#if defined(__x86_64__) && !defined(__FMA__) && !defined(__clang__)
  if constexpr (COUNT > 1) asm("" : "+x"(sum));
#elif defined(__AVX512F__) && !defined(__clang__)
  if constexpr (sizeof(Register) == VECTOR_BYTES) asm("" : "+v"(sum));
#endif
  return sum;
}

// SIZE registers of WIDTH numbers, which is a power of two up to VECTOR_WIDTH.
template <int WIDTH, int SIZE>
struct Several {
  typedef real Register __attribute__((vector_size(WIDTH * sizeof(real)), aligned(sizeof(real)), may_alias));
  typedef std::conditional_t<sizeof(real) == 4, uint32_t, uint64_t> Bits
      __attribute__((vector_size(WIDTH * sizeof(real))));

  static constexpr int REGISTERS = SIZE;
  template <int N>
  using Of = Several<WIDTH, N>;

  // An array of no elements is no C++; SIZE is 0 where a loop has no rest.
  alignas(WIDTH * sizeof(real)) Register at[SIZE > 0 ? SIZE : 1];

  Several() = default;
  [[gnu::always_inline]] Several(real x) {
#pragma GCC unroll 16
    for (int i = 0; i < SIZE; ++i) at[i] = x - Register{};
  }
  [[gnu::always_inline]] static Several load(const real* x) {
    if constexpr (SIZE == 0) return {};
    Several all;
#pragma GCC unroll 16
    for (int i = 0; i < SIZE; ++i) all.at[i] = *reinterpret_cast<const Register*>(x + i * WIDTH);
    return all;
  }
  [[gnu::always_inline]] void store(real* x) const {
#pragma GCC unroll 16
    for (int i = 0; i < SIZE; ++i) *reinterpret_cast<Register*>(x + i * WIDTH) = at[i];
  }
  // part(0), part(1), … of N registers each
  template <int N, class Part>
  [[gnu::always_inline]] static Several join(Part part) {
    Several all;
#pragma GCC unroll 16
    for (int first = 0; first < SIZE; first += N) {
      const Several<WIDTH, N> some = part(first / N);
#pragma GCC unroll 16
      for (int i = 0; i < N; ++i) all.at[first + i] = some.at[i];
    }
    return all;
  }
  // N registers from `first` on
  template <int N>
  [[gnu::always_inline]] Several<WIDTH, N> part(int first) const {
    Several<WIDTH, N> some;
#pragma GCC unroll 16
    for (int i = 0; i < N; ++i) some.at[i] = at[first + i];
    return some;
  }

  [[gnu::always_inline]] friend Several operator+(Several a, Several b) {
#pragma GCC unroll 16
    for (int i = 0; i < SIZE; ++i) a.at[i] = a.at[i] + b.at[i];
    return a;
  }
  [[gnu::always_inline]] friend Several operator-(Several a, Several b) {
#pragma GCC unroll 16
    for (int i = 0; i < SIZE; ++i) a.at[i] = a.at[i] - b.at[i];
    return a;
  }
  [[gnu::always_inline]] friend Several operator*(Several a, Several b) {
#pragma GCC unroll 16
    for (int i = 0; i < SIZE; ++i) a.at[i] = a.at[i] * b.at[i];
    return a;
  }
  [[gnu::always_inline]] friend Several fma(Several a, Several b, Several c) {
#pragma GCC unroll 16
    for (int i = 0; i < SIZE; ++i) c.at[i] = fused<WIDTH>(a.at[i], b.at[i], c.at[i]);
    return c;
  }
  [[gnu::always_inline]] friend Several power_of_low_bits(Several x) {
#pragma GCC unroll 16
    for (int i = 0; i < SIZE; ++i) x.at[i] = (Register)((Bits)x.at[i] << 23);
    return x;
  }
};

}  // namespace petroglyph
