#include "tasks/shard_writer.h"

#include <cstdio>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "tasks/corpus.h"

namespace petroglyph {

ShardWriter::ShardWriter(const std::string& prefix, int64_t shard_tokens, const Tokenizer& tokenizer, bool force)
    : prefix_(prefix), shard_tokens_(static_cast<size_t>(shard_tokens)), force_(force) {
  if (prefix.empty()) return;
  if (tokenizer.vocab() > MOST_SHARD_TOKENS)
    throw Error("--out: a shard has 16 bits a token, too few for " + with_commas(tokenizer.vocab()) + " tokens");
  check_replaced(path(), force);
}

void ShardWriter::add(const std::vector<int32_t>& tokens) {
  if (prefix_.empty()) return;
  waiting_.insert(waiting_.end(), tokens.begin(), tokens.end());
  while (waiting_.size() >= shard_tokens_) write(shard_tokens_);
}

void ShardWriter::finish() {
  if (!waiting_.empty()) write(waiting_.size());
  if (!prefix_.empty()) remove_later();
}

// Those of a run before that wrote more: read as PREFIX_*.bin they would be part of this text.
void ShardWriter::remove_later() {
  for (; is_there(path()); ++written_) {
    check_replaced(path(), force_);
    std::filesystem::remove(path());
    std::printf("%s: removed, of more that were there\n", path().c_str());
  }
}

std::string ShardWriter::path() const { return prefix_ + text("_%06d.bin", written_); }

void ShardWriter::write(size_t count) {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  check_replaced(path(), force_);
  write_file_atomically(path(), shard_bytes({waiting_.begin(), end}));
  std::printf("%s: %s tokens\n", path().c_str(), with_commas(static_cast<int64_t>(count)).c_str());
  waiting_.erase(waiting_.begin(), end);
  ++written_;
}

}  // namespace petroglyph
