// The contract's sum along a row of n numbers: strided 32-way sum (lanes), then folds of 16, 8, 4, 2, 1. The loop that
// defines it is lane_sum() in reference/sums.h.
#pragma once

#include <algorithm>
#include <type_traits>

#include "math/numerics.h"

namespace petroglyph {

constexpr int LANES = 32;

// to (N) = x_l + x_{l+N}
template <int N>
inline void fold_once(real* to, const real* x) {
  typedef real Pack __attribute__((vector_size(N * sizeof(real)), aligned(sizeof(real)), may_alias));
  *reinterpret_cast<Pack*>(to) = *reinterpret_cast<const Pack*>(x) + *reinterpret_cast<const Pack*>(x + N);
}

// The folds of 16, 8 and 4: quad_i = the sum of the lanes i, i + 4, i + 8, …
inline void fold_to_quad(real* quad, const real* lanes) {
  alignas(64) real half[LANES / 2], quarter[LANES / 4];
  fold_once<LANES / 2>(half, lanes);
  fold_once<LANES / 4>(quarter, half);
  fold_once<LANES / 8>(quad, quarter);
}

// All folds; a GPU's warp does the same with five shuffles.
inline real fold_lanes(const real* lanes) {
  alignas(16) real quad[4];
  fold_to_quad(quad, lanes);
  return (quad[0] + quad[2]) + (quad[1] + quad[3]);
}

// The folds of 2 and 1 for many rows: sums (rows) from quads (rows,4). A processor stalls when it loads as one register
// what was just stored as several. Therefore fold_to_quad() and this function are two steps, with other work between
// them.
inline void fold_quads(real* sums, const real* quads, int64_t rows) {
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r) {
    const real* x = quads + 4 * r;
    sums[r] = (x[0] + x[2]) + (x[1] + x[3]);
  }
}

// The sum of n terms by lanes. add(sum, i) returns a lane's sum after it has added term i.
template <class Add>
inline real sum_lanes(int64_t n, Add add) {
  alignas(64) real lane[LANES] = {};
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
#pragma omp simd
    for (int l = 0; l < LANES; ++l) lane[l] = add(lane[l], i + l);
  }
  for (int l = 0; i + l < n; ++l) lane[l] = add(lane[l], i + l);
  return fold_lanes(lane);
}

inline real sum_row(const real* x, int64_t n) {
  return sum_lanes(n, [&](real sum, int64_t i) { return sum + x[i]; });
}
inline real dot(const real* x, const real* y, int64_t n) {
  return sum_lanes(n, [&](real sum, int64_t i) { return numerics::fma(x[i], y[i], sum); });
}

// The largest of the lanes. Of two zeros with different signs, each fold takes that of the lower lane.
inline real fold_largest(const real* lanes) {
  alignas(64) real half[LANES / 2], quarter[LANES / 4], quad[LANES / 8];
  const auto fold = [](real* to, const real* from, auto size) {
#pragma omp simd
    for (int l = 0; l < size; ++l) to[l] = numerics::max(from[l + size], from[l]);
  };
  fold(half, lanes, std::integral_constant<int, LANES / 2>());
  fold(quarter, half, std::integral_constant<int, LANES / 4>());
  fold(quad, quarter, std::integral_constant<int, LANES / 8>());
  return numerics::max(numerics::max(quad[3], quad[1]), numerics::max(quad[2], quad[0]));
}

// sum_lanes() of N terms, N a power of two below LANES. The other lanes would be zero, and adding them changes a sum
// only from −0 to 0; + real(0) has that effect here.
template <int N, class Add>
inline real sum_few_lanes(Add add) {
  alignas(64) real lane[N];
  for (int l = 0; l < N; ++l) lane[l] = add(real(0), l) + real(0);
  for (int width = N / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

// The largest of value(0) … value(n−1), n ≥ 1. The result does not depend on the order: it is NaN if value(0) is NaN,
// another NaN is ignored, and a zero is positive.
template <class Value>
inline real max_lanes(int64_t n, Value value) {
  alignas(64) real lane[LANES];
  std::fill_n(lane, LANES, value(0));
  int64_t i = 0;
  for (; i + LANES <= n; i += LANES) {
#pragma omp simd
    for (int l = 0; l < LANES; ++l) lane[l] = numerics::max(value(i + l), lane[l]);
  }
  for (int l = 0; i + l < n; ++l) lane[l] = numerics::max(value(i + l), lane[l]);
  return fold_largest(lane) + 0;
}

}  // namespace petroglyph
