// How GPT-2 cuts text into pieces before it merges bytes: no token reaches over the end of a piece.
//
// Its regular expression is   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// that is, in this order: an English ending after an apostrophe, in small letters; a run of letters, of numbers, or of
// what is neither and no white space either, each with one space (U+0020) before it where there is one; white space, of
// which the last character is left for what follows.
//
// A character is one well-formed UTF-8 sequence. A byte that is part of none is a character by itself, neither letter
// nor number nor space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace petroglyph {

// The regular expression's \p{L}, \p{N} and \s (the property White_Space). Unassigned codes are Other.
enum class CharacterClass : uint8_t { Other, Letter, Number, Space };
CharacterClass class_of(uint32_t code);
const char* unicode_version();  // "17.0.0": of the tables in unicode_ranges.h

struct Character {
  CharacterClass kind;
  unsigned length;  // in bytes
};

// The character that begins at `at`, a place within the text.
Character character_at(std::string_view text, size_t at);

// Where the piece that begins at `at` ends.
size_t gpt2_piece_end(std::string_view text, size_t at);

}  // namespace petroglyph
