// Sums along a row by one warp, in the order of the catalogue: a strided 32-way sum. Thread l of the warp (lane l)
// holds what the CPU keeps in lane[l] (cpu/lanes.h); five exchanges replace the CPU's folds of 16, 8, 4, 2, 1.
//
// The exchanges are butterflies: lane l adds the value of lane l ^ width. For l < width this is the CPU's lane[l] +=
// lane[l + width]. The upper lanes add the same two terms in exchanged order, which rounds to the same float. So every
// lane has the total at the end, without a broadcast.
#pragma once

#include "gpu/launch.h"
#include "math/numerics.h"

namespace petroglyph {

constexpr int CHUNK = 1024;  // terms of a long sum per chunk, as the catalogue defines
constexpr int WARP = 32;
constexpr unsigned ALL_LANES = 0xffffffffu;

__device__ inline int lane_index() { return static_cast<int>(threadIdx.x) % WARP; }
__device__ inline int warp_index() { return static_cast<int>(threadIdx.x) / WARP; }
// The array element of this thread, for blocks of THREADS.
template <int THREADS>
__device__ inline int64_t element_of_thread() {
  return static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
}

__device__ inline float fold_lanes(float sum) {
#pragma unroll
  for (int width = WARP / 2; width > 0; width /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, width);
  return sum;
}

// Folds N sums at once (N: a power of two up to 32). Each lane gets the total of value[lane / (32 / N)]. The additions
// are those of fold_lanes, but in each step a lane keeps half of the sums and passes the other half on. N sums take N −
// 1 + log₂(32 / N) exchanges and some selections instead of 5 N. WIDTH is for the recursion.
template <int N, int WIDTH = WARP / 2>
__device__ inline float fold_many(const float (&value)[N], int lane) {
  if constexpr (N == 1) {
    float sum = value[0];
#pragma unroll
    for (int width = WIDTH; width > 0; width /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, width);
    return sum;
  } else {
    const bool upper = lane & WIDTH;
    float half[N / 2];
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const float kept = upper ? value[i + N / 2] : value[i];
      const float given = upper ? value[i] : value[i + N / 2];
      half[i] = kept + __shfl_xor_sync(ALL_LANES, given, WIDTH);
    }
    return fold_many<N / 2, WIDTH / 2>(half, lane);
  }
}

// A lane takes eight elements of a row at a time, each with a bounds check, so that a short row has several loads in
// flight (192, the papers' width, has six per lane). A loop unrolled eight times would handle the remainder with one
// load in flight. Predicted from that, not yet measured: normalization of rows of 192 in 0.04 ms instead of 0.088.
constexpr int ELEMENTS_AT_ONCE = 8;

// visit(i) for the elements i < n of a lane, in ascending order.
template <class Visit>
__device__ inline void for_lanes(int n, Visit visit) {
#pragma unroll 1
  for (int first = lane_index(); first < n; first += ELEMENTS_AT_ONCE * WARP)
#pragma unroll
    for (int i = first; i < first + ELEMENTS_AT_ONCE * WARP; i += WARP)
      if (i < n) visit(i);
}

// add(sum, i) returns the lane's sum plus element i; every lane gets the total.
template <class Add>
__device__ inline float sum_lanes(int n, Add add) {
  float sum = 0;
  for_lanes(n, [&](int i) { sum = add(sum, i); });
  return fold_lanes(sum);
}

// The same with add(sum, read(i)), but all loads read(i) of an iteration precede its first addition. Use it for data in
// global memory rather than in cache. Otherwise the compiler issues four loads, some additions, then four more loads.
template <class Read, class Add>
__device__ inline float sum_lanes(int n, Read read, Add add) {
  float sum = 0;
#pragma unroll 1
  for (int first = lane_index(); first < n; first += ELEMENTS_AT_ONCE * WARP) {
    decltype(read(0)) values[ELEMENTS_AT_ONCE];
#pragma unroll
    for (int k = 0; k < ELEMENTS_AT_ONCE; ++k) {
      const int i = first + k * WARP;
      values[k] = read(i < n ? i : first);  // never another lane's element, which that lane may overwrite
    }
#pragma unroll
    for (int k = 0; k < ELEMENTS_AT_ONCE; ++k) {
      const float next = add(sum, values[k]);
      if (first + k * WARP < n) sum = next;
    }
  }
  return fold_lanes(sum);
}

// out[i] = value(i) for i < n. value(i) may read out[i] but no other element of out: each iteration first reads all.
template <class Value>
__device__ inline void map_lanes(float* out, int n, Value value) {
#pragma unroll 1
  for (int first = lane_index(); first < n; first += ELEMENTS_AT_ONCE * WARP) {
    float values[ELEMENTS_AT_ONCE];
#pragma unroll
    for (int k = 0; k < ELEMENTS_AT_ONCE; ++k)
      if (first + k * WARP < n) values[k] = value(first + k * WARP);
#pragma unroll
    for (int k = 0; k < ELEMENTS_AT_ONCE; ++k)
      if (first + k * WARP < n) out[first + k * WARP] = values[k];
  }
}

// A value and its index. Of equal values the one with the lower index counts as larger, so that the result does not
// depend on the order of comparisons.
struct Best {
  float value;
  int index;
};

__device__ inline Best better(Best a, Best b) {
  return b.value > a.value || (b.value == a.value && b.index < a.index) ? b : a;
}

// The largest value(i) for i < n, returned to every lane.
template <class Value>
__device__ inline Best largest_of(int n, Value value) {
  Best best = {value(0), 0};
  for_lanes(n, [&](int i) { best = better(best, {value(i), i}); });
#pragma unroll
  for (int width = WARP / 2; width > 0; width /= 2)
    best = better(best, {__shfl_xor_sync(ALL_LANES, best.value, width), __shfl_xor_sync(ALL_LANES, best.index, width)});
  return best;
}

// Row kernels use one warp per row and ROW_WARPS warps per block; LAUNCH_ROWS launches them.
constexpr int ROW_WARPS = 8;

__device__ inline int64_t row_of_warp() { return static_cast<int64_t>(blockIdx.x) * ROW_WARPS + warp_index(); }

// Element kernels give each thread FOUR elements, THREADS apart, so that their loads are in flight together: all four
// read(i) precede the first write(i, value). Launch with blocks_for(n, FOUR * THREADS) blocks.
constexpr int FOUR = 4;

template <int THREADS, class Read, class Write>
__device__ inline void for_elements(int64_t n, Read read, Write write) {
  const int64_t first = static_cast<int64_t>(blockIdx.x) * FOUR * THREADS + threadIdx.x;
  decltype(read(first)) values[FOUR];
#pragma unroll
  for (int k = 0; k < FOUR; ++k)
    if (first + k * THREADS < n) values[k] = read(first + k * THREADS);
#pragma unroll
  for (int k = 0; k < FOUR; ++k)
    if (first + k * THREADS < n) write(first + k * THREADS, values[k]);
}

inline unsigned blocks_for(int64_t n, int64_t per_block) { return grid_blocks((n + per_block - 1) / per_block); }

#define LAUNCH_ROWS(kernel, rows, stream, ...)                                                                    \
  LAUNCH(kernel, petroglyph::blocks_for(rows, petroglyph::ROW_WARPS), petroglyph::ROW_WARPS* petroglyph::WARP, 0, \
         stream, __VA_ARGS__)

}  // namespace petroglyph
