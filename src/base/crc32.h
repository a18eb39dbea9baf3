// The checksum of PNG's chunks and zip's members: the remainder of the bits, the lowest first, by the polynomial 0xEDB88320.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace petroglyph {

inline uint32_t crc32(std::string_view bytes) {
  static const std::array<uint32_t, 256> of_byte = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
      table[byte] = crc;
    }
    return table;
  }();
  uint32_t crc = ~0u;
  for (const char byte : bytes) crc = crc >> 8 ^ of_byte[(crc ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~crc;
}

}  // namespace petroglyph
