// Writes text to the standard output in complete characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petroglyph {

// Writes only complete UTF-8 characters. If a token ends within a character, its last bytes wait for the next token.
// Throws Error if the output cannot be written. On a terminal, control characters other than line ends and tabs are
// printed as \x1B, because they could move the cursor or change colours and title. Pipes and files get the bytes
// unchanged.
class CharacterWriter {
 public:
  CharacterWriter();
  void write(std::string_view bytes);  // to the standard output
  void finish();                       // writes the remaining bytes, even if they are no complete character

 private:
  void print(std::string_view bytes) const;
  size_t incomplete() const;  // bytes at the end that may be the beginning of a character

  const bool terminal_;
  std::string held_;
};

}  // namespace petroglyph
