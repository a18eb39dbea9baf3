// Text as it is written, in whole characters.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace petroglyph {

// Shows whole characters of UTF-8 only: what a token cut in two waits for its other half. Throws Error where the output takes no more.
class CharacterWriter {
 public:
  void write(std::string_view bytes);  // to the standard output
  void finish();                       // what is left, whole or not

 private:
  size_t incomplete() const;  // bytes at the end that may yet become a character

  std::string held_;
};

}  // namespace petroglyph
