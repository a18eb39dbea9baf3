// Byte pair encodings in the files of others beside GPT-2's own two (gpt2_files.h).
//
//   tokenizer.json   Hugging Face's: {"model": {"type": "BPE", "vocab": {"!": 0, …}, "merges": ["Ġ t", …]}, "added_tokens": […],
//                    "pre_tokenizer": {"type": "ByteLevel"}}. Only texts cut as GPT-2 cuts them: what else it says is an Error.
//   *.tiktoken       tiktoken's: a token and its number on each line, the token's bytes in base 64. It has no merges: the number is
//                    the rank, and a token's two parts are what the lower ranks make of its bytes.
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

// The one that a folder has: GPT-2's two files, tokenizer.json, or a *.tiktoken; null where there is none.
std::unique_ptr<BytePairTokenizer> find_tokenizer(const std::string& folder);

}  // namespace petroglyph
