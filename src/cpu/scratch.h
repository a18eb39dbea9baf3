// Scratch memory of a thread: how it is divided into buffers, and the layout of matrices in it.
#pragma once

#include "math/numerics.h"

namespace petroglyph {

inline int64_t round_up(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// The distance between rows of a matrix with so many columns: an odd number of cache lines, so that the elements of one
// column fall into different sets of the cache.
inline int64_t row_step(int64_t columns) { return (round_up(columns, 32) / 16 | 1) * 16; }

// Divides a thread's scratch into buffers, one after the other.
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
