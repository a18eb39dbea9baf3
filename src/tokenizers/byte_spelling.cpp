#include "tokenizers/byte_spelling.h"

#include <array>
#include <unordered_map>

namespace petroglyph {

namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

std::array<std::string, 256> spellings_of_bytes() {
  std::array<std::string, 256> spellings;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int code = stands_for_itself(byte) ? byte : next++;  // below U+0200: two bytes beyond ASCII
    std::string& spelling = spellings[static_cast<size_t>(byte)];
    if (code >= 0x80) spelling += static_cast<char>(0xC0 | code >> 6);
    spelling += static_cast<char>(code < 0x80 ? code : 0x80 | (code & 0x3F));
  }
  return spellings;
}

const std::array<std::string, 256> SPELLINGS = spellings_of_bytes();

std::unordered_map<std::string_view, char> bytes_of_spellings() {
  std::unordered_map<std::string_view, char> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes[SPELLINGS[static_cast<size_t>(byte)]] = static_cast<char>(byte);
  return bytes;
}

const std::unordered_map<std::string_view, char> BYTES = bytes_of_spellings();

}  // namespace

std::string spell(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += SPELLINGS[static_cast<unsigned char>(byte)];
  return out;
}

std::optional<std::string> unspell(std::string_view spelling) {
  std::string out;
  for (size_t at = 0, length; at < spelling.size(); at += length) {
    length = static_cast<unsigned char>(spelling[at]) < 0x80 ? 1 : 2;
    const auto found = BYTES.find(spelling.substr(at, length));
    if (found == BYTES.end()) return {};
    out += found->second;
  }
  return out;
}

}  // namespace petroglyph
