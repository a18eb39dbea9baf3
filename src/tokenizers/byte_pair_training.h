// Learns a byte pair encoding from a text.
//
// All 256 bytes are tokens. Then, again and again, the pair of neighbours that occurs most often in the text becomes a
// token, and wherever it occurs it is replaced. Pairs are counted within pieces (gpt2_split.h), overlapping ones too
// ("aaa" has two). Of pairs that occur equally often it is the one whose left token is older, then whose right token
// is; so the same text gives the same tokens everywhere. A pair whose bytes are a token already is passed over.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizers/byte_pairs.h"

namespace petroglyph {

// `vocab` tokens, at least 256; fewer where no pair is left that occurs twice. end_of_text: the last of them is
// <|endoftext|>, a special token. Where a text has that one document ends and another begins.
std::unique_ptr<BytePairTokenizer> train_byte_pairs(const std::vector<std::string_view>& texts, int vocab,
                                                    bool end_of_text = false);

}  // namespace petroglyph
