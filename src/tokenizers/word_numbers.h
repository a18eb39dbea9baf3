// Numbers for words, in the order in which they are first seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace petroglyph {

// Open addressing with linear probing. Words are not copied: they must outlive the table.
class WordNumbers {
 public:
  WordNumbers() : slots_(1024) {}

  // The word's number; a new word's is the size() before.
  size_t insert(std::string_view word) {
    if (2 * (entries_.size() + 1) > slots_.size()) grow();
    const uint32_t hash = hash_of(word);
    uint32_t* slot = find(word, hash);
    if (*slot == 0) {
      entries_.push_back({word, hash});
      *slot = static_cast<uint32_t>(entries_.size());
    }
    return *slot - 1;
  }

  size_t size() const { return entries_.size(); }
  std::string_view word(size_t i) const { return entries_[i].word; }

  void clear() {
    entries_.clear();
    slots_.assign(slots_.size(), 0);
  }

 private:
  struct Entry {
    std::string_view word;
    uint32_t hash;
  };

  static uint32_t hash_of(std::string_view word) {
    constexpr uint64_t K = 0x9E3779B97F4A7C15u;
    uint64_t hash = word.size() * K;
    size_t at = 0;
    for (; at + 8 <= word.size(); at += 8) {
      uint64_t eight;
      std::memcpy(&eight, word.data() + at, 8);
      hash = (hash ^ eight) * K;
      hash ^= hash >> 32;
    }
    uint64_t rest = 0;
    for (; at < word.size(); ++at) rest = rest << 8 | static_cast<unsigned char>(word[at]);
    hash = (hash ^ rest) * K;
    return static_cast<uint32_t>(hash >> 32);
  }

  // Where the word is, or the empty slot where it would be: slots hold an entry's number plus one.
  uint32_t* find(std::string_view word, uint32_t hash) {
    const size_t mask = slots_.size() - 1;
    size_t i = hash & mask;
    while (slots_[i] != 0) {
      const Entry& entry = entries_[slots_[i] - 1];
      if (entry.hash == hash && entry.word == word) break;
      i = (i + 1) & mask;
    }
    return &slots_[i];
  }

  void grow() {
    const size_t mask = 2 * slots_.size() - 1;
    slots_.assign(mask + 1, 0);
    for (size_t n = 0; n < entries_.size(); ++n) {
      size_t i = entries_[n].hash & mask;
      while (slots_[i] != 0) i = (i + 1) & mask;
      slots_[i] = static_cast<uint32_t>(n + 1);
    }
  }

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;
};

}  // namespace petroglyph
