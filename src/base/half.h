// Numbers of 16 bits, as files of others hold weights: F16 (IEEE binary16: 5 bits of exponent, 10 of fraction) and BF16
// (the upper half of a binary32). Every one of them is a float.
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

// Whether rounding made an infinity of a number.
inline bool overflowed(double value, float rounded) { return std::isinf(rounded) && std::isfinite(value); }

}  // namespace petroglyph
