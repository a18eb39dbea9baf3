// Long sequences of tokens: text files, llm.c's shards, and parts of them.
//
// If the tokens of a text are its bytes, the file is memory-mapped, so it may be larger than memory. With replaced
// characters or byte pair encoding, all tokens are in memory, with one or two bytes each if the vocabulary allows.
// For a larger text, ./tokenize writes shards. A shard (*.bin) is
//   int32[256]   20240520, version 1, number of tokens n, zeros
//   uint16[n]    the tokens
// little-endian, as in llm.c's scripts. nanoGPT's *.bin files contain only the tokens and need --format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace petroglyph {

class Corpus {
 public:
  virtual ~Corpus() = default;
  virtual int64_t size() const = 0;  // tokens
  // Reads the tokens begin, …, begin+count−1, which must exist.
  virtual void read(int64_t begin, int64_t count, int32_t* tokens) const = 0;
  virtual int64_t replaced() const { return 0; }  // characters that the tokenizer lacks and that were replaced
};

// The formats of token files: "auto" (*.bin is a shard, any other file is text), "text", "llm.c", and "uint16" (only
// tokens).
std::vector<std::string> token_format_names();

// The files that match a path, which may contain * and ?, in the last part and in folders. Matches are sorted by
// name. Throws an Error if no file matches.
std::vector<std::string> files_of_corpus(const std::string& path);
// The concatenation of these files. Throws an Error if one of them is damaged.
std::unique_ptr<Corpus> open_corpus(const std::string& path, const Tokenizer& tokenizer,
                                    const std::string& format = "auto");

// The tokens of a text.
std::unique_ptr<Corpus> encode_corpus(std::string_view text, const std::string& origin, const Tokenizer& tokenizer);

// The tokens begin, …, end−1 of another corpus.
class CorpusPart final : public Corpus {
 public:
  CorpusPart(std::shared_ptr<const Corpus> whole, int64_t begin, int64_t end)
      : whole_(std::move(whole)), begin_(begin), end_(end) {}
  int64_t size() const override { return end_ - begin_; }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    whole_->read(begin_ + begin, count, tokens);
  }
  int64_t replaced() const override { return whole_->replaced(); }

 private:
  std::shared_ptr<const Corpus> whole_;
  int64_t begin_, end_;
};

bool is_shard(const std::string& path);  // by the file's name

// The content of a shard with these tokens, each below 65,536.
std::string shard_bytes(const std::vector<int32_t>& tokens);
constexpr int MOST_SHARD_TOKENS = 1 << 16;  // of the vocabulary

}  // namespace petroglyph
