// Writes tokens into shards (corpus.h), one after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace petroglyph {

// Before long work: throws Error where shards of that prefix could not be written, and where one of the files that are read could
// be replaced by them, or be removed as a later one.
void check_shards(const std::string& prefix, bool force, const std::vector<std::string>& read);

// Whether that is the name of one of the prefix's shards.
bool is_shard_of(const std::string& prefix, const std::string& path);

class ShardWriter {
 public:
  // Into PREFIX_000000.bin, PREFIX_000001.bin, …; without a prefix nowhere. Files that are there are replaced, and later ones
  // removed, with `force` only, else Error; as where the tokenizer has more tokens than 16 bits tell.
  ShardWriter(const std::string& prefix, int64_t shard_tokens, const Tokenizer& tokenizer, bool force);

  void add(const std::vector<int32_t>& tokens);
  void finish();  // writes what is left as the last one

 private:
  std::string path() const;
  void write(size_t count);
  void remove_later();

  std::string prefix_;
  size_t shard_tokens_;
  bool force_;
  std::vector<int32_t> waiting_;
  int written_ = 0;
};

}  // namespace petroglyph
