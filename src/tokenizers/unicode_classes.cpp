#include "tokenizers/unicode_classes.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "tokenizers/unicode_ranges.h"

namespace petroglyph {

namespace {

template <size_t N>
bool contains(const UnicodeRange (&table)[N], uint32_t code) {
  const auto starts_after = [](uint32_t wanted, const UnicodeRange& range) { return wanted < range.first; };
  const UnicodeRange* after = std::upper_bound(std::begin(table), std::end(table), code, starts_after);
  return after != std::begin(table) && code <= std::prev(after)->last;
}

// The 25 characters with the property White_Space, which no module of Python's knows.
bool is_space(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
         code == 0x3000;
}

}  // namespace

CharacterClass class_of(uint32_t code) {
  if (contains(UNICODE_LETTERS, code)) return CharacterClass::Letter;
  if (is_space(code)) return CharacterClass::Space;
  return contains(UNICODE_NUMBERS, code) ? CharacterClass::Number : CharacterClass::Other;
}

const char* unicode_version() { return UNICODE_VERSION; }

}  // namespace petroglyph
