// Several vector registers as one number: each operation of a formula is applied to all registers before the next
// operation.
//
// Why: 2^y is a chain of ten dependent instructions. Compilers emit the whole chain of one vector, then the chain of
// the next one. An out-of-order processor with a window of some 100 instructions then finds too few independent chains
// to keep its units busy; the pairwise relation lost a third of its time. With this type the chains of several vectors
// are interleaved. The formulas are the templates of math/, which accept any type of number. Gain: relation forward 18
// to 49 %, backward 3 to 10 % on Xeons.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cpu/simd.h"

namespace petroglyph {

// Without an fma instruction, fma rounds a double to float (numerics.h). g++ before version 14 wrongly removes that
// rounding from vectors of floats that are converted back to double. The empty asm hides the value from the compiler.
//
// With AVX-512 an empty asm keeps g++ from reordering interleaved chains one after the other, which took 8 % longer in
// the relation's backward pass on a Zen 4; on a Zen 5 it makes no difference. With AVX2, which has half as many
// registers, the compiler's order is faster.
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

// SIZE registers of WIDTH numbers each. WIDTH is a power of two, at most VECTOR_WIDTH.
template <int WIDTH, int SIZE>
struct Several {
  typedef real Register __attribute__((vector_size(WIDTH * sizeof(real)), aligned(sizeof(real)), may_alias));
  typedef std::conditional_t<sizeof(real) == 4, uint32_t, uint64_t> Bits
      __attribute__((vector_size(WIDTH * sizeof(real))));

  static constexpr int REGISTERS = SIZE;
  template <int N>
  using Of = Several<WIDTH, N>;

  // SIZE may be 0, but C++ has no arrays of 0 elements.
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
  // The registers of part(0), part(1), …, N registers each
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
