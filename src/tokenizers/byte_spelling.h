// Spells bytes with printable characters, as in GPT-2's files. It is necessary because a token may be a part of a
// UTF-8 character, which a JSON string cannot contain.
//
// The bytes '!' to '~', 0xA1 to 0xAC and 0xAE to 0xFF stand for themselves, as the characters U+0021 …; the other 68,
// in ascending order, are U+0100 …: a space is Ġ, a newline Ċ.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace petroglyph {

std::string spell(std::string_view bytes);

// The original bytes, or nothing if a character of the spelling is not valid.
std::optional<std::string> unspell(std::string_view spelling);

}  // namespace petroglyph
