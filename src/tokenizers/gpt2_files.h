// GPT-2's own tokenizer files.
//
//   encoder.json   {"!": 0, …, "Ġt": 256, …, "<|endoftext|>": 50256}   every token's number, spelled (byte_spelling.h)
//   vocab.bpe      #version: 0.2, then a merge on each line, "Ġ t", in the order in which they are made
//
// Others call them vocab.json and merges.txt; both names are found.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "tokenizers/byte_pairs.h"

namespace petroglyph {

// The numbers must be 0, 1, 2, … without a hole. A token that is no byte, that no merge makes and that does not look
// like <this>, which is special, means that merges are missing: an Error.
std::unique_ptr<BytePairTokenizer> read_gpt2_files(const std::string& folder);

// As <|endoftext|>, <s>; and what OPT fills up a round number with. <=> looks so too, but merges make it.
bool looks_special(std::string_view token);

// The same two files, and those of others (foreign_files.h), come with tokenizers that cut texts by other expressions than GPT-2's,
// and do not say so; a token that reaches over the end of a piece does: an Error, which opens with `origin`.
void check_pieces(const BytePairTokenizer& tokenizer, const std::string& origin);

}  // namespace petroglyph
