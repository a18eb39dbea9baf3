// Writes tokens into shards (corpus.h), one after another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace petroglyph {

// Called before long work. Throws Error if shards with that prefix cannot be written. Also throws if an input file
// would be replaced by a shard, or removed as a later shard of an earlier output.
void check_shards(const std::string& prefix, bool force, const std::vector<std::string>& read);

class ShardWriter {
 public:
  // Writes PREFIX_000000.bin, PREFIX_000001.bin, …; nothing if the prefix is empty. With `force`, existing files are
  // replaced and later ones removed; without it, they are an Error. A vocabulary too large for 16 bits is also an
  // Error.
  ShardWriter(const std::string& prefix, int64_t shard_tokens, const Tokenizer& tokenizer, bool force);

  void add(const std::vector<int32_t>& tokens);
  void finish();  // writes the remaining tokens as the last shard

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
