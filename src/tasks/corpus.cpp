#include "tasks/corpus.h"

#include <algorithm>
#include <cstring>
#include <fstream>

#include <glob.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "tokenizers/characters.h"

namespace petroglyph {

namespace {

constexpr size_t SHARD_HEADER = 256 * sizeof(int32_t);
constexpr int32_t SHARD_MAGIC = 20240520, SHARD_VERSION = 1;

std::string commas(size_t value) { return with_commas(static_cast<int64_t>(value)); }

// Every byte is a token.
class ByteText final : public Corpus {
 public:
  explicit ByteText(MappedFile file) : file_(std::move(file)) {}
  int64_t size() const override { return static_cast<int64_t>(file_.size()); }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    std::copy_n(file_.data() + begin, count, tokens);
  }

 private:
  MappedFile file_;
};

// Every character is a token; one beyond ASCII takes several bytes, so the number of characters before each block of
// bytes is kept, and a place is looked for within its block.
class AsciiText final : public Corpus {
 public:
  AsciiText(MappedFile file, const AsciiTokenizer& tokenizer, const std::string& path) : file_(std::move(file)) {
    const std::string_view text = file_.text();
    tokenizer.check(text, path);
    for (size_t at = 0; at < text.size(); at += BLOCK) {
      before_.push_back(size_);
      const std::string_view block = text.substr(at, BLOCK);
      if (AsciiTokenizer::find_outside(block) == block.size()) {
        size_ += static_cast<int64_t>(block.size());
      } else {
        for (size_t i = at; i < at + block.size(); ++i) count(i);
      }
    }
  }

  int64_t size() const override { return size_; }
  int64_t replaced() const override { return replaced_; }

  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    const auto block = std::upper_bound(before_.begin(), before_.end(), begin) - before_.begin() - 1;
    int64_t skip = begin - before_[static_cast<size_t>(block)];
    for (size_t at = static_cast<size_t>(block) * BLOCK; count > 0; ++at) {
      if (!is_token(at)) continue;
      if (skip-- > 0) continue;
      const unsigned char byte = file_.data()[at];
      *tokens++ = byte < 0x80 ? byte : AsciiTokenizer::REPLACEMENT;
      --count;
    }
  }

 private:
  static constexpr size_t BLOCK = 4096;

  bool is_token(size_t at) const { return begins_character(file_.data()[at], at == 0 ? 0 : file_.data()[at - 1]); }

  void count(size_t at) {
    if (!is_token(at)) return;
    ++size_;
    replaced_ += file_.data()[at] >= 0x80;
  }

  MappedFile file_;
  std::vector<int64_t> before_;  // tokens before each block
  int64_t size_ = 0, replaced_ = 0;
};

// Tokens in memory, as narrow as the vocabulary allows.
template <class Integer>
class StoredTokens final : public Corpus {
 public:
  StoredTokens(std::string_view text, const Tokenizer& tokenizer) {
    replaced_ = tokenizer.encode_parts(text, Reading::DOCUMENTS, [&](const std::vector<int32_t>& wide) {
      tokens_.insert(tokens_.end(), wide.begin(), wide.end());
    });
  }
  int64_t size() const override { return static_cast<int64_t>(tokens_.size()); }
  int64_t replaced() const override { return replaced_; }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    std::copy_n(tokens_.begin() + begin, count, tokens);
  }

 private:
  std::vector<Integer> tokens_;
  int64_t replaced_ = 0;
};

// Throws where a file has a token that the tokenizer has not.
void check_tokens(const Corpus& corpus, const std::string& path, int vocab) {
  constexpr int64_t PIECE = 1 << 12;
  int32_t tokens[PIECE];
  for (int64_t at = 0; at < corpus.size(); at += PIECE) {
    const int64_t count = std::min(PIECE, corpus.size() - at);
    corpus.read(at, count, tokens);
    for (int64_t i = 0; i < count; ++i)
      if (tokens[i] < 0 || tokens[i] >= vocab)
        throw Error(path + ": token " + with_commas(static_cast<uint32_t>(tokens[i])) + " at place " +
                    with_commas(at + i) + " is none of the tokenizer's, which has 0 to " + with_commas(vocab - 1));
  }
}

// Tokens and nothing else.
template <class Integer>
class RawTokens final : public Corpus {
 public:
  RawTokens(const std::string& path, int vocab) : file_(path) {
    if (file_.size() == 0 || file_.size() % sizeof(Integer) != 0)
      throw Error(path + ": " + commas(file_.size()) + " bytes long, expected a multiple of " +
                  std::to_string(sizeof(Integer)) + ": truncated, or tokens of another size");
    int32_t magic = 0;
    if (file_.size() >= SHARD_HEADER) std::memcpy(&magic, file_.data(), sizeof magic);
    if (magic == SHARD_MAGIC) throw Error(path + ": begins as llm.c's shards do (--format llm.c)");
    check_tokens(*this, path, vocab);
  }
  int64_t size() const override { return static_cast<int64_t>(file_.size() / sizeof(Integer)); }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    for (int64_t i = 0; i < count; ++i) {
      Integer token;
      std::memcpy(&token, file_.data() + static_cast<size_t>(begin + i) * sizeof token, sizeof token);
      tokens[i] = static_cast<int32_t>(token);
    }
  }

 private:
  MappedFile file_;
};

