#include "tasks/corpus.h"

#include <algorithm>
#include <cstring>

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

// Consecutive tokens in a file: a text's bytes, or integers of a fixed size.
template <class Integer>
class MappedTokens final : public Corpus {
 public:
  MappedTokens(MappedFile file, size_t offset, int64_t size) : file_(std::move(file)), offset_(offset), size_(size) {}
  int64_t size() const override { return size_; }
  void read(int64_t begin, int64_t count, int32_t* tokens) const override {
    const unsigned char* const first = file_.data() + offset_ + static_cast<size_t>(begin) * sizeof(Integer);
    for (int64_t i = 0; i < count; ++i) {
      Integer token;  // may be unaligned
      std::memcpy(&token, first + static_cast<size_t>(i) * sizeof token, sizeof token);
      tokens[i] = static_cast<int32_t>(token);
    }
  }

 private:
  MappedFile file_;
  size_t offset_;
  int64_t size_;
};

// Tokens in memory, in the smallest integer type that the vocabulary allows.
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

// Throws if a file has a token that the tokenizer does not have.
void check_tokens(const Corpus& corpus, const std::string& path, int vocab) {
  constexpr int64_t PIECE = 1 << 12;
  int32_t tokens[PIECE];
  for (int64_t at = 0; at < corpus.size(); at += PIECE) {
    const int64_t count = std::min(PIECE, corpus.size() - at);
    corpus.read(at, count, tokens);
    for (int64_t i = 0; i < count; ++i)
      if (tokens[i] < 0 || tokens[i] >= vocab)
        throw Error(path + ": token " + with_commas(static_cast<uint32_t>(tokens[i])) + " at position " +
                    with_commas(at + i) + ", expected one of the tokenizer's, 0 to " + with_commas(vocab - 1));
  }
}

// A file with only tokens, without a header.
std::unique_ptr<Corpus> open_raw(MappedFile file, int vocab) {
  const std::string path = file.path();
  const auto size = static_cast<int64_t>(file.size() / sizeof(uint16_t));
  if (size == 0 || file.size() % sizeof(uint16_t) != 0)
    throw Error(path + ": " + counted(static_cast<int64_t>(file.size()), "byte") +
                " long, expected a multiple of 2: " + "truncated, or tokens of another size");
  int32_t magic = 0;
  if (file.size() >= SHARD_HEADER) std::memcpy(&magic, file.data(), sizeof magic);
  if (magic == SHARD_MAGIC) throw Error(path + ": begins as llm.c's shards do (--format llm.c)");
  auto corpus = std::make_unique<MappedTokens<uint16_t>>(std::move(file), 0, size);
  check_tokens(*corpus, path, vocab);
  return corpus;
}

std::unique_ptr<Corpus> open_shard(MappedFile file, int vocab) {
  const std::string path = file.path();
  const auto size = static_cast<int64_t>(file.size());
  int32_t header[3] = {};
  if (file.size() >= SHARD_HEADER) std::memcpy(header, file.data(), sizeof header);
  if (header[0] != SHARD_MAGIC || header[1] != SHARD_VERSION)
    throw Error(path + text(": no shard of tokens, which begins as llm.c's with %d and %d (nanoGPT's have no header: "
                            "--format uint16)",
                            SHARD_MAGIC, SHARD_VERSION));
  const int64_t promised = static_cast<int64_t>(SHARD_HEADER) + 2 * int64_t(header[2]);
  if (header[2] < 0 || size != promised)
    throw Error(path + ": " + with_commas(size) + " bytes long, its header promises " + with_commas(promised) +
                (size < promised ? ": truncated" : ": damaged"));
  auto corpus = std::make_unique<MappedTokens<uint16_t>>(std::move(file), SHARD_HEADER, header[2]);
  if (vocab < MOST_SHARD_TOKENS) check_tokens(*corpus, path, vocab);
  return corpus;
}

// The concatenation of several corpora.
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

std::unique_ptr<Corpus> open_file(const std::string& path, const Tokenizer& tokenizer, const std::string& format) {
  MappedFile file(path);
  if (format == "uint16") return open_raw(std::move(file), tokenizer.vocab());
  if (format == "llm.c" || (format == "auto" && is_shard(path))) return open_shard(std::move(file), tokenizer.vocab());
  if (file.text().empty()) throw Error(path + ": the file is empty");
  const bool ascii = dynamic_cast<const AsciiTokenizer*>(&tokenizer) != nullptr;
  const bool bytes = dynamic_cast<const ByteTokenizer*>(&tokenizer) != nullptr;
  if (bytes || (ascii && AsciiTokenizer::find_outside(file.text()) == file.size())) {
    const auto size = static_cast<int64_t>(file.size());
    return std::make_unique<MappedTokens<uint8_t>>(std::move(file), 0, size);
  }
  return encode_corpus(file.text(), path, tokenizer);
}

}  // namespace

bool is_shard(const std::string& path) { return path.size() > 4 && path.compare(path.size() - 4, 4, ".bin") == 0; }

std::vector<std::string> token_format_names() { return {"auto", "text", "llm.c", "uint16"}; }

// Sorted by bytes, independent of the locale.
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

std::unique_ptr<Corpus> open_corpus(const std::string& path, const Tokenizer& tokenizer, const std::string& format) {
  std::vector<std::unique_ptr<Corpus>> files;
  for (const std::string& file : files_of_corpus(path)) files.push_back(open_file(file, tokenizer, format));
  if (files.size() == 1) return std::move(files[0]);
  return std::make_unique<Chain>(std::move(files));
}

std::unique_ptr<Corpus> encode_corpus(std::string_view text, const std::string& origin, const Tokenizer& tokenizer) {
  tokenizer.check(text, origin);
  if (tokenizer.vocab() <= 1 << 8) return std::make_unique<StoredTokens<uint8_t>>(text, tokenizer);
  if (tokenizer.vocab() <= 1 << 16) return std::make_unique<StoredTokens<uint16_t>>(text, tokenizer);
  return std::make_unique<StoredTokens<int32_t>>(text, tokenizer);
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
