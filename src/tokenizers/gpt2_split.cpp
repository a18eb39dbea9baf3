#include "tokenizers/gpt2_split.h"

#include <vector>

#include "base/text.h"
#include "tokenizers/unicode_ranges.h"

namespace petroglyph {

namespace {

constexpr size_t CODES = 0x110000;

template <size_t N>
void mark(std::vector<CharacterClass>& classes, const uint16_t (&run_lengths)[N], CharacterClass kind) {
  size_t code = 0;
  for (size_t run = 0; run < N; ++run)
    for (const size_t end = code + run_lengths[run]; code < end; ++code)
      if (run % 2 == 1) classes[code] = kind;
}

std::vector<CharacterClass> classes_of_all() {
  std::vector<CharacterClass> classes(CODES, CharacterClass::Other);
  mark(classes, UNICODE_LETTERS, CharacterClass::Letter);
  mark(classes, UNICODE_NUMBERS, CharacterClass::Number);
  // The 25 characters with the property White_Space, which is missing in Python's unicodedata.
  for (const size_t code :
       {0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000})
    classes[code] = CharacterClass::Space;
  for (size_t code = 0x2000; code <= 0x200A; ++code) classes[code] = CharacterClass::Space;
  return classes;
}

size_t run_end(std::string_view text, size_t at, CharacterClass kind) {
  while (at < text.size()) {
    const Character next = character_at(text, at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

// 's 't 'm 'd 're 've 'll: the length of the ending, or 0.
size_t ending_length(std::string_view text, size_t at) {
  if (text[at] != '\'' || at + 1 == text.size()) return 0;
  const char first = text[at + 1], second = at + 2 < text.size() ? text[at + 2] : '\0';
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  return ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
}

// All white space if it ends the text; else all but its last character, unless there is only one.
size_t space_end(std::string_view text, size_t at) {
  size_t end = at, last = at;
  while (end < text.size()) {
    const Character next = character_at(text, end);
    if (next.kind != CharacterClass::Space) break;
    last = end;
    end += next.length;
  }
  return end == text.size() || last == at ? end : last;
}

}  // namespace

CharacterClass class_of(uint32_t code) {
  static const std::vector<CharacterClass> CLASSES = classes_of_all();
  return code < CODES ? CLASSES[code] : CharacterClass::Other;
}

Character character_at(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  if (lead < 0x80) return {class_of(lead), 1};
  const size_t begin = at;
  const char32_t code = next_character(text, at);
  return {class_of(code), at - begin};
}

size_t gpt2_piece_end(std::string_view text, size_t at) {
  if (const size_t ending = ending_length(text, at)) return at + ending;
  const Character first = character_at(text, at);
  if (first.kind != CharacterClass::Space) return run_end(text, at + first.length, first.kind);
  if (text[at] == ' ' && at + 1 < text.size()) {
    const Character second = character_at(text, at + 1);
    if (second.kind != CharacterClass::Space) return run_end(text, at + 1 + second.length, second.kind);
  }
  return space_end(text, at);
}

}  // namespace petroglyph
