// Reads byte pair encodings from files of other projects.
//
//   tokenizer.json          Hugging Face's: {"model": {"type": "BPE", "vocab": {"!": 0, …}, "merges": ["Ġ t", …]},
//                           "added_tokens": […], "pre_tokenizer": {"type": "ByteLevel"}, "post_processor": …}
//   vocab.json, merges.txt  {"!": 0, …}; "#version: 0.2", then a merge on each line. Optionally added_tokens.json,
//                           {"<|user|>": 50257, …}
//
// In a folder, the first of these formats that exists is used. tokenizer_config.json and special_tokens_map.json in
// the same folder name the end-of-text token and other special tokens. Only GPT-2's splitting of texts is supported;
// any other requirement of a file is an Error. vocab.json and merges.txt do not define the splitting. A token that
// crosses the end of a GPT-2 piece proves another splitting, and is an Error.
#pragma once

#include <memory>
#include <string>

#include "base/json.h"
#include "tokenizers/byte_pairs.h"

namespace petroglyph {

bool is_tokenizer_json(const Json& json);
std::unique_ptr<BytePairTokenizer> read_tokenizer_json(const Json& json, const std::string& origin);

// The tokenizer in a folder; null if there is none.
std::unique_ptr<BytePairTokenizer> find_tokenizer(const std::string& folder);
// The names of the files that it may read.
const std::vector<std::string>& tokenizer_file_names();

}  // namespace petroglyph
