// A hash table with a number for each pair of tokens; byte pair encoding looks up millions of pairs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace petroglyph {

// Open addressing with linear probing; entries are never removed.
class PairTable {
 public:
  static constexpr uint32_t NONE = UINT32_MAX;

  uint32_t find(int32_t left, int32_t right) const {
    if (slots_.empty()) return NONE;
    return slots_[place(key_of(left, right))].value;
  }

  // The pair's number, NONE if it is new. The reference is valid until the next call.
  uint32_t& at(int32_t left, int32_t right) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    const uint64_t key = key_of(left, right);
    Slot& slot = slots_[place(key)];
    count_ += slot.key == EMPTY;
    slot.key = key;
    return slot.value;
  }

 private:
  static constexpr uint64_t EMPTY = UINT64_MAX;  // two negative tokens: never a valid pair
  struct Slot {
    uint64_t key = EMPTY;
    uint32_t value = NONE;
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }

  size_t place(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t i = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> 32) & mask;
    while (slots_[i].key != key && slots_[i].key != EMPTY) i = (i + 1) & mask;
    return i;
  }

  void grow() {
    const std::vector<Slot> before = std::move(slots_);
    slots_.assign(before.empty() ? 1024 : 2 * before.size(), Slot{});
    for (const Slot& slot : before) {
      if (slot.key != EMPTY) slots_[place(slot.key)] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace petroglyph
