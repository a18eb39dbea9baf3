// Learns a byte pair encoding from a text.
//
// All 256 bytes are tokens. Then, repeatedly, the adjacent pair that occurs most often in the text becomes a token,
// and every occurrence is replaced. Pairs are counted within pieces (gpt2_split.h), including overlapping ones ("aaa"
// has two). Ties: the pair with the older left token, then with the older right token, is chosen. So the same text
// gives the same tokens everywhere. A pair whose bytes are already a token is skipped.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "tokenizers/byte_pairs.h"

namespace petroglyph {

// `vocab` tokens, at least 256; fewer if no remaining pair occurs twice. end_of_text: the last token is
// <|endoftext|>, a special token. In the training texts, it separates documents.
std::unique_ptr<BytePairTokenizer> train_byte_pairs(const std::vector<std::string_view>& texts, int vocab,
                                                    bool end_of_text = false);

}  // namespace petroglyph
