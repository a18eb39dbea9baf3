// Converts text to tokens and tokens to text.
//
// decode(encode(text)) is the text, byte for byte, for any bytes. There are two exceptions. A tokenizer with
// `replace` loses the replaced characters. An imported tokenizer may add or remove spaces if its files require it
// (byte_pairs.h). A tokenizer is a JSON object, in its own file and in a checkpoint's metadata:
//
//   {"format": "petroglyph tokenizer", "version": 1, "kind": "ascii", "replace": false}
//   {"format": …, "kind": "bytes"}
//   {"format": …, "kind": "bpe", "split": "gpt2", "special": [50256], "end": [50256],
//    "tokens": ["!", …], "merges": ["Ġ t", …]}  (byte_pairs.h)
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace petroglyph {

// How a text is encoded. It matters only if a tokenizer has special tokens, or tokens before or after each text.
enum class Reading {
  PLAIN,           // part of a text: special tokens in it are encoded as ordinary characters
  SPECIAL,         // the same, but each special token in it is one token
  PROMPT,          // as PLAIN, but a complete text: adds the tokens before and after each text
  SPECIAL_PROMPT,  // as SPECIAL, with these tokens
  DOCUMENTS,       // the same, and an end-of-text token ends one text and begins another
};

constexpr std::string_view END_OF_TEXT = "<|endoftext|>";

class Tokenizer {
 public:
  using TakeTokens = std::function<void(const std::vector<int32_t>&)>;

  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;  // "ascii", "bytes", "bpe, 50,257 tokens"
  virtual int vocab() const = 0;

  // The text's first character that the tokenizer can neither encode nor replace: its position and its name. Empty if
  // there is none.
  virtual std::string complaint(std::string_view) const { return ""; }
  // Throws this as an Error that begins with `origin` and ends with options that help when texts are read.
  void check(std::string_view text, const std::string& origin) const;
  // The same without these options: the tokenizer of a prompt is fixed by the model.
  void check_prompt(std::string_view text, const std::string& origin) const;

  // Passes the tokens of a checked text to `take`, in parts, so that only one part is in memory. Returns how many
  // characters were replaced.
  virtual int64_t encode_parts(std::string_view text, Reading reading, const TakeTokens& take) const = 0;
  // Appends all tokens of the text.
  int64_t encode(std::string_view text, std::vector<int32_t>& tokens, Reading reading = Reading::PLAIN) const;
  // The first special token that is spelled out in the text; empty if there is none.
  virtual std::string special_in(std::string_view) const { return ""; }

  // The bytes of a token, 0 … vocab()−1.
  virtual std::string_view bytes(int32_t token) const = 0;
  virtual Json to_json() const = 0;
  // The tokens that end a text. If there are several, the first one is written between documents.
  virtual std::vector<int32_t> end_of_text() const { return {}; }

  std::string decode(const std::vector<int32_t>& tokens) const;
  // How many UTF-8 characters begin in the token's bytes: the divisor of "bits per character".
  int characters(int32_t token) const;
};

// `name`: "ascii", "bytes", a file with the JSON above or in another format (foreign_files.h), a folder with such
// files, or a checkpoint or a run's folder, for its own tokenizer. `replace`: ASCII replaces every other character
// with '?'.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name, bool replace);
// The files that open_tokenizer() may read; none for ascii and bytes.
std::vector<std::string> files_of_tokenizer(const std::string& name);
// The same tokenizer; an ASCII tokenizer is changed to replace other characters with '?'.
std::unique_ptr<Tokenizer> replacing(std::unique_ptr<Tokenizer> tokenizer);
// Throws UsageError if the tokenizer can encode every character, so that --replace has no effect.
void check_replaces(const Tokenizer& tokenizer);
std::unique_ptr<Tokenizer> tokenizer_from_json(const Json& json, const std::string& origin);
// The JSON with one list entry on each line: the content of a tokenizer file.
std::string tokenizer_file_text(const Tokenizer& tokenizer);

}  // namespace petroglyph
