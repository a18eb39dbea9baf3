// The orders of sums that ops/catalogue.h refers to by name, as loops. numerics.h has the reasons for them.
//
// `add(sum, i)` returns the sum with term i in it: sum + x[i], or fma(x[i], y[i], sum).
#pragma once

#include <algorithm>
#include <cstdint>

#include "math/numerics.h"

namespace petroglyph {

// `lanes`: lane l of 32 takes the terms l, l + 32, … in turn; then the upper half of the lanes is added to the lower
// half, five times.
template <class Add>
real lane_sum(int64_t n, Add add) {
  real lane[32] = {};
  for (int64_t i = 0; i < n; ++i) lane[i % 32] = add(lane[i % 32], i);
  for (int width = 16; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

// The largest of n ≥ 1 values, taken in the lanes' order, which decides only between zeros of unlike signs: the one in
// the lowest lane remains, and of one lane's the first. A NaN is the largest where it is the first value; elsewhere it
// is passed over.
template <class Value>
real lane_largest(int64_t n, Value value) {
  real lane[32];
  std::fill_n(lane, 32, value(0));
  for (int64_t i = 0; i < n; ++i) lane[i % 32] = numerics::max(value(i), lane[i % 32]);
  for (int width = 16; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] = numerics::max(lane[l + width], lane[l]);
  return lane[0];
}

constexpr int64_t CHAIN = 1024;  // terms after which a chain is cut

// `chain`: start + (terms 0 … 1023) + (terms 1024 … 2047) + …; each bracket is a sum from zero, over ascending k. Of a
// sum that begins later, at k = first, the cuts stay where they are.
template <class Add>
real chain_sum(real start, int64_t first, int64_t end, Add add) {
  for (int64_t chunk = first / CHAIN * CHAIN; chunk < end; chunk += CHAIN) {
    real sum = 0;
    for (int64_t k = std::max(chunk, first); k < std::min(chunk + CHAIN, end); ++k) sum = add(sum, k);
    start += sum;
  }
  return start;
}

template <class Add>
real chain_sum(real start, int64_t n, Add add) {
  return chain_sum(start, 0, n, add);
}

// A row or a column of a matrix: `step` numbers lie between an element and the next.
struct Line {
  Line(const real* first, int64_t step = 1) : first(first), step(step) {}
  const real* first;
  int64_t step;
  real operator[](int64_t k) const { return first[k * step]; }
};

// start + Σ_k x_k y_k over k = first … end−1, in the order `chain`
inline real chain_dot(real start, Line x, Line y, int64_t first, int64_t end) {
  return chain_sum(start, first, end, [&](real sum, int64_t k) { return numerics::fma(x[k], y[k], sum); });
}
inline real chain_dot(real start, Line x, Line y, int64_t n) { return chain_dot(start, x, y, 0, n); }

// Σ_k x_k y_k and Σ_k x_k over k = 0 … n−1, in the order `lanes`
inline real lane_dot(Line x, Line y, int64_t n) {
  return lane_sum(n, [&](real sum, int64_t k) { return numerics::fma(x[k], y[k], sum); });
}
inline real lane_sum(Line x, int64_t n) {
  return lane_sum(n, [&](real sum, int64_t k) { return sum + x[k]; });
}

}  // namespace petroglyph
