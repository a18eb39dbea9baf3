// The arithmetic contract: the only exp, log, tanh, erf, sin and cos of this project, for the CPU and for the GPU.
//
// One seed gives one sequence of losses and one set of weights, bit for bit, on every machine. IEEE 754 makes that
// possible, because it defines +, -, ×, ÷, √ and the fused multiply-add down to the last bit. Everything else follows
// from these rules.
//
// 1. Arithmetic is +, -, ×, ÷, √ and an explicit `fma`, each rounded once to binary32; subnormals are not flushed. By
//    default compilers fuse a·b + c if the machine can, so results depend on the machine. Therefore g++ and clang++
//    get -ffp-contract=off, and nvcc -fmad=false -ftz=false -prec-div=true -prec-sqrt=true. -Ofast, -ffast-math and
//    --use_fast_math are forbidden: they treat floats as real numbers. An inverse root is 1 / sqrt(x), because rsqrt
//    instructions are approximations that differ between vendors.
// 2. No function of libm or of CUDA in anything that reaches a weight: their last bits differ between libraries and
//    versions. The functions below use only rule 1 and integer operations on bits. They select instead of branching,
//    so that compilers vectorise them. The same holds for schedules, initial values and tables. The distributions of
//    <random> and std::shuffle are not used: no standard defines their results.
// 3. Every sum has one written order, which no number of threads, blocks or vector lanes changes:
//    - along a row (layer norm, softmax, loss): 32 lanes, lane l adding elements l, l+32, … in order, then folds of 16,
//      8, 4, 2 and 1: on a GPU the shuffles of a warp, on a CPU a few vector registers. A long sum is cut into
//      chunks of 1024 summed by this rule, and the chunk sums are summed by this rule again;
//    - in a matrix product: one chain of fma over ascending k for each output, from zero, cut every CHUNK (1024) terms,
//      the chunk sums added in ascending order, so that a GPU can compute each chunk in another thread block. The
//      gradient of a weight sums over rows in the same way;
//    - over the batch: ascending, long sums cut every CHUNK. Along time: in the direction of the recurrence, in chunks
//      if ops/catalogue.h declares them.
// 4. No float atomics, no OpenMP reduction: no result depends on the order in which threads finish.
// 5. max(a, b) is a > b ? a : b, and min likewise: this defines the result for NaN and for zeros of either sign, which
//    fmax does not. Ties go to the lowest index. A NaN is never compared as bits: its payload differs between machines.
// 6. Randomness is a function of (seed, stream, step, index); see random.h.
//
// "At most 0.82 ulp, at x" is the largest error over all 2³² arguments and the argument where it occurs, as measured by
// `NUMERICS=all build/test/numerics accuracy` against libm's double function. The bounds are rounded up; tests check
// them with the table in test/ulp.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__ __forceinline__
#else
#define HOST_DEVICE inline __attribute__((always_inline))
#endif

