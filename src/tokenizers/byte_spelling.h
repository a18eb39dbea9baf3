// Bytes spelled with printable characters, as GPT-2's files do it: a token may be half a character, which no JSON
// string could hold.
//
// The bytes '!' to '~', 0xA1 to 0xAC and 0xAE to 0xFF stand for themselves, as the characters U+0021 …; the other 68,
// in ascending order, are U+0100 …: a space is Ġ, a newline Ċ.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace petroglyph {

std::string spell(std::string_view bytes);

// The bytes that were spelled, or nothing where a character stands for none.
std::optional<std::string> unspell(std::string_view spelling);

}  // namespace petroglyph
