#include "tasks/shard_writer.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "tasks/corpus.h"

namespace petroglyph {

namespace {

std::string shard_path(const std::string& prefix, int number) { return prefix + text("_%06d.bin", number); }

// The number of a shard of PREFIX, from its file name; none if the name does not match.
std::optional<int64_t> number_of_shard(const std::string& prefix, const std::string& name) {
  const size_t end = prefix.size() + 1, digits = name.size() - std::min(name.size(), end + 4);
  const bool ours = digits >= 6 && name.compare(0, end, prefix + "_") == 0 && is_shard(name) &&
                    name.find_first_not_of("0123456789", end) == end + digits;
  return ours ? parse_integer(name.substr(end, digits)) : std::nullopt;
}

// The existing shards with this number or a higher one; numbers may be missing in between. A folder that does not
// exist has no shards.
std::vector<std::string> shards_from(const std::string& prefix, int64_t first) {
  const std::filesystem::path whole(prefix);
  const std::string folder = whole.parent_path().string();
  std::vector<std::string> there;
  for (const std::string& name : names_in(folder.empty() ? "." : folder))
    if (number_of_shard(whole.filename().string(), name).value_or(-1) >= first)
      there.push_back((whole.parent_path() / name).string());
  return there;
}

}  // namespace

bool is_shard_of(const std::string& prefix, const std::string& path) {
  const auto whole = [](const std::string& name) { return std::filesystem::absolute(name).lexically_normal(); };
  return whole(prefix).parent_path() == whole(path).parent_path() &&
         number_of_shard(whole(prefix).filename().string(), whole(path).filename().string()).has_value();
}

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

// Removes the remaining shards of an earlier, longer output. Otherwise PREFIX_*.bin would include them in this text.
void ShardWriter::remove_later() {
  for (const std::string& later : shards_from(prefix_, written_)) {
    if (!begins_as_shard(later)) continue;  // not a shard, although it has such a name
    check_replaced(later, force_);
    std::filesystem::remove(later);
    std::printf("%s: removed, of more that were there\n", in_one_line(later).c_str());
  }
}

std::string ShardWriter::path() const { return shard_path(prefix_, written_); }

void ShardWriter::write(size_t count) {
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  try {
    check_replaced(path(), force_);
    write_file_atomically(path(), shard_bytes({waiting_.begin(), end}));
  } catch (const Error& error) {
    if (written_ == 0) throw;
    throw Error(std::string(error.what()) + "; before it, and left there: " + counted(written_, "shard"));
  }
  std::printf("%s: %s\n", in_one_line(path()).c_str(), counted(static_cast<int64_t>(count), "token").c_str());
  waiting_.erase(waiting_.begin(), end);
  ++written_;
}

}  // namespace petroglyph
