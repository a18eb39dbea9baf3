// How an operation divides a thread's scratch, and how it lays out matrices there.
#pragma once

#include "math/numerics.h"

namespace petroglyph {

inline int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// From one row of a matrix to the next: an odd number of cache lines, so that the rows of a column lie in different sets.
inline int64_t row_step(int64_t columns) { return (round_up(columns, 32) / 16 | 1) * 16; }

// Parts of a thread's scratch, one after the other.
class Parts {
 public:
  explicit Parts(real* begin) : next_(begin) {}
  real* take(int64_t size) {
    real* const part = next_;
    next_ += round_up(size, 16);
    return part;
  }

 private:
  real* next_;
};

}  // namespace petroglyph
