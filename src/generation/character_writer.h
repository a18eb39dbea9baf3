// Text as it is written, in whole characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petroglyph {

// Shows whole characters of UTF-8 only: what a token cut in two waits for its other half. Throws Error where the
// output takes no more. A model may write any bytes. On a terminal, control characters other than line ends and tabs,
// which could move the cursor or change colours and title, are shown as \x1B; pipes and files get the bytes as they
// are.
class CharacterWriter {
 public:
  CharacterWriter();
  void write(std::string_view bytes);  // to the standard output
  void finish();                       // what is left, whole or not

 private:
  void print(std::string_view bytes) const;
  size_t incomplete() const;  // bytes at the end that may yet become a character

  const bool terminal_;
  std::string held_;
};

}  // namespace petroglyph
