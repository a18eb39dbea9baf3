// A random order without a list: which of n things comes at a place, as a function of the place. A list of all 5 million images
// would have to be shuffled, kept and saved with a run.
//
// A Feistel network of Philox rounds (Luby and Rackoff 1988) maps the numbers below a power of four onto themselves, one to
// one; a number that is not below n goes through it again until it is, which keeps it one to one.
#pragma once

#include <cstdint>

#include "math/random.h"

namespace petroglyph {

// place < n; for each (seed, stream, epoch) another order.
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
