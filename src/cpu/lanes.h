// The contract's sum along a row: 32 strided lanes, then folds of 16, 8, 4, 2, 1.
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

// Lanes become four numbers, the sums of every fourth: the folds of 16, 8 and 4.
inline void fold_to_quad(real* quad, const real* lanes) {
  alignas(64) real half[LANES / 2], quarter[LANES / 4];
  fold_once<LANES / 2>(half, lanes);
  fold_once<LANES / 4>(quarter, half);
  fold_once<LANES / 8>(quad, quarter);
}

// What a GPU's warp does with five shuffles.
inline real fold_lanes(const real* lanes) {
  alignas(16) real quad[4];
  fold_to_quad(quad, lanes);
  return (quad[0] + quad[2]) + (quad[1] + quad[3]);
}

// The folds of 2 and 1, for many rows. A processor stalls where it reads as one register what was just written as several,
// so that there should be some work between the two steps.
inline void fold_quads(real* sums, const real* quads, int64_t rows) {
#pragma omp simd
  for (int64_t r = 0; r < rows; ++r) {
    const real* x = quads + 4 * r;
    sums[r] = (x[0] + x[2]) + (x[1] + x[3]);
  }
}

// add(sum, i) returns the lane's sum with element i in it.
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

// The largest of the lanes; of equal zeros that of the lower lane in each fold.
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

// sum_lanes of N terms, N a power of two below LANES: the other lanes stay zero, and so do the folds that only add these, but
// for a −0 that they make 0.
template <int N, class Add>
inline real sum_few_lanes(Add add) {
  alignas(64) real lane[N];
  for (int l = 0; l < N; ++l) lane[l] = add(real(0), l) + real(0);
  for (int width = N / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

// The largest of value(0) … value(n−1), n ≥ 1. No order matters to it: value(0) makes it NaN, a NaN elsewhere is passed over, and
// of zeros it is the positive one.
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