// Compilers define these macros for flags that change results. The Makefile refuses the flags that define none.
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    defined(__NO_SIGNED_ZEROS__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error \
    "petroglyph: these compiler flags change results: remove -Ofast, -ffast-math, -funsafe-math-optimizations and the like"
#endif
#if defined(__FLT_EVAL_METHOD__) && (__FLT_EVAL_METHOD__ == 1 || __FLT_EVAL_METHOD__ == 2)
#error "petroglyph: floats must be computed as floats (on 32-bit x86: -msse2 -mfpmath=sse)"
#endif

namespace petroglyph {

static_assert(sizeof(float) == 4 && std::numeric_limits<float>::is_iec559, "float must be IEEE 754 binary32");

// The type of all numbers of the models. The double build tests formulas and gradients, not bits.
#ifdef PETROGLYPH_DOUBLE
using real = double;
#else
using real = float;
#endif

constexpr real LOG2_E = real(1.4426950408889634);

namespace numerics {

// ---- Bits ----

HOST_DEVICE uint32_t to_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
#ifdef CUDA_ON_HOST
  if (x != x) return 0x7fffffffu;  // the NaN of a GPU's arithmetic
#endif
  return bits;
}

HOST_DEVICE float from_bits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

HOST_DEVICE uint64_t to_bits(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}

HOST_DEVICE double from_bits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

constexpr uint32_t SIGN_BIT = 0x80000000u;
constexpr uint32_t NAN_BITS = 0x7fc00000u;
constexpr float INFINITE = std::numeric_limits<float>::infinity();

HOST_DEVICE float abs(float x) { return from_bits(to_bits(x) & ~SIGN_BIT); }

// condition ? yes : no on the bits. If ?: skips arithmetic that could raise a floating-point exception, g++ keeps a
// branch and does not vectorise the loop, unless -fno-trapping-math is given. With a mask there is no branch.
HOST_DEVICE float select(bool condition, float yes, float no) {
  const uint32_t mask = 0u - static_cast<uint32_t>(condition);
  return from_bits((to_bits(yes) & mask) | (to_bits(no) & ~mask));
}

// y with the sign of x, for y ≥ 0 or y that has the sign of x. Odd functions are computed on |x| and end with this.
HOST_DEVICE float with_sign_of(float x, float y) { return from_bits(to_bits(y) | (to_bits(x) & SIGN_BIT)); }

// The float whose exponent is the lowest bits of x.
HOST_DEVICE float power_of_low_bits(float x) { return from_bits(to_bits(x) << 23); }

// 2^n for -126 ≤ n ≤ 127.
HOST_DEVICE float power_of_two(int32_t n) { return from_bits(static_cast<uint32_t>(n + 127) << 23); }

// ---- The basic operations ----

HOST_DEVICE float max(float a, float b) { return a > b ? a : b; }
HOST_DEVICE float min(float a, float b) { return a < b ? a : b; }

// The number in [lo, hi] that is nearest to x. If x is a NaN, so is the result, which max and min do not guarantee.
HOST_DEVICE float clamp(float x, float lo, float hi) {
  const float y = select(x > hi, hi, x);
  return select(y < lo, lo, y);
}

// a·b + c rounded once, for machines without the instruction. The product of two floats is exact in double. The sum is
// not exact, so its error is computed (Knuth's TwoSum) and the sum is rounded to odd: if it is inexact, the result is
// that of the two neighbouring doubles whose last bit is odd. An odd double is neither a float nor halfway between two
// floats, so the second rounding, to float, gives the same result as a single rounding.
inline __attribute__((always_inline)) float fma_by_double(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = static_cast<double>(c);
  const double sum = product + addend;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (addend - back);
  const uint64_t bits = to_bits(sum);
  const uint64_t inexact = (0 - (to_bits(error) << 1 >> 1)) >> 63;
  const uint64_t move = inexact & ~bits;
  const uint64_t toward_zero = (bits ^ to_bits(error)) >> 63;
  const double odd = from_bits(bits + move - ((move & toward_zero) << 1));
  return static_cast<float>(error == error ? odd : sum);  // if the sum is infinite, its error is a NaN
}

HOST_DEVICE float fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(a, b, c);
#elif defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return fma_by_double(a, b, c);
#endif
}

HOST_DEVICE float sqrt(float x) {
#ifdef __CUDA_ARCH__
  return __fsqrt_rn(x);
#else
  return __builtin_sqrtf(x);
#endif
}

// ---- Exponentials ----

// Adding 1.5·2²³ to a number below 2²² rounds it to an integer, ties to even, because the sum has no bits for a
// fraction. The integer is then in the low bits of the sum.
constexpr float ROUND_TO_INTEGER = 0x1.8p23f;

// The functions that compute 2^y for the pairwise relation are templates: T may be several registers (cpu/several.h).

// unit · 2^f for |f| ≤ 1/2; unit is a power of two, so it scales without rounding. Degree 5 with constant term 1, so
// that 2^0 = 1. Minimax in ulp of the result, whose spacing halves below f = 0: fitted by the Remez exchange, then the
// last bits of the coefficients were searched for the smallest error of the whole evaluation.
template <class T>
HOST_DEVICE T exp2_of_fraction(T f, float unit) {
  T p = fma(unit * 0x1.5aaa0ap-10f, f, unit * 0x1.3cf080p-7f);
  p = fma(p, f, unit * 0x1.c6bac4p-5f);
  p = fma(p, f, unit * 0x1.ebf9a8p-3f);
  p = fma(p, f, unit * 0x1.62e424p-1f);
  return fma(p, f, unit);
}

// p · 2^n for p in (1/4, 4) and |n| ≤ 252, rounded once even if the result is subnormal. It multiplies by two powers of
// two, each with about half of n, so that neither is out of range and the first product is exact.
HOST_DEVICE float scale(float p, int32_t n) {
  const int32_t half = n >> 1;
  return p * power_of_two(half) * power_of_two(n - half);
}

// 2^y for |y| ≤ 126 as the factors of an exact product; NaN if y is a NaN, undefined for other y. Nine instructions:
// three additions, five fma, a shift. The low bits of `shifted` are n + 128; the shift makes 2^(n+1) of them, so the
// other factor is p/2. (n + 127 would give 2^n, but because 127 is odd, ties would be rounded to odd.)
//
// Adding n to the exponent of p instead would not be faster on a CPU, and on a GPU it would lose NaN: the NaN that a
// GPU computes has the bits 0x7fffffff, and adding 0x7fffffff << 23 to these gives the bits of the largest float.
template <class T>
struct Exp2Product {
  T half_p, power;
};

template <class T>
HOST_DEVICE Exp2Product<T> exp2_product(T y) {
  constexpr float SHIFT = ROUND_TO_INTEGER + 128;
  const T shifted = y + SHIFT;
  const T n = shifted - SHIFT;
  return {exp2_of_fraction(y - n, 0.5f), power_of_low_bits(shifted)};
}

// 2^y for |y| ≤ 126, bit-identical to exp2(). For the innermost loops: ten instructions.
template <class T>
HOST_DEVICE T exp2_in_range(T y) {
  const Exp2Product<T> exp2 = exp2_product(y);
  return exp2.half_p * exp2.power;
}

// sum + 2^y for |y| ≤ 126, rounded once, because the product in the fma is exact. Ten instructions as well.
template <class T>
HOST_DEVICE T add_exp2_in_range(T sum, T y) {
  const Exp2Product<T> exp2 = exp2_product(y);
  return fma(exp2.half_p, exp2.power, sum);
}

// At most 1.75 ulp, at -0x1.004e8ep-2.
HOST_DEVICE float exp2(float y) {
  const float clamped = clamp(y, -151.0f, 129.0f);  // the result is 0 below 2^-150 and infinite from 2^128 on
  const float shifted = clamped + ROUND_TO_INTEGER;
  const float n = shifted - ROUND_TO_INTEGER;
  return scale(exp2_of_fraction(clamped - n, 1.0f), static_cast<int32_t>(to_bits(shifted) - to_bits(ROUND_TO_INTEGER)));
}

constexpr float LOG2_E_FLOAT = 0x1.715476p+0f;
// ln 2 = LN2_HIGH + LN2_LOW + 5.5e-14. LN2_HIGH has 15 significant bits, so that its product with an exponent is exact.
constexpr float LN2_HIGH = 0x1.62e4p-1f;
constexpr float LN2_LOW = 0x1.7f7d1cp-20f;

// x = n ln 2 + r with |r| ≤ ln 2 / 2.
struct ExpArgument {
  float r;
  int32_t n;
};

HOST_DEVICE ExpArgument reduce_exp(float x) {
  const float shifted = fma(x, LOG2_E_FLOAT, ROUND_TO_INTEGER);
  const float n = shifted - ROUND_TO_INTEGER;
  const float r = fma(n, -LN2_LOW, fma(n, -LN2_HIGH, x));
  return {r, static_cast<int32_t>(to_bits(shifted) - to_bits(ROUND_TO_INTEGER))};
}

// addend + (e^r - 1 - r) for |r| ≤ ln 2 / 2. The bracket is r²·q(r) with q of degree 4, minimax in the error relative
// to e^r - 1 (1.4e-8).
HOST_DEVICE float add_exp_tail(float addend, float r) {
  float q = fma(0x1.6b97a6p-10f, r, 0x1.122538p-7f);
  q = fma(q, r, 0x1.5556f6p-5f);
  q = fma(q, r, 0x1.5554b4p-3f);
  q = fma(q, r, 0x1.fffffep-2f);
  return fma(r * r, q, addend);
}

// The rounding error of 1 + r is computed (Dekker) and added to the tail: three operations reduce the error by a fifth
// of an ulp. At most 0.82 ulp, at -0x1.767e92p+2.
HOST_DEVICE float exp(float x) {
  const ExpArgument argument = reduce_exp(clamp(x, -104.0f, 89.0f));  // e^-104 < 2^-150, e^89 > 2^128
  const float sum = 1.0f + argument.r;
  const float error = (1.0f - sum) + argument.r;
  return scale(sum + add_exp_tail(error, argument.r), argument.n);
}

// e^x for x ≤ 0 with half the instructions of exp, for terms of sums whose largest term is near 1. The rounding of
// x·log2(e) makes the error up to 63.75 ulp, at -0x1.5a937ap+6, but never more than 1.2e-7 absolute. Below -87.4 the
// result is 2^-126. With this order of max's arguments a NaN remains a NaN.
HOST_DEVICE float exp_nonpositive(float x) { return exp2_in_range(max(-126.0f, x * LOG2_E_FLOAT)); }

// e^x - 1 without cancellation near zero. 2^n (p + 1) - 1 is formed as 2 (2^(n-1) p + 2^(n-1) - 1/2), because 2^n is
// infinite at the upper end; for n = 0 it is p, which keeps subnormals whole.
// At most 1.53 ulp, at 0x1.9141ap-2.
HOST_DEVICE float expm1(float x) {
  const ExpArgument argument = reduce_exp(clamp(x, -20.0f, 89.0f));  // e^-20 is negligible beside 1
  const float p = add_exp_tail(argument.r, argument.r);
  const float half_power = power_of_two(argument.n - 1);
  const float scaled = 2.0f * fma(half_power, p, half_power - 0.5f);
  return with_sign_of(x, select(argument.n == 0, p, scaled));
}

// ---- Logarithms ----

constexpr uint32_t SQRT_HALF_BITS = 0x3f3504f3u;  // √½ rounded to float

// k ln 2 + log(1 + f) + low for √½ ≤ 1 + f < √2, an integer k and low below one ulp of f.
// log(1 + f) is f + f²·q(f), q of degree 8, minimax in relative error (4.2e-9). The rounding error of adding the two
// large terms is computed (Dekker); the small terms are added to it first.
HOST_DEVICE float log_from_parts(float k, float f, float low) {
  float q = fma(-0x1.39c1f4p-4f, f, 0x1.08ceeep-3f);
  q = fma(q, f, -0x1.0f277cp-3f);
  q = fma(q, f, 0x1.225a62p-3f);
  q = fma(q, f, -0x1.542652p-3f);
  q = fma(q, f, 0x1.99a52cp-3f);
  q = fma(q, f, -0x1.000434p-2f);
  q = fma(q, f, 0x1.55554ep-2f);
  q = fma(q, f, -0x1.fffff8p-2f);
  const float small = fma(f * f, q, fma(k, LN2_LOW, low));
  const float large = k * LN2_HIGH;
  const float sum = large + f;
  const float error = (large - sum) + f;
  return sum + (error + small);
}

// At most 0.88 ulp, at 0x1.463a72p+0. -∞ at ±0, NaN below.
HOST_DEVICE float log(float x) {
  const float enlarged = x * 0x1p23f;
  const bool subnormal = x < 0x1p-126f;
  const uint32_t bits = to_bits(select(subnormal, enlarged, x));
  const int32_t k = static_cast<int32_t>(bits - SQRT_HALF_BITS) >> 23;
  const float f = from_bits(bits - (static_cast<uint32_t>(k) << 23)) - 1.0f;
  const float finite = log_from_parts(static_cast<float>(k) - select(subnormal, 23.0f, 0.0f), f, 0.0f);
  const float positive = select(x < INFINITE, finite, x);  // infinity and NaN are their own logarithms
  const float nonnegative = select(x == 0.0f, -INFINITE, positive);
  return select(x < 0.0f, from_bits(NAN_BITS), nonnegative);
}

// log(1 + x) without loss near zero: the rounding error of 1 + x is computed (Knuth's TwoSum) and taken into account.
// At most 0.97 ulp, at 0x1.a8786ep-2. -∞ at -1, NaN below.
HOST_DEVICE float log1p(float x) {
  const float u = 1.0f + x;
  const float back = u - 1.0f;
  const float lost = (1.0f - (u - back)) + (x - back);
  const uint32_t bits = to_bits(u);
  const int32_t k = static_cast<int32_t>(bits - SQRT_HALF_BITS) >> 23;
  const float m = from_bits(bits - (static_cast<uint32_t>(k) << 23)) - 1.0f;
  const float rest = lost * power_of_two(k < 127 ? -k : -127);  // power_of_two(-127) is 0; the term is negligible there
  const float f = m + rest;
  const float low = (m - f) + rest;
  const float finite = with_sign_of(x, log_from_parts(static_cast<float>(k), f, low));
  const float inside = select(x < INFINITE, finite, x);
  const float above = select(x == -1.0f, -INFINITE, inside);
  return select(x < -1.0f, from_bits(NAN_BITS), above);
}

// ---- Activations ----

// For |x| < 0.625: x + x³·p(x²), p of degree 4, minimax in relative error (4.5e-9). Otherwise: 1 - 2/(e^2x + 1), which
// does not cancel there. From 9.02 on tanh rounds to 1.
// At most 1.35 ulp, at 0x1.43dddcp-1.
HOST_DEVICE float tanh(float x) {
  const float a = abs(x);
  const float square = a * a;
  float p = fma(-0x1.750ce4p-8f, square, 0x1.51f8cep-6f);
  p = fma(p, square, -0x1.b835a4p-5f);
  p = fma(p, square, 0x1.1106f6p-3f);
  p = fma(p, square, -0x1.555532p-2f);
  const float near = fma(a * square, p, a);
  const float far = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  return with_sign_of(x, select(a >= 0.625f, far, near));
}

// For |x| < 1: x + x·p(x²), p of degree 6, minimax in relative error (1.4e-9). Otherwise: 1 - 2^q(x), where q of degree
// 6 is the minimax approximation of log2(erfc) on [1, 4] in the error relative to erf (1.1e-9). From 3.92 on erf rounds
// to 1. At most 1.36 ulp, at 0x1.084622p+0.
HOST_DEVICE float erf(float x) {
  const float a = clamp(abs(x), 0.0f, 4.0f);
  const float square = a * a;
  float p = fma(0x1.4771fcp-14f, square, -0x1.a3515ep-11f);
  p = fma(p, square, 0x1.53f224p-8f);
  p = fma(p, square, -0x1.b7f71ap-6f);
  p = fma(p, square, 0x1.ce2ce6p-4f);
  p = fma(p, square, -0x1.81273ep-2f);
  p = fma(p, square, 0x1.06eba8p-3f);
  const float near = fma(a, p, a);
  float q = fma(0x1.19f280p-12f, a, -0x1.16b1c2p-8f);
  q = fma(q, a, 0x1.0217dap-5f);
  q = fma(q, a, -0x1.30a480p-3f);
  q = fma(q, a, -0x1.d75f48p-1f);
  q = fma(q, a, -0x1.a04488p+0f);
  q = fma(q, a, -0x1.025d32p-11f);
  const float far = 1.0f - exp2_in_range(q);
  return with_sign_of(x, select(a >= 1.0f, far, near));
}

// 1 / (1 + e^-x), computed with e^-|x| for both signs, so that nothing overflows and small results keep their digits.
// The rounding error of 1 + e^-|x| is corrected in the quotient, whose error would be up to 2.3 ulp otherwise. At most
// 1.97 ulp, at -0x1.8f3676p+2.
HOST_DEVICE float sigmoid(float x) {
  const float e = exp(-abs(x));
  const float denominator = 1.0f + e;
  const float lost = (1.0f - denominator) + e;
  const float quotient = select(x < 0.0f, e, 1.0f) / denominator;
  return fma(-lost, quotient, quotient);
}

// log(1 + e^x) = max(x, 0) + log(1 + e), where e = e^-|x|.
HOST_DEVICE float softplus_of_exp(float x, float e) { return max(x, 0.0f) + log1p(e); }

// At most 1.58 ulp, at -0x1.45642ep+0.
HOST_DEVICE float softplus(float x) { return softplus_of_exp(x, exp(-abs(x))); }

// ---- Circular functions ----

// An angle of quadrant·π/2 + r, |r| ≤ π/4.
struct Angle {
  float r;
  uint32_t quadrant;
};

// r + r³·s(r²) and 1 - r²/2 + r⁴·c(r²), s and c of degree 2, minimax in relative error (4.0e-9 and 1.2e-10).
HOST_DEVICE float sin_of_angle(Angle angle) {
  const float square = angle.r * angle.r;
  float s = fma(-0x1.9954p-13f, square, 0x1.110778p-7f);
  s = fma(s, square, -0x1.555546p-3f);
  const float sine = fma(angle.r * square, s, angle.r);
  float c = fma(0x1.99e80cp-16f, square, -0x1.6c0c28p-10f);
  c = fma(c, square, 0x1.55554ap-5f);
  c = fma(c, square, -0.5f);
  const float cosine = fma(c, square, 1.0f);
  const float chosen = select(angle.quadrant & 1, cosine, sine);
  return from_bits(to_bits(chosen) ^ ((angle.quadrant & 2) << 30));
}

HOST_DEVICE float cos_of_angle(Angle angle) { return sin_of_angle({angle.r, angle.quadrant + 1}); }

// π/2 = HALF_PI_HIGH + HALF_PI_MIDDLE + HALF_PI_LOW to 75 bits.
constexpr float HALF_PI_HIGH = 0x1.921fb6p+0f;
constexpr float HALF_PI_MIDDLE = -0x1.777a5cp-25f;
constexpr float HALF_PI_LOW = -0x1.ee59dap-50f;
constexpr float TWO_OVER_PI = 0x1.45f306p-1f;

// Payne and Hanek: a = m·2^e with 2^23 ≤ m < 2^24. Only 96 bits of 2/π are needed, from a place that depends on e: the
// product of m with higher bits is a multiple of four quadrants, and with lower bits it is below the precision of the
// result. The product is computed modulo 2^64, as a fixed-point number with two bits of quadrant and 62 of fraction.
HOST_DEVICE Angle reduce_large_angle(float a) {
  const uint32_t two_over_pi[8] = {0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u,
                                   0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu};
  const uint32_t bits = to_bits(a);
  const uint64_t m = (bits & 0x007fffffu) | 0x00800000u;
  const uint32_t place = (bits >> 23) - 120;  // the number of bits of 2/π to skip, plus 32
  const uint32_t first = place / 32, shift = place % 32;
  uint32_t window[3];
  for (uint32_t i = 0; i < 3; ++i) {
    const uint64_t pair = (static_cast<uint64_t>(two_over_pi[first + i]) << 32) | two_over_pi[first + i + 1];
    window[i] = static_cast<uint32_t>((pair << shift) >> 32);
  }
  const uint64_t product = ((m * window[0]) << 32) + m * window[1] + ((m * window[2]) >> 32);
  const uint64_t quadrant = (product + (uint64_t{1} << 61)) >> 62;
  const int64_t fraction = static_cast<int64_t>(product - (quadrant << 62));
  const float high = static_cast<float>(fraction);
  const float low = static_cast<float>(fraction - static_cast<int64_t>(high));
  const float r = fma(high, HALF_PI_HIGH, fma(high, HALF_PI_MIDDLE, low * HALF_PI_HIGH));
  return {r * 0x1p-62f, static_cast<uint32_t>(quadrant)};
}

// For a ≥ 0. Up to 2^15 the quadrants are subtracted (Cody and Waite): with a fused multiply-add the first difference
// is exact, and the second and third are precise enough even for the float nearest to a multiple of π/2.
HOST_DEVICE Angle reduce_angle(float a) {
  if (a > 0x1p15f && a < INFINITE) return reduce_large_angle(a);
  const float shifted = fma(a, TWO_OVER_PI, ROUND_TO_INTEGER);
  const float n = shifted - ROUND_TO_INTEGER;
  float r = fma(n, -HALF_PI_HIGH, a);
  r = fma(n, -HALF_PI_MIDDLE, r);
  r = fma(n, -HALF_PI_LOW, r);
  return {r, to_bits(shifted)};  // its last two bits are those of n
}

// At most 1.54 ulp, at 0x1.aca316p+67.
HOST_DEVICE float sin(float x) {
  const float of_magnitude = sin_of_angle(reduce_angle(abs(x)));
  return from_bits(to_bits(of_magnitude) ^ (to_bits(x) & SIGN_BIT));
}

// At most 1.54 ulp, at 0x1.7b9146p+37.
HOST_DEVICE float cos(float x) { return cos_of_angle(reduce_angle(abs(x))); }

// u turns are 4u quadrants; 4u and its distance to the nearest integer are exact.
HOST_DEVICE Angle angle_of_turns(float u) {
  const float quadrants = 4.0f * u;
  const float shifted = quadrants + ROUND_TO_INTEGER;
  const float f = quadrants - (shifted - ROUND_TO_INTEGER);
  return {fma(f, HALF_PI_HIGH, f * HALF_PI_MIDDLE), to_bits(shifted)};
}

// sin(2πu) and cos(2πu) for |u| ≤ 2^20.
// At most 1.53 ulp, at 0x1.4840eep-5, and 1.52 ulp, at 0x1.ae585ep-3.
HOST_DEVICE float sin_turns(float u) { return sin_of_angle(angle_of_turns(u)); }
HOST_DEVICE float cos_turns(float u) { return cos_of_angle(angle_of_turns(u)); }

// ---- Double: the standard library, for the double build, which tests formulas and gradients on the CPU ----

inline double abs(double x) { return std::fabs(x); }
inline double max(double a, double b) { return a > b ? a : b; }
inline double min(double a, double b) { return a < b ? a : b; }
inline double fma(double a, double b, double c) { return std::fma(a, b, c); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double exp(double x) { return std::exp(x); }
inline double exp2(double x) { return std::exp2(x); }
inline double exp2_in_range(double x) { return std::exp2(x); }
inline double add_exp2_in_range(double sum, double x) { return sum + std::exp2(x); }
inline double exp_nonpositive(double x) { return std::exp(x); }
inline double expm1(double x) { return std::expm1(x); }
inline double log(double x) { return std::log(x); }
inline double log1p(double x) { return std::log1p(x); }
inline double tanh(double x) { return std::tanh(x); }
inline double erf(double x) { return std::erf(x); }
inline double sin(double x) { return std::sin(x); }
inline double cos(double x) { return std::cos(x); }
inline double sin_turns(double u) { return std::sin(6.283185307179586477 * u); }
inline double cos_turns(double u) { return std::cos(6.283185307179586477 * u); }

inline double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

inline double softplus_of_exp(double x, double e) { return max(x, 0.0) + std::log1p(e); }
inline double softplus(double x) { return softplus_of_exp(x, std::exp(-std::fabs(x))); }

}  // namespace numerics
}  // namespace petroglyph
