// Texts of several documents: where the tokenizer has a token for the end of one, "<|endoftext|>" in a text stands for that token,
// and what is before and after it is encoded by itself. encode() alone never makes that token: there the same letters are a text.
#pragma once

#include <functional>

#include "tokenizers/tokenizer.h"

namespace petroglyph {

constexpr std::string_view END_OF_TEXT = "<|endoftext|>";

// Gives the tokens of a text that was checked to `take`, a part at a time: only so much is held. Returns how many characters had to
// be replaced.
int64_t encode_documents(const Tokenizer& tokenizer, std::string_view text,
                         const std::function<void(const std::vector<int32_t>&)>& take);

}  // namespace petroglyph
