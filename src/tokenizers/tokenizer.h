// What turns text into tokens and tokens into text.
//
// decode(encode(text)) is the text, byte for byte, whatever the bytes are; only a tokenizer that was told to replace
// characters loses those. A tokenizer is a JSON object, in a file of its own and in a checkpoint's metadata:
//
//   {"format": "petroglyph tokenizer", "version": 1, "kind": "ascii", "replace": false}
//   {"format": …, "kind": "bytes"}
//   {"format": …, "kind": "bpe", "split": "gpt2", "special": [50256], "added": [],
//    "tokens": ["!", …], "merges": ["Ġ t", …]}  (byte_pairs.h)
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace petroglyph {

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  virtual std::string name() const = 0;  // "ascii", "bytes", "bpe, 50,257 tokens"
  virtual int vocab() const = 0;

  // What the text has that the tokenizer has not and may not replace: its place and its name; empty where there is nothing.
  virtual std::string complaint(std::string_view) const { return ""; }
  // Throws it as an Error, which opens with `origin` and ends with the options that help where texts are read.
  void check(std::string_view text, const std::string& origin) const;
  // The same without them: a prompt is for a model whose tokenizer stays.
  void check_prompt(std::string_view text, const std::string& origin) const;
  // Appends the tokens of a text that was checked, and gives how many characters had to be replaced.
  virtual int64_t encode(std::string_view text, std::vector<int32_t>& tokens) const = 0;
  // A place at or after `wanted` where the text may be cut: its two parts have the tokens of the whole.
  virtual size_t cut(std::string_view text, size_t wanted) const = 0;
  // The bytes that a token, from 0 to vocab()−1, stands for.
  virtual std::string_view bytes(int32_t token) const = 0;
  virtual Json to_json() const = 0;
  // The token that stands between documents, <|endoftext|>; −1 where there is none.
  virtual int32_t end_of_text() const { return -1; }

  std::string decode(const std::vector<int32_t>& tokens) const;
  // How many characters of UTF-8 begin in the token's bytes: what "bits per character" divides by.
  int characters(int32_t token) const;
};

// "ascii", "bytes", a file with the JSON above or of others (gpt2_files.h, foreign_files.h), or a folder with them;
// or a checkpoint or a run's folder, whose own it is.
// `replace`: ASCII puts '?' in place of every character that it has not.
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
