#include "tokenizers/characters.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// Every byte once, in order: what a token's bytes are a part of.
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
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t eight;
    std::memcpy(&eight, text.data() + at, 8);
    if (eight & 0x8080808080808080u) break;
  }
  while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
  return at;
}

void AsciiTokenizer::check(std::string_view text, const std::string& origin) const {
  const size_t at = find_outside(text);
  if (replace_ || at == text.size()) return;
  const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  size_t length = 1;
  while (length < 4 && utf8_prefix(text.substr(at, length)) != length) ++length;
  const bool good = utf8_prefix(text.substr(at, length)) == length;
  const std::string what = good ? "'" + std::string(text.substr(at, length)) + "'"
                                : petroglyph::text("byte 0x%02X", static_cast<unsigned char>(text[at]));
  throw Error(origin + ": line " + with_commas(line) + ", byte " + with_commas(static_cast<int64_t>(at)) + ": " + what +
              " is no 7-bit ASCII character (where text is read, --replace puts '?' there; --tokenizer bytes takes "
              "everything)");
}

int64_t AsciiTokenizer::encode(std::string_view text, std::vector<int32_t>& tokens) const {
  int64_t replaced = 0;
  unsigned char before = 0;
  tokens.reserve(tokens.size() + text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      tokens.push_back(byte);
    } else if (begins_character(byte, before)) {
      tokens.push_back(REPLACEMENT);
      ++replaced;
    }
    before = byte;
  }
  return replaced;
}

size_t AsciiTokenizer::cut(std::string_view text, size_t wanted) const {
  size_t at = std::min(wanted, text.size());
  while (at > 0 && at < text.size() &&
         !begins_character(static_cast<unsigned char>(text[at]), static_cast<unsigned char>(text[at - 1]))) {
    ++at;
  }
  return at;
}

std::string_view AsciiTokenizer::bytes(int32_t token) const {
  return std::string_view(BYTES).substr(static_cast<size_t>(token), 1);
}

Json AsciiTokenizer::to_json() const { return head("ascii").set("replace", replace_); }

int64_t ByteTokenizer::encode(std::string_view text, std::vector<int32_t>& tokens) const {
  tokens.reserve(tokens.size() + text.size());
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return 0;
}

std::string_view ByteTokenizer::bytes(int32_t token) const {
  return std::string_view(BYTES).substr(static_cast<size_t>(token), 1);
}

Json ByteTokenizer::to_json() const { return head("bytes"); }

}  // namespace petroglyph
