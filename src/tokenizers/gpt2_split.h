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
#include <string_view>

#include "tokenizers/unicode_classes.h"

namespace petroglyph {

struct Character {
  CharacterClass kind;
  unsigned length;  // in bytes
};

// The character that begins at `at`, a place within the text.
Character character_at(std::string_view text, size_t at);

// Where the piece that begins at `at` ends.
size_t gpt2_piece_end(std::string_view text, size_t at);

// A place at or after `wanted` where the text can be cut in two without changing any piece, or its end.
size_t gpt2_cut(std::string_view text, size_t wanted);

}  // namespace petroglyph
