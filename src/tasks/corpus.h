// Long rows of tokens: text files, llm.c's shards, parts of them.
//
// A text whose tokens are its bytes is read where it lies, and may be larger than memory. Where characters are replaced
// and with a byte pair encoding all its tokens are held, in one byte or two where the vocabulary allows; for a larger
// text ./tokenize makes shards. A shard (*.bin) is
//   int32[256]   20240520, version 1, number of tokens n, zeros
//   uint16[n]    the tokens
// little-endian, as llm.c's scripts write it. nanoGPT's *.bin are the tokens alone, and need --format: TokenFormat.
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
  // The tokens begin, …, begin+count−1, which must be there.
  virtual void read(int64_t begin, int64_t count, int32_t* tokens) const = 0;
  virtual int64_t replaced() const { return 0; }  // characters that the tokenizer does not have
};

// What files of tokens are. AUTO: *.bin is a shard, anything else text. UINT16, UINT32: tokens of so many bits and nothing else.
enum class TokenFormat { AUTO, TEXT, SHARD, UINT16, UINT32 };
TokenFormat token_format(const std::string& name);  // "auto", "text", "llm.c", "uint16", "uint32"
std::vector<std::string> token_format_names();

// The files of a path, which may have * and ? in the last part and elsewhere: then in the order of their names. Throws an
// Error where no file has such a name.
std::vector<std::string> files_of_corpus(const std::string& path);
// The concatenation of these files. Throws an Error for what is wrong with any of them.
std::unique_ptr<Corpus> open_corpus(const std::string& path, const Tokenizer& tokenizer,
                                    TokenFormat format = TokenFormat::AUTO);

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

bool is_shard(const std::string& path);         // by its name
bool begins_as_shard(const std::string& path);  // by what it holds

// What stands in a shard with these tokens, each below 65,536.
std::string shard_bytes(const std::vector<int32_t>& tokens);
constexpr int MOST_SHARD_TOKENS = 1 << 16;  // of a vocabulary

}  // namespace petroglyph
