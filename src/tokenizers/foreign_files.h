// Byte pair encodings in the files of others.
//
//   tokenizer.json          Hugging Face's: {"model": {"type": "BPE", "vocab": {"!": 0, …}, "merges": ["Ġ t", …]},
//                           "added_tokens": […], "pre_tokenizer": {"type": "ByteLevel"}, "post_processor": …}
//   vocab.json, merges.txt  GPT-2's, which calls them encoder.json and vocab.bpe: {"!": 0, …}; "#version: 0.2", then a
//                           merge on each line. Beside them added_tokens.json, {"<|user|>": 50257, …}
//   *.tiktoken              tiktoken's: a token and its number on each line, the token's bytes in base 64. It has no
//                           merges: the number is the rank, and a token's two parts are what the lower ranks make of
//                           its bytes.
//
// In a folder the first kind that is there counts; tokenizer_config.json and special_tokens_map.json beside it name
// the token that ends a text and other special ones. Only texts cut as GPT-2 cuts them: what else a file demands is
// an Error. Not all say how they cut; a token that reaches over the end of a piece of GPT-2's does, and is an Error.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "tokenizers/byte_pairs.h"

namespace petroglyph {

bool is_tokenizer_json(const Json& json);
std::unique_ptr<BytePairTokenizer> read_tokenizer_json(const Json& json, const std::string& origin);

bool is_tiktoken_file(const std::string& path);  // by its name
std::unique_ptr<BytePairTokenizer> read_tiktoken_file(const std::string& path);

// The one that a folder has; null where there is none.
std::unique_ptr<BytePairTokenizer> find_tokenizer(const std::string& folder);
// The names of the files that it may read; *.tiktoken are further ones.
const std::vector<std::string>& tokenizer_file_names();

}  // namespace petroglyph
