// GPT-2's splitting of a text into pieces before bytes are merged: no token crosses the end of a piece.
//
// Its regular expression is   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Its alternatives are, in this order: an English ending after an apostrophe, in lower case; a run of letters, of
// numbers, or of characters that are none of these and no white space, each with one optional space (U+0020) before
// it; white space, without its last character if another character follows.
//
// A character is one well-formed UTF-8 sequence. A byte outside such a sequence is a character by itself; it is not a
// letter, number or space.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace petroglyph {

// The regular expression's \p{L}, \p{N} and \s (the property White_Space), of the Unicode version of unicode_ranges.h.
// Unassigned codes are Other.
enum class CharacterClass : uint8_t { Other, Letter, Number, Space };
CharacterClass class_of(uint32_t code);

struct Character {
  CharacterClass kind;
  size_t length;  // in bytes
};

// The character that begins at `at`, a position within the text.
Character character_at(std::string_view text, size_t at);

// The end of the piece that begins at `at`.
size_t gpt2_piece_end(std::string_view text, size_t at);

}  // namespace petroglyph
