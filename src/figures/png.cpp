#include "figures/png.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// A four-byte number, big-endian.
std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFF);
  return bytes;
}

// CRC-32: the remainder of the bits, lowest bit first, by the polynomial 0xEDB88320.
uint32_t crc32(std::string_view bytes) {
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

uint32_t adler32(const std::string& bytes) {
  uint32_t a = 1, b = 0;
  for (const char byte : bytes) {
    a = (a + static_cast<unsigned char>(byte)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

std::string chunk(const std::string& type, const std::string& data) {
  return big_endian(static_cast<uint32_t>(data.size())) + type + data + big_endian(crc32(type + data));
}

// ---- Deflate (RFC 1951) -------------------------------------------------------------------------------------------

class BitWriter {
 public:
  // Writes the lowest bit first, as deflate packs numbers.
  void number(uint32_t value, int bits) {
    for (int i = 0; i < bits; ++i) bit(value >> i & 1);
  }
  // Writes the highest bit first, as deflate packs codes.
  void code(uint32_t value, int bits) {
    for (int i = bits - 1; i >= 0; --i) bit(value >> i & 1);
  }
  std::string finish() {
    while (filled_ != 0) bit(0);
    return std::move(bytes_);
  }

 private:
  void bit(uint32_t value) {
    byte_ |= value << filled_;
    if (++filled_ < 8) return;
    bytes_ += static_cast<char>(byte_);
    byte_ = 0;
    filled_ = 0;
  }
  std::string bytes_;
  uint32_t byte_ = 0;
  int filled_ = 0;
};

// A symbol in the fixed codes: 0 to 255 are bytes, 256 is the end of the block, and symbols from 257 on are lengths.
void write_symbol(BitWriter& out, uint32_t symbol) {
  if (symbol < 144) return out.code(0x30 + symbol, 8);
  if (symbol < 256) return out.code(0x190 + symbol - 144, 9);
  if (symbol < 280) return out.code(symbol - 256, 7);
  out.code(0xC0 + symbol - 280, 8);
}

// "Repeat the last byte `length` times", 3 to 258: a code for a range of lengths, then extra bits for the position in
// this range.
void write_repeat(BitWriter& out, uint32_t length) {
  if (length == 258) {
    write_symbol(out, 285);
  } else {
    const uint32_t above = length - 3;
    int extra = 0;
    while (above >> extra >= 8) ++extra;
    // Eight codes have no extra bits; after them, there are four codes for each number of extra bits.
    const uint32_t symbol = extra == 0 ? 257 + above : 261 + 4 * static_cast<uint32_t>(extra) + ((above >> extra) - 4);
    write_symbol(out, symbol);
    out.number(above & ((1u << extra) - 1), extra);
  }
  out.code(0, 5);  // distance 1
}

std::string zlib(const std::string& bytes) {
  BitWriter out;
  out.number(1, 1);  // the only block
  out.number(1, 2);  // fixed codes
  for (size_t i = 0; i < bytes.size();) {
    uint32_t run = 0;  // bytes equal to the one before them
    while (i > 0 && run < 258 && i + run < bytes.size() && bytes[i + run] == bytes[i - 1]) ++run;
    if (run >= 3)
      write_repeat(out, run);
    else
      write_symbol(out, static_cast<unsigned char>(bytes[i]));
    i += run >= 3 ? run : 1;
  }
  write_symbol(out, 256);
  return "\x78\x01" + out.finish() + big_endian(adler32(bytes));
}

// ---- Rows ---------------------------------------------------------------------------------------------------------

// A row as differences from the pixel to the left (filter 1) or above (2); the filter that gives more zeros is chosen.
std::string filtered(const uint8_t* row, const uint8_t* above, size_t size) {
  std::string left(1, '\1'), up(1, '\2');
  for (size_t i = 0; i < size; ++i) {
    left += static_cast<char>(row[i] - (i < 3 ? 0 : row[i - 3]));
    up += static_cast<char>(row[i] - (above ? above[i] : 0));
  }
  return std::count(left.begin(), left.end(), '\0') > std::count(up.begin(), up.end(), '\0') ? left : up;
}

}  // namespace

std::string png(int width, int height, const std::vector<uint8_t>& rgb) {
  const size_t row = static_cast<size_t>(width) * 3;
  if (width < 1 || height < 1 || rgb.size() != row * static_cast<size_t>(height))
    throw Error(text("a picture of %d×%d pixels with %zu numbers", width, height, rgb.size()));
  std::string rows;
  for (size_t y = 0; y < static_cast<size_t>(height); ++y)
    rows += filtered(&rgb[y * row], y == 0 ? nullptr : &rgb[(y - 1) * row], row);
  const std::string header = big_endian(static_cast<uint32_t>(width)) + big_endian(static_cast<uint32_t>(height)) +
                             std::string("\x08\x02\0\0\0", 5);  // 8 bits, red green blue
  return "\x89PNG\r\n\x1A\n" + chunk("IHDR", header) + chunk("IDAT", zlib(rows)) + chunk("IEND", "");
}

}  // namespace petroglyph
