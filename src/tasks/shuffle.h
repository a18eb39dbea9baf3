// A random permutation without a table: it computes which of n items is at a position. A table for all 5 million
// images would have to be shuffled, kept in memory and saved with a run.
//
// A Feistel network of Philox rounds (Luby and Rackoff 1988) is a bijection on the numbers below a power of four. If
// the result is not below n, it is applied again until it is (cycle walking), which keeps it a bijection.
#pragma once

#include <cstdint>

#include "math/random.h"

namespace petroglyph {

// place < n; each (seed, stream, epoch) has another order.
inline uint64_t shuffled(uint64_t place, uint64_t n, uint64_t seed, uint32_t stream, uint32_t epoch) {
  int half = 1;
  while (half < 32 && (uint64_t(1) << (2 * half)) < n) ++half;
  const uint32_t mask = half == 32 ? ~0u : (1u << half) - 1;
  do {
    uint32_t left = static_cast<uint32_t>(place >> half), right = static_cast<uint32_t>(place) & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      const uint32_t mixed = left ^ (philox(seed, stream, epoch, right | round << 32).word[0] & mask);
      left = right;
      right = mixed;
    }
    place = static_cast<uint64_t>(left) << half | right;
  } while (place >= n);
  return place;
}

}  // namespace petroglyph
