#include "tokenizers/characters.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr size_t PART = size_t(1) << 22;  // bytes of text in one part of the tokens

// Every byte value once, in order: bytes() returns views into it.
std::string all_bytes() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  return bytes;
}

const std::string BYTES = all_bytes();

Json head(const char* kind) {
  Json json = Json::object();
  json.set("format", "petroglyph tokenizer").set("version", 1).set("kind", kind);
  return json;
}

// Characters that a terminal does not show or interprets: control characters, zero-width spaces, the byte order mark.
bool is_invisible(uint32_t code) {
  return code < 0xA0 || code == 0xAD || (code >= 0x200B && code <= 0x200F) || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2060 && code <= 0x206F) || code == 0xFEFF;
}

// The name of the first character beyond ASCII in `bytes`: "'é' (U+00E9)", "U+FEFF" if it is not visible, "byte 0xE9"
// if it is no valid character.
std::string name_of_first(std::string_view bytes) {
  const auto lead = static_cast<unsigned char>(bytes[0]);
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  const std::string character(bytes.substr(0, length));
  if (utf8_prefix(character) != length) return text("byte 0x%02X", lead);
  uint32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<unsigned char>(character[i]) & 0x3Fu);
  const std::string number = text("U+%04X", code);
  if (code == 0xFEFF) return number + ", a byte order mark,";
  return is_invisible(code) ? number : "'" + character + "' (" + number + ")";
}

}  // namespace

size_t AsciiTokenizer::find_outside(std::string_view text) {
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    if (eight & 0x8080808080808080u) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

std::string AsciiTokenizer::complaint(std::string_view text) const {
  const size_t at = find_outside(text);
  if (replace_ || at == text.size()) return "";
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return "line " + with_commas(line) + ", byte " + with_commas(static_cast<int64_t>(at)) + ": " +
         name_of_first(text.substr(at, 4)) + " is no 7-bit ASCII character";
}

int64_t AsciiTokenizer::encode_parts(std::string_view text, Reading, const TakeTokens& take) const {
  int64_t replaced = 0;
  unsigned char before = 0;
  std::vector<int32_t> tokens;
  for (size_t at = 0; at < text.size(); at += PART) {
    tokens.clear();
    for (const char c : text.substr(at, PART)) {
      const auto byte = static_cast<unsigned char>(c);
      const bool outside = byte >= 0x80 && begins_character(byte, before);
      if (byte < 0x80 || outside) tokens.push_back(outside ? REPLACEMENT : byte);
      replaced += outside;
      before = byte;
    }
    take(tokens);
  }
  return replaced;
}

std::string_view AsciiTokenizer::bytes(int32_t token) const {
  return std::string_view(BYTES).substr(static_cast<size_t>(token), 1);
}

Json AsciiTokenizer::to_json() const { return head("ascii").set("replace", replace_); }

int64_t ByteTokenizer::encode_parts(std::string_view text, Reading, const TakeTokens& take) const {
  for (size_t at = 0; at < text.size(); at += PART) {
    const std::string_view part = text.substr(at, PART);
    take({reinterpret_cast<const unsigned char*>(part.data()),
          reinterpret_cast<const unsigned char*>(part.data()) + part.size()});
  }
  return 0;
}

std::string_view ByteTokenizer::bytes(int32_t token) const {
  return std::string_view(BYTES).substr(static_cast<size_t>(token), 1);
}

Json ByteTokenizer::to_json() const { return head("bytes"); }

}  // namespace petroglyph
