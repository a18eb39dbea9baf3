// How far the functions of numerics.h are from the truth: the error of a float in ulp, the table of functions with the
// bound that each must keep, and the loop that measures one over a set of arguments (test/numerics.cpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "math/numerics.h"
#include "math/random.h"

namespace petroglyph {

// The distance between a result and the exact value, which `reference` is to double precision, in units of the spacing
// of floats at the exact value; below 2^-126 that is 2^-149. Infinity counts as 2^128, the place of the float after the
// largest, and so does every reference beyond: an overflow is right from the midpoint between the two on. A reference
// that underflows in double is an exact 0 to a float. A NaN, or a sign, on one side only is infinitely wrong.
inline double ulp_error(float result, double reference) {
  constexpr double WRONG = std::numeric_limits<double>::infinity();
  if (std::isnan(reference) || std::isnan(result)) return std::isnan(reference) && std::isnan(result) ? 0 : WRONG;
  if (std::signbit(result) != std::signbit(reference)) return WRONG;
  const double exact = std::min(std::fabs(reference), 0x1p128);
  const double found = std::min(std::fabs(static_cast<double>(result)), 0x1p128);
  const uint64_t biased = numerics::to_bits(exact) >> 52;  // the exponent + 1023
  const uint64_t exponent = std::min<uint64_t>(std::max<uint64_t>(biased, 1023 - 126), 1023 + 127);
  const double per_ulp = numerics::from_bits((2046 + 23 - exponent) << 52);
  return std::fabs(found - exact) * per_ulp;
}

// 2πu is not exact, but u less its quarters is. A multiple of half a turn gives a zero of the sign that ours has.
inline double sin_of_quarters(double u, int64_t ahead) {
  const double quarters = std::nearbyint(4 * u);
  const double rest = (4 * u - quarters) * 1.57079632679489661923;
  const int64_t quadrant = static_cast<int64_t>(quarters) + ahead;
  const double value = quadrant & 1 ? std::cos(rest) : std::sin(rest);
  return quadrant & 2 ? -value : value;
}

struct MeasuredFunction {
  const char* name;
  void (*ours)(float* y, const float* x, int count);
  double (*reference)(double x);
  double bound;                      // the largest error over all arguments, rounded up; numerics.h states it too
  uint32_t worst;                    // the bits of the argument where it occurs
  float limit = numerics::INFINITE;  // the domain is |x| ≤ limit, and with it NaN where there is no limit
};

// A name, our function along an array (so that it is the vectorised code that is measured) and the double one.
#define OURS(function) \
#function, [](float* y, const float* x, int count) {                      \
    for (int i = 0; i < count; ++i) y[i] = numerics::function(x[i]);        \
  }
#define OURS_AND_REFERENCE(function) OURS(function), [](double x) { return numerics::function(x); }

inline std::vector<MeasuredFunction> measured_functions() {
  return {
      {OURS_AND_REFERENCE(sqrt), 0.50, 0x017fffff},
      {OURS_AND_REFERENCE(exp), 0.82, 0xc0bb3f49},
      {OURS_AND_REFERENCE(exp2), 1.75, 0xbe802747},
      {OURS_AND_REFERENCE(exp2_in_range), 1.75, 0xbe802747, 126.0f},
      {OURS_AND_REFERENCE(expm1), 1.53, 0x3ec8a0d0},
      {OURS_AND_REFERENCE(log), 0.88, 0x3fa31d39},
      {OURS_AND_REFERENCE(log1p), 0.97, 0x3ed43c37},
      {OURS_AND_REFERENCE(tanh), 1.35, 0x3f21eeee},
      {OURS_AND_REFERENCE(erf), 1.36, 0x3f842311},
      {OURS_AND_REFERENCE(sigmoid), 1.97, 0xc0c79b3b},
      {OURS_AND_REFERENCE(softplus), 1.58, 0xbfa2b217},
      {OURS_AND_REFERENCE(sin), 1.54, 0x6156518b},
      {OURS_AND_REFERENCE(cos), 1.54, 0x523dc8a3},
      {OURS(sin_turns), [](double u) { return sin_of_quarters(u, 0); }, 1.53, 0x3d242077, 0x1p20f},
      {OURS(cos_turns), [](double u) { return sin_of_quarters(u, 1); }, 1.52, 0x3e572c2f, 0x1p20f},
  };
}

// On −|x|, down to where it stays at 2^-126.
inline MeasuredFunction measured_exp_nonpositive() {
  return {"exp_nonpositive",
          [](float* y, const float* x, int count) {
            for (int i = 0; i < count; ++i) y[i] = numerics::exp_nonpositive(-numerics::abs(x[i]));
          },
          [](double x) { return std::exp(-std::fabs(x)); },
          63.75,
          0x42ad49bd,
          87.33f};
}
#undef OURS_AND_REFERENCE
#undef OURS

