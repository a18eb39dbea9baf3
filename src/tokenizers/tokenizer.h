// What turns text into tokens and tokens into text.
//
// decode(encode(text)) is the text, byte for byte, whatever the bytes are. Exceptions: a tokenizer that was told to
// replace characters loses those, and one of others may add or take spaces where its files demand it (byte_pairs.h).
// A tokenizer is a JSON object, in a file of its own and in a checkpoint's metadata:
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

// How a text is read. It matters only where a tokenizer has special tokens, or tokens before or after each text.
enum class Reading {
  PLAIN,           // part of a text: special tokens in it are the letters that they are spelled with
  SPECIAL,         // the same, but special tokens in it are one token each
  PROMPT,          // as PLAIN, but a whole text, with the tokens before and after each text
  SPECIAL_PROMPT,  // as SPECIAL, with these
  DOCUMENTS,       // the same, and an end-of-text token in it ends one text and begins another
};

constexpr std::string_view END_OF_TEXT = "<|endoftext|>";

class Tokenizer {
 public:
  using TakeTokens = std::function<void(const std::vector<int32_t>&)>;

  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;  // "ascii", "bytes", "bpe, 50,257 tokens"
  virtual int vocab() const = 0;

  // What the text has that the tokenizer has not and may not replace: its place and its name; empty where there is
  // nothing.
  virtual std::string complaint(std::string_view) const { return ""; }
  // Throws it as an Error, which opens with `origin` and ends with the options that help where texts are read.
  void check(std::string_view text, const std::string& origin) const;
  // The same without them: a prompt is for a model whose tokenizer stays.
  void check_prompt(std::string_view text, const std::string& origin) const;

  // Gives the tokens of a text that was checked to `take`, a part at a time, so that only a part is held. Returns how
  // many characters had to be replaced.
  virtual int64_t encode_parts(std::string_view text, Reading reading, const TakeTokens& take) const = 0;
  // Appends all of them.
  int64_t encode(std::string_view text, std::vector<int32_t>& tokens, Reading reading = Reading::PLAIN) const;
  // The first special token that is spelled out in the text; empty where there is none.
  virtual std::string special_in(std::string_view) const { return ""; }

  // The bytes that a token, from 0 to vocab()−1, stands for.
  virtual std::string_view bytes(int32_t token) const = 0;
  virtual Json to_json() const = 0;
  // The tokens that end a text; where there are several, the first is the one that is written between documents.
  virtual std::vector<int32_t> end_of_text() const { return {}; }

  std::string decode(const std::vector<int32_t>& tokens) const;
  // How many characters of UTF-8 begin in the token's bytes: what "bits per character" divides by.
  int characters(int32_t token) const;
};

// "ascii", "bytes", a file with the JSON above or of others (foreign_files.h), or a folder with them; or a checkpoint
// or a run's folder, whose own it is. `replace`: ASCII puts '?' in place of every character that it has not.
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& name, bool replace);
// The files that it may read of them; none of ascii and bytes.
std::vector<std::string> files_of_tokenizer(const std::string& name);
// The same tokenizer, or where that is ASCII the one that puts '?'.
std::unique_ptr<Tokenizer> replacing(std::unique_ptr<Tokenizer> tokenizer);
// Throws UsageError where it lacks no character, so that --replace does nothing.
void check_replaces(const Tokenizer& tokenizer);
std::unique_ptr<Tokenizer> tokenizer_from_json(const Json& json, const std::string& origin);
// The JSON with an entry of a list on each line: what a tokenizer's own file holds.
std::string tokenizer_file_text(const Tokenizer& tokenizer);

}  // namespace petroglyph
