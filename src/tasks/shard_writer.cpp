#include "tasks/shard_writer.h"

#include <cstdio>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "tasks/corpus.h"

namespace petroglyph {

namespace {

std::string shard_path(const std::string& prefix, int number) { return prefix + text("_%06d.bin", number); }

// The existing shards of PREFIX from this number on; numbers may be missing in between. A folder that does not exist has
// no shards.
std::vector<std::string> shards_from(const std::string& prefix, int number) {
  const std::filesystem::path first(shard_path(prefix, number));
  const std::string folder = first.parent_path().string(), name = first.filename().string();
  const size_t digits = name.size() - std::string("000000.bin").size();
  std::vector<std::string> there;
  for (const std::string& other : names_in(folder.empty() ? "." : folder))
    if (other.size() == name.size() && other.compare(0, digits, name, 0, digits) == 0 && is_shard(other) &&
        other.find_first_not_of("0123456789", digits) == digits + 6 && other >= name)
      there.push_back((first.parent_path() / other).string());
  return there;
}

}  // namespace

void check_shards(const std::string& prefix, bool force, const std::vector<std::string>& read) {
  const std::vector<std::string> there = shards_from(prefix, 0);
  for (const std::string& path : there) check_not_read(path, read);
  for (const std::string& path : there) check_replaced(path, force);
  check_output(shard_path(prefix, 0), force, read);
}

ShardWriter::ShardWriter(const std::string& prefix, int64_t shard_tokens, const Tokenizer& tokenizer, bool force)
    : prefix_(prefix), shard_tokens_(static_cast<size_t>(shard_tokens)), force_(force) {
  if (prefix.empty()) return;
  if (tokenizer.vocab() > MOST_SHARD_TOKENS)
    throw Error("--out: a shard has 16 bits a token, too few for " + with_commas(tokenizer.vocab()) + " tokens");
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

// Removes the remaining shards of an earlier, longer output. Otherwise PREFIX_*.bin would include them in this text.
void ShardWriter::remove_later() {
  for (const std::string& later : shards_from(prefix_, written_)) {
    check_replaced(later, force_);
    std::filesystem::remove(later);
    std::printf("%s: removed, of more that were there\n", in_one_line(later).c_str());
  }
}

std::string ShardWriter::path() const { return shard_path(prefix_, written_); }

void ShardWriter::write(size_t count) {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  check_replaced(path(), force_);
  write_file_atomically(path(), shard_bytes({waiting_.begin(), end}));
  std::printf("%s: %s\n", in_one_line(path()).c_str(), counted(static_cast<int64_t>(count), "token").c_str());
  waiting_.erase(waiting_.begin(), end);
  ++written_;
}

}  // namespace petroglyph
