// Numbers of 16 bits, as files of others hold weights: F16 (IEEE binary16: 5 bits of exponent, 10 of fraction) and BF16
// (the upper half of a binary32). Every one of them is a float; a float is rounded to the nearest, ties to even.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace petroglyph {

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float float_of(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

inline float from_bf16(uint16_t half) { return float_of(static_cast<uint32_t>(half) << 16); }

inline float from_f16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, rest = half & 0x7FFF;
  if (rest >= 0x7C00) return float_of(sign | 0x7F800000 | (rest & 0x3FF) << 13);  // infinity, NaN
  if (rest >= 0x400) return float_of(sign | ((rest << 13) + ((127 - 15) << 23)));
  const float small = static_cast<float>(rest) * 0x1p-24f;  // subnormal: exact
  return sign ? -small : small;
}

inline uint16_t to_bf16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);  // NaN stays one
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

inline uint16_t to_f16(float value) {
  const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7FFFFFFF;
  if (rest > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
  if (rest >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // 65520 and more: infinity
  if (rest >= 0x38800000) {                                             // from 2⁻¹⁴, the least normal one
    const uint32_t moved = rest - ((127 - 15) << 23);
    return static_cast<uint16_t>(sign | (moved + 0xFFF + (moved >> 13 & 1)) >> 13);
  }
  // Added to 2⁻¹ its last bit is worth 2⁻²⁴, as a subnormal's is: the addition rounds.
  const uint32_t sum = bits_of(float_of(rest) + 0.5f);
  return static_cast<uint16_t>(sign | (sum - bits_of(0.5f)));
}

// Whether rounding made an infinity of a number.
inline bool overflowed(double value, float rounded) { return std::isinf(rounded) && std::isfinite(value); }

}  // namespace petroglyph
