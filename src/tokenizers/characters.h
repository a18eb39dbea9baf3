// Tokenizers without a vocabulary file: a token is a 7-bit ASCII character or a byte.
#pragma once

#include "tokenizers/tokenizer.h"

namespace petroglyph {

// Beyond ASCII, a character is a byte from 0xC0 on and the bytes 0x80 to 0xBF after it. In UTF-8, this is exactly a
// character. For other encodings it is a rule that needs only a byte and the byte before it, at any position of a
// file.
inline bool begins_character(unsigned char byte, unsigned char before) {
  return (byte & 0xC0) != 0x80 || before < 0x80;
}

// 128 tokens. Any other character is an Error, or, with `replace`, the token REPLACEMENT.
class AsciiTokenizer final : public Tokenizer {
 public:
  static constexpr char REPLACEMENT = '?';

  explicit AsciiTokenizer(bool replace) : replace_(replace) {}

  std::string name() const override { return "ascii"; }
  int vocab() const override { return 128; }
  std::string complaint(std::string_view text) const override;
  int64_t encode_parts(std::string_view text, Reading reading, const TakeTokens& take) const override;
  std::string_view bytes(int32_t token) const override;
  Json to_json() const override;

  // The first byte that is not ASCII, or text.size().
  static size_t find_outside(std::string_view text);

 private:
  bool replace_;
};

// 256 tokens, which can encode any text.
class ByteTokenizer final : public Tokenizer {
 public:
  std::string name() const override { return "bytes"; }
  int vocab() const override { return 256; }
  int64_t encode_parts(std::string_view text, Reading reading, const TakeTokens& take) const override;
  std::string_view bytes(int32_t token) const override;
  Json to_json() const override;
};

}  // namespace petroglyph
