// PTX arithmetic on numbers, as the PTX manual defines it. If a host instruction has the same result, it is used.
// Otherwise the definition is written out: shifts by 32 or more, division by zero, min and max of zeros and NaN.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

namespace ptx {

using u16 = uint16_t;
using s16 = int16_t;
using u32 = uint32_t;
using s32 = int32_t;
using u64 = uint64_t;
using s64 = int64_t;
using f32 = float;

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
constexpr int BITS = static_cast<int>(sizeof(T) * 8);

// GPU arithmetic returns one canonical NaN; host arithmetic returns an operand's NaN.
inline f32 canonical(f32 x) { return x == x ? x : bits_as<f32>(u32(0x7fffffff)); }

// ---- binary32: correctly rounded to nearest even, with subnormals; this file's own flags forbid the compiler the rest
// ----

inline f32 add_f32(f32 a, f32 b) { return canonical(a + b); }
inline f32 sub_f32(f32 a, f32 b) { return canonical(a - b); }
inline f32 mul_f32(f32 a, f32 b) { return canonical(a * b); }
inline f32 fma_f32(f32 a, f32 b, f32 c) { return canonical(__builtin_fmaf(a, b, c)); }
inline f32 div_f32(f32 a, f32 b) { return canonical(a / b); }
inline f32 rcp_f32(f32 a) { return canonical(1.0f / a); }
inline f32 sqrt_f32(f32 a) { return canonical(__builtin_sqrtf(a)); }
inline f32 neg_f32(f32 a) { return bits_as<f32>(bits_as<u32>(a) ^ 0x80000000u); }
// If one operand is NaN, the result is the other; −0 is less than +0.
inline f32 max_f32(f32 a, f32 b) {
  if (a != a) return canonical(b);
  if (b != b) return a;
  return a > b || (a == b && !std::signbit(a)) ? a : b;
}

// ---- Integers: modulo 2^BITS ----

// What a function object of the standard library computes: std::plus<>, std::bit_and<> …
template <class F, class T>
T of(T a, T b) {
  return static_cast<T>(F()(a, b));
}
template <class F, class T>
T of_one(T a) {
  return static_cast<T>(F()(a));
}
template <class T>
T mul_lo(T a, T b) {
  return static_cast<T>(a * (u32(1) * b));  // a u16 is promoted to int, in which the product may overflow
}
template <class T>
T mad_lo(T a, T b, T c) {
  return static_cast<T>(a * b + c);
}
template <class Wide, class T>
Wide mul_wide(T a, T b) {
  return static_cast<Wide>(a) * static_cast<Wide>(b);
}
inline u32 mul_hi_u32(u32 a, u32 b) { return static_cast<u32>(u64(a) * b >> 32); }
__extension__ typedef unsigned __int128 u128;  // not ISO C++: -pedantic would warn
__extension__ typedef __int128 s128;
inline u64 mul_hi_u64(u64 a, u64 b) { return static_cast<u64>(static_cast<u128>(a) * b >> 64); }
inline s64 mul_hi_s64(s64 a, s64 b) { return static_cast<s64>(static_cast<s128>(a) * b >> 64); }
// Division by zero is unspecified: the caller must check for it. The smallest number divided by −1 is itself.
template <class T>
T div(T a, T b) {
  if (std::is_signed_v<T> && b == static_cast<T>(-1))
    return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
  return static_cast<T>(a / b);
}
template <class T>
T rem(T a, T b) {
  if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
  return static_cast<T>(a % b);
}
template <class T>
T least(T a, T b) {
  return b < a ? b : a;
}
template <class T>
T greatest(T a, T b) {
  return a < b ? b : a;
}
// A shift by the width or more leaves zeros, or copies of the sign bit.
template <class T>
T shl(T a, u32 n) {
  return n >= u32(BITS<T>) ? T(0) : static_cast<T>(a << (n & (BITS<T> - 1)));
}
template <class T>
T shr(T a, u32 n) {
  const u32 steps = n >= u32(BITS<T>) ? u32(BITS<T> - 1) : n;
  const T shifted = static_cast<T>(a >> steps);
  return n >= u32(BITS<T>) && !std::is_signed_v<T> ? T(0) : shifted;
}
inline u32 popc(u32 a) { return static_cast<u32>(__builtin_popcount(a)); }
inline u32 brev(u32 a) {
  u32 reversed = 0;
  for (int k = 0; k < 32; ++k) reversed |= (a >> k & 1) << (31 - k);
  return reversed;
}
// The left shift that moves the highest set bit to the top; all ones if no bit is set.
inline u32 bfind_shift(u32 a) { return a == 0 ? ~u32(0) : static_cast<u32>(__builtin_clz(a)); }
// `length` bits from `position`; only the low bytes of both are used.
inline u32 bfe_u32(u32 a, u32 position, u32 length) {
  const u32 from = position & 255, n = length & 255;
  return from >= 32 ? 0 : (a >> from) & (n >= 32 ? ~u32(0) : (u32(1) << n) - 1);
}
// Selects four of the eight bytes in b:a, or their signs. Four bits of `choice` select each byte.
inline u32 prmt(u32 a, u32 b, u32 choice) {
  const u64 bytes = u64(b) << 32 | a;
  u32 result = 0;
  for (int k = 0; k < 4; ++k) {
    const u32 chosen = choice >> (4 * k) & 15;
    u32 byte = static_cast<u32>(bytes >> (8 * (chosen & 7))) & 255;
    if (chosen & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * k);
  }
  return result;
}
inline u64 pack(u32 low, u32 high) { return u64(high) << 32 | low; }

// ---- Moves and conversions ----

template <class T>
T same(T a) {
  return a;
}
template <class T>
T select(T a, T b, bool p) {
  return p ? a : b;
}
// Between integers: truncated or extended. Only the low bits of a wider register are used.
template <class To, class From, class Register = From>
To convert(Register a) {
  return static_cast<To>(static_cast<From>(a));
}

// ---- Comparisons: with a NaN only those of the second half are true, the unordered ----

template <class F, class T>
bool holds(T a, T b) {
  return F()(a, b);
}
template <class T>
bool ne(T a, T b) {  // false if an operand is NaN
  return a < b || a > b;
}
inline bool equ(f32 a, f32 b) { return !(a < b || a > b); }
inline bool neu(f32 a, f32 b) { return !(a == b); }
inline bool ltu(f32 a, f32 b) { return !(a >= b); }
inline bool leu(f32 a, f32 b) { return !(a > b); }
inline bool geu(f32 a, f32 b) { return !(a < b); }
inline bool unordered(f32 a, f32 b) { return a != a || b != b; }

}  // namespace ptx
