// Letter, number, white space or something else: what GPT-2's splitting of text asks of a character.
#pragma once

#include <cstdint>

namespace petroglyph {

enum class CharacterClass : uint8_t { Letter, Number, Space, Other };

// The regular expressions' \p{L}, \p{N} and \s (the property White_Space). Unassigned codes are Other.
CharacterClass class_of(uint32_t code);

const char* unicode_version();  // "17.0.0": of the tables in unicode_ranges.h

}  // namespace petroglyph
