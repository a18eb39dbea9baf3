// Text as it is written, in whole characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petroglyph {

// Writes only whole characters of UTF-8: half a character, of a token that ends within one, waits for the next token. Throws Error if
// the output cannot be written. On a terminal, control characters other than line ends and tabs, which could move the cursor or
// change colours and title, are shown as \x1B; pipes and files get the bytes as they are.
class CharacterWriter {
 public:
  CharacterWriter();
  void write(std::string_view bytes);  // to the standard output
  void finish();                       // the rest, a whole character or not

 private:
  void print(std::string_view bytes) const;
  size_t incomplete() const;  // bytes at the end that may become a character

  const bool terminal_;
  std::string held_;
};

}  // namespace petroglyph
