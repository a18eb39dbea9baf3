// A 64-bit fingerprint of bytes: what checkpoints carry so that one flipped bit is noticed, and what a run's weights
// are compared by. It guards against accidents, not against an adversary.
//
// The bytes are read as little-endian 64-bit words, the last block of four padded with zeros. Four lanes, so that four
// multiplications are under way at a time; word n goes to lane n mod 4:
//   mix(h, word):  h = (h ^ word) · K;  h ^= h >> 32          K = 2^64 / golden ratio, odd
//   lane l starts at (l + 1) · K;  the value is mix(mix(mix(mix(mix(0, length), lane 0), lane 1), lane 2), lane 3)
// Every step can be undone, so a change inside one word always changes the value; the shift brings high bits down,
// which a product alone never does (with it alone, flipping the highest bits of two words of a lane would go unseen).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/text.h"

namespace petroglyph {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "checkpoints are written as the machine holds them");

class Checksum {
 public:
  // Any cutting of the bytes into updates gives the same value.
  void update(const void* data, size_t size) {
    if (size == 0) return;  // an empty vector's data may be null
    const unsigned char* bytes = static_cast<const unsigned char*>(data);
    length_ += size;
    if (held_ > 0) {
      const size_t taken = std::min(size, BLOCK - held_);
      std::memcpy(block_ + held_, bytes, taken);
      held_ += taken;
      bytes += taken;
      size -= taken;
      if (held_ < BLOCK) return;
      absorb(block_);
      held_ = 0;
    }
    for (; size >= BLOCK; bytes += BLOCK, size -= BLOCK) absorb(bytes);
    if (size > 0) std::memcpy(block_, bytes, size);
    held_ = size;
  }

  uint64_t value() const {
    Checksum last = *this;
    if (held_ > 0) {
      std::memset(last.block_ + held_, 0, BLOCK - held_);
      last.absorb(last.block_);
    }
    uint64_t hash = mix(0, length_);
    for (uint64_t lane : last.lanes_) hash = mix(hash, lane);
    return hash;
  }

  std::string hex() const { return text("%016llx", static_cast<unsigned long long>(value())); }

 private:
  static constexpr uint64_t K = 0x9E3779B97F4A7C15;
  static constexpr size_t BLOCK = 32;

  static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * K;
    return hash ^ (hash >> 32);
  }

  void absorb(const unsigned char* block) {
    uint64_t words[4];
    std::memcpy(words, block, BLOCK);
    for (int l = 0; l < 4; ++l) lanes_[l] = mix(lanes_[l], words[l]);
  }

  uint64_t lanes_[4] = {K, 2 * K, 3 * K, 4 * K};
  uint64_t length_ = 0;
  unsigned char block_[BLOCK] = {};
  size_t held_ = 0;  // bytes waiting in block_
};

}  // namespace petroglyph
