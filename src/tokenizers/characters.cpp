#include "tokenizers/characters.h"

#include <algorithm>

#include "base/text.h"
#include "tokenizers/gpt2_split.h"

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

}  // namespace

size_t AsciiTokenizer::find_outside(std::string_view text) {
  const auto found =
      std::find_if(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
  return static_cast<size_t>(found - text.begin());
}

std::string AsciiTokenizer::complaint(std::string_view text) const {
  const size_t at = find_outside(text);
  if (replace_ || at == text.size()) return "";
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  return "line " + with_commas(line) + ", byte " + with_commas(static_cast<int64_t>(at)) + ": '" +
         in_one_line(text.substr(at, character_at(text, at).length)) + "' is no 7-bit ASCII character";
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