inline bool in_domain(const MeasuredFunction& function, float x) {
  return std::isinf(function.limit) || std::fabs(x) <= function.limit;
}

struct Worst {
  double error = 0;
  uint32_t input = 0;  // bits; the smallest of those that share the largest error

  void take(double other_error, uint32_t other_input) {
    if (other_error < error || (other_error == error && other_input >= input)) return;
    error = other_error;
    input = other_input;
  }
};

// The results at the arguments with these bits; y holds `count` floats.
inline void measure(Worst& worst, float* y, const MeasuredFunction& function, const uint32_t* inputs, int count) {
  std::vector<float> x(count);
  for (int i = 0; i < count; ++i) x[i] = numerics::from_bits(inputs[i]);
  function.ours(y, x.data(), count);
  for (int i = 0; i < count; ++i) {
    if (in_domain(function, x[i])) worst.take(ulp_error(y[i], function.reference(x[i])), inputs[i]);
  }
}

// Three floats for a test of fma. With any bits at all one side of the sum mostly vanishes beside the other, so that is
// one kind of eight. The others: exponents that meet; a sum that cancels (c near -ab); subnormal results; and sums that
// miss the middle between two floats by less than a double can show, where rounding twice goes wrong, either because c
// is tiny beside an ab in the middle or because ab is not quite half the spacing at c. Sometimes one of the three
// is a special value.
struct FmaArguments {
  float a, b, c;
};

inline float with_exponent(uint32_t bits, uint32_t biased) {
  return numerics::from_bits((bits & 0x807fffffu) | biased << 23);
}

inline FmaArguments fma_arguments(uint64_t index) {
  constexpr uint32_t SPECIAL[8] = {0, 1, 0x007fffff, 0x00800000, 0x3f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000};
  const Random4 random = philox(1, stream_of("fma"), 0, index);
  const uint32_t *word = random.word, kind = word[3] & 7, choice = word[3] >> 3;
  FmaArguments x = {numerics::from_bits(word[0]), numerics::from_bits(word[1]), numerics::from_bits(word[2])};
  if (kind >= 1 && kind <= 4) {
    x.a = with_exponent(word[0], 96 + choice % 64);
    x.b = with_exponent(word[1], 96 + (choice >> 6) % 64);
    x.c = with_exponent(word[2], 100 + (choice >> 12) % 56);
  }
  if (kind == 2) x.c = numerics::from_bits(numerics::to_bits(-x.a * x.b) + (choice >> 18) % 64 - 32);
  if (kind == 3) x.a = with_exponent(word[0], choice % 64);
  if (kind == 3) x.c = with_exponent(word[2], (choice >> 12) % 8);
  if (kind == 5) {  // 3a of 25 bits, the last one set, lies in the middle
    x.a = with_exponent(word[0] | 1, 96 + choice % 64);
    x.b = with_exponent(0x00400000u, 127);
    x.c = with_exponent(word[2], choice % 64 + 1);
  }
  if (kind >= 6) {  // (1 + t) (1 - t) = 1 - t² times half the spacing at c, t² about as small as doubles are fine
    const float t = std::ldexp(64.0f + word[1] % 64, -19 - static_cast<int>(choice % 4));
    const uint32_t exponent = (choice >> 2) % 128;
    x.a = with_exponent(word[0] & numerics::SIGN_BIT, 127 - 62) * (1.0f + t);
    x.b = (1.0f - t) * std::ldexp(1.0f, std::max<int>(exponent, 1) - 127 - 24 + 62);
    x.c = with_exponent(word[2], exponent);
  }
  float* const members[3] = {&x.a, &x.b, &x.c};
  const uint32_t special = SPECIAL[word[1] % 8] | (word[2] & numerics::SIGN_BIT);
  if (choice >> 25 == 0) *members[word[0] % 3] = numerics::from_bits(special);
  return x;
}

// Both NaN or the same bits.
inline bool same_float(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || numerics::to_bits(a) == numerics::to_bits(b);
}

// The first index in [begin, end) where the fma by double, or ours, differs from the exact one; `end` where none does.
inline uint64_t first_wrong_fma(uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; ++i) {
    const FmaArguments x = fma_arguments(i);
    const float expected = __builtin_fmaf(x.a, x.b, x.c);
    if (!same_float(numerics::fma_by_double(x.a, x.b, x.c), expected)) return i;
    if (!same_float(numerics::fma(x.a, x.b, x.c), expected)) return i;
  }
  return end;
}

}  // namespace petroglyph
