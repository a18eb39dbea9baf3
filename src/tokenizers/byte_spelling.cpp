#include "tokenizers/byte_spelling.h"

#include <array>
#include <cstdint>

namespace petroglyph {

namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Spelling {
  std::array<uint16_t, 256> code_of{};  // byte → code
  std::array<int16_t, 512> byte_of{};   // of a code; −1: no byte has this code

  Spelling() {
    byte_of.fill(-1);
    uint16_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const uint16_t code = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
      code_of[static_cast<size_t>(byte)] = code;
      byte_of[code] = static_cast<int16_t>(byte);
    }
  }
};

const Spelling SPELLING;

}  // namespace

std::string spell(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    const uint16_t code = SPELLING.code_of[static_cast<unsigned char>(byte)];
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else {  // all are below U+0200
      out += static_cast<char>(0xC0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
  }
  return out;
}

std::optional<std::string> unspell(std::string_view spelling) {
  std::string out;
  for (size_t at = 0; at < spelling.size(); ++at) {
    size_t code = static_cast<unsigned char>(spelling[at]);
    if (code >= 0x80) {
      const bool two = code >= 0xC2 && code < 0xC8 && at + 1 < spelling.size();
      const size_t second = two ? static_cast<unsigned char>(spelling[++at]) : 0;
      if ((second & 0xC0) != 0x80) return {};
      code = (code & 0x1F) << 6 | (second & 0x3F);
    }
    const int16_t byte = SPELLING.byte_of[code];
    if (byte < 0) return {};
    out += static_cast<char>(byte);
  }
  return out;
}

}  // namespace petroglyph