class Shard final : public Corpus {
 public:
  Shard(const std::string& path, int vocab) : file_(path) {
    const size_t size = file_.size();
    if (size < SHARD_HEADER)
      throw Error(path + ": " + counted(static_cast<int64_t>(size), "byte") + " long: too short for a shard of tokens");
    int32_t header[3];
    std::memcpy(header, file_.data(), sizeof header);
    if (header[0] != SHARD_MAGIC)
      throw Error(path + text(": begins with %d, expected llm.c's %d: no shard of tokens (nanoGPT's have no "
                              "header: --format uint16)",
                              header[0], SHARD_MAGIC));
    if (header[1] != SHARD_VERSION)
      throw Error(path + text(": a shard of version %d, expected %d, with 16 bits a token", header[1], SHARD_VERSION));
    size_ = header[2];
    const int64_t promised = static_cast<int64_t>(SHARD_HEADER) + 2 * size_;
    if (size_ < 0 || static_cast<int64_t>(size) != promised)
      throw Error(path + ": " + commas(size) + " bytes long, its header promises " + with_commas(promised) +
                  (static_cast<int64_t>(size) < promised ? ": truncated" : ": damaged"));
    if (vocab < MOST_SHARD_TOKENS) check_tokens(*this, path, vocab);
  }
  int64_t size() const override { return size_; }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    for (int64_t i = 0; i < count; ++i) tokens[i] = token(begin + i);
  }

 private:
  int32_t token(int64_t i) const {
    uint16_t token;
    std::memcpy(&token, file_.data() + SHARD_HEADER + 2 * i, sizeof token);
    return token;
  }

  MappedFile file_;
  int64_t size_ = 0;
};

// One corpus behind the other.
class Chain final : public Corpus {
 public:
  explicit Chain(std::vector<std::unique_ptr<Corpus>> parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) ends_.push_back(size() + part->size());
  }
  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  int64_t replaced() const override {
    int64_t sum = 0;
    for (const auto& part : parts_) sum += part->replaced();
    return sum;
  }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    auto i = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), begin) - ends_.begin());
    for (; count > 0; ++i) {
      const int64_t start = ends_[i] - parts_[i]->size();
      const int64_t here = std::min(count, ends_[i] - begin);
      parts_[i]->read(begin - start, here, tokens);
      begin += here;
      tokens += here;
      count -= here;
    }
  }

 private:
  std::vector<std::unique_ptr<Corpus>> parts_;
  std::vector<int64_t> ends_;
};

std::unique_ptr<Corpus> open_file(const std::string& path, const Tokenizer& tokenizer, TokenFormat format) {
  if (format == TokenFormat::UINT16) return std::make_unique<RawTokens<uint16_t>>(path, tokenizer.vocab());
  if (format == TokenFormat::UINT32) return std::make_unique<RawTokens<uint32_t>>(path, tokenizer.vocab());
  if (format == TokenFormat::SHARD || (format == TokenFormat::AUTO && is_shard(path)))
    return std::make_unique<Shard>(path, tokenizer.vocab());
  MappedFile file(path);
  if (file.text().empty()) throw Error(path + ": the file is empty");
  if (const auto* ascii = dynamic_cast<const AsciiTokenizer*>(&tokenizer))
    return std::make_unique<AsciiText>(std::move(file), *ascii, path);
  if (dynamic_cast<const ByteTokenizer*>(&tokenizer) != nullptr) return std::make_unique<ByteText>(std::move(file));
  return encode_corpus(file.text(), path, tokenizer);
}

}  // namespace

bool is_shard(const std::string& path) { return path.size() > 4 && path.compare(path.size() - 4, 4, ".bin") == 0; }

std::vector<std::string> token_format_names() { return {"auto", "text", "llm.c", "uint16", "uint32"}; }

TokenFormat token_format(const std::string& name) {
  const std::vector<std::string> names = token_format_names();
  return static_cast<TokenFormat>(std::find(names.begin(), names.end(), name) - names.begin());
}

// In the order of their bytes, whatever the locale.
std::vector<std::string> files_of_corpus(const std::string& path) {
  if (path.find_first_of("*?[") == std::string::npos || is_there(path)) return {path};
  glob_t found{};
  const int problem = glob(path.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (problem != 0 || paths.empty()) throw Error(path + ": no file has such a name");
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::unique_ptr<Corpus> open_corpus(const std::string& path, const Tokenizer& tokenizer, TokenFormat format) {
  std::vector<std::unique_ptr<Corpus>> files;
  for (const std::string& file : files_of_corpus(path)) files.push_back(open_file(file, tokenizer, format));
  if (files.size() == 1) return std::move(files[0]);
  return std::make_unique<Chain>(std::move(files));
}

std::unique_ptr<Corpus> encode_corpus(std::string_view text, const std::string& origin, const Tokenizer& tokenizer) {
  tokenizer.check(text, origin);
  if (tokenizer.vocab() <= 1 << 16) return std::make_unique<StoredTokens<uint16_t>>(text, tokenizer);
  return std::make_unique<StoredTokens<int32_t>>(text, tokenizer);
}

bool begins_as_shard(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  int32_t magic = 0;
  return file.read(reinterpret_cast<char*>(&magic), sizeof magic) && magic == SHARD_MAGIC;
}

std::string shard_bytes(const std::vector<int32_t>& tokens) {
  const int32_t header[3] = {SHARD_MAGIC, SHARD_VERSION, static_cast<int32_t>(tokens.size())};
  std::string bytes(SHARD_HEADER + 2 * tokens.size(), '\0');
  std::memcpy(bytes.data(), header, sizeof header);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto token = static_cast<uint16_t>(tokens[i]);
    std::memcpy(bytes.data() + SHARD_HEADER + 2 * i, &token, sizeof token);
  }
  return bytes;
}

}  // namespace petroglyph
