// The backward pass of the pairwise relation: the GPU version of the second half of cpu/relation.cpp. The derivation is
// in models/causal_rn.cpp.
//
// The CPU makes one sweep over the pairs, with one task per sample. A GPU needs more tasks, and two of the three sums
// run across them. So it sweeps twice and computes ψ' twice. First, a warp owns queries: it sums dq and, over channels
// (the strided 32-way sum), the pair weights w. Second, a block owns keys and sums dp. If ψ is no exponential, or a
// head has more than 384 channels, the weights have their own sweep. Every sum is still one chain over ascending i or
// j, so the bits are the same. Last come the products with the weights and the rest, row by row.

#include <algorithm>
#include <iterator>

#include "gpu/gpu.h"
#include "gpu/product.cuh"
#include "gpu/relation.cuh"
#include "math/activation.h"

namespace petroglyph {

using product::Along;
using product::Factor;
using product::Sums;
using product::Tile;
using product::Tiling;

namespace {

// dz (B,Q,H) times 1/n of its query
__global__ void average_rows(float* dz, Pairs s) {
  const int64_t n = row_of_warp();
  if (n >= static_cast<int64_t>(s.batch) * s.queries) return;
  const float mean = 1 / static_cast<float>(s.visible(static_cast<int>(n % s.queries)));
  map_lanes(dz + n * s.hidden, s.hidden, [&](int c) { return dz[n * s.hidden + c] * mean; });
}

template <Sweep SWEEP>
void sweep(const SweepArguments& arguments, Activation activation, cudaStream_t stream) {
  with_activation(activation, arguments.inv_std != nullptr, arguments.pairs.width,
                  [&](auto psi) { run_sweep<decltype(psi), SWEEP>(arguments, stream); });
}

// w = inv_std³ · along/width, where along = Σ_c g d
__device__ float pair_weight(float inv_std, float along, int width) {
  return inv_std * inv_std * inv_std * (along / static_cast<float>(width));
}

// ---- Queries and weights in one sweep: exp, heads of up to 12 channels per lane ------------------------------------

constexpr int LANE_WARPS = 4;

// What a warp loads for 32 keys, and the sums over channels that it outputs.
template <int QUERIES>
struct alignas(16) WarpPairs {
  float factor[WARP][QUERIES], scale[WARP][QUERIES];
  float along[QUERIES][WARP];
};

// One kernel per number of groups of 32 channels; a head of 5 groups uses that of 6. Each takes seconds to compile.
constexpr int LANE_GROUPS[] = {1, 2, 3, 4, 6, 8, 12};

// The number of groups that are complete in every head that uses this kernel.
constexpr int whole_groups(int groups) {
  int whole = 0;
  for (const int fewer : LANE_GROUPS)
    if (fewer < groups) whole = fewer;
  return whole;
}

// A warp owns QUERIES queries. A lane has GROUPS channels of the head: lane, lane + 32, …. A channel out of range is zero
// in all rows and adds zero to every sum. So all channels of a row have one address, and constant distances from it.
template <int GROUPS, int QUERIES>
class LaneSweeper {
  static constexpr int WHOLE = whole_groups(GROUPS);

 public:
  __device__ LaneSweeper(const SweepArguments& arguments, float* weight, int64_t number, int first)
      : a_(arguments), weight_(weight + arguments.pairs.pair_offset(number)), number_(number), first_(first) {
    const Pairs& s = a_.pairs;
    own_ = min(QUERIES, s.queries - first);
#pragma unroll
    for (int r = 0; r < QUERIES; ++r) {
      const int64_t at = offset(r);
#pragma unroll
      for (int k = 0; k < GROUPS; ++k) {
        q_[r][k] = exists(k) ? a_.q[at + k * WARP] : 0;
        dz_[r][k] = exists(k) ? a_.dz[at + k * WARP] : 0;
        dq_[r][k] = 0;
      }
    }
  }

  __device__ void sweep(WarpPairs<QUERIES>& pairs) {
    const Pairs& s = a_.pairs;
    const int end = s.visible(first_ + own_ - 1), all_end = s.visible(first_);
    int from = 0;
    for (; from < end; from += WARP) {
      fill(pairs, from);
      __syncwarp();
      const int to = min(from + WARP, end);
      sweep_some<false>(pairs, from, from, min(to, all_end));
      sweep_some<true>(pairs, from, max(from, all_end), to);
      __syncwarp();
      const int key = from + lane_index();
#pragma unroll
      for (int r = 0; r < QUERIES; ++r)
        if (r < own_ && key < s.keys)
          weight_of(r)[key] = key < s.visible(row(r))
                                  ? pair_weight(pairs.scale[lane_index()][r], pairs.along[r][lane_index()], s.width)
                                  : 0;
    }
    for (int key = from + lane_index(); key < s.keys; key += WARP)
#pragma unroll
      for (int r = 0; r < QUERIES; ++r)
        if (r < own_) weight_of(r)[key] = 0;
  }

  __device__ void store() const {
#pragma unroll
    for (int r = 0; r < QUERIES; ++r) {
      float* out = a_.out + offset(r);
#pragma unroll
      for (int k = 0; k < GROUPS; ++k)
        if (r < own_ && exists(k)) out[k * WARP] = dq_[r][k];
    }
  }

 private:
  __device__ bool exists(int k) const { return k < WHOLE || k * WARP + lane_index() < a_.pairs.width; }
  __device__ int row(int r) const { return first_ + min(r, own_ - 1); }
  // Of the lane's first channel of a query.
  __device__ int64_t offset(int r) const {
    return a_.pairs.query_offset(number_) + static_cast<int64_t>(row(r)) * a_.pairs.hidden + lane_index();
  }
  __device__ float* weight_of(int r) const { return weight_ + static_cast<int64_t>(row(r)) * a_.pairs.keys; }

  // Each lane loads one key, for all queries.
  __device__ void fill(WarpPairs<QUERIES>& pairs, int from) const {
    const Pairs& s = a_.pairs;
    const int key = min(from + lane_index(), s.keys - 1);
#pragma unroll
    for (int r = 0; r < QUERIES; ++r) {
      const float inv_std = a_.inv_std[s.pair_offset(number_) + static_cast<int64_t>(row(r)) * s.keys + key];
      pairs.scale[lane_index()][r] = inv_std;
      pairs.factor[lane_index()][r] = ExpInRange::factor(inv_std);
    }
  }

  // The keys begin … end−1. `from`: the key of lane 0.
  template <bool PARTIAL>
  __device__ void sweep_some(WarpPairs<QUERIES>& pairs, int from, int begin, int end) {
    const int64_t stride = a_.pairs.hidden;
    const float* keys = a_.p + a_.pairs.key_offset(number_) + begin * stride + lane_index();
#pragma unroll 1
    for (int key = begin; key < end; ++key, keys += stride) {
      float p[GROUPS];
#pragma unroll
      for (int k = 0; k < GROUPS; ++k) p[k] = exists(k) ? keys[k * WARP] : 0;
      step<PARTIAL>(key, p, pairs, key - from);
    }
  }

  template <bool PARTIAL>
  __device__ void step(int key, const float (&p)[GROUPS], WarpPairs<QUERIES>& pairs, int slot) {
    const Pairs& s = a_.pairs;
    float factor[QUERIES], scale[QUERIES], along[QUERIES];
    read_row(factor, pairs.factor[slot]);
    read_row(scale, pairs.scale[slot]);
#pragma unroll
    for (int r = 0; r < QUERIES; ++r) {
      along[r] = 0;
      if (PARTIAL && (r == 0 || key >= s.visible(row(r)))) continue;  // the first query sees no key of a partial range
#pragma unroll
      for (int k = 0; k < GROUPS; ++k) {
        const float d = p[k] + q_[r][k];
        const float g = dz_[r][k] * ExpInRange::slope(factor[r], d);
        dq_[r][k] = numerics::fma(scale[r], g, dq_[r][k]);
        along[r] = numerics::fma(g, d, along[r]);
      }
    }
    const float total = fold_many(along, lane_index());
    constexpr int SHARE = WARP / QUERIES;  // number of lanes with the same total
    if (lane_index() % SHARE == 0) pairs.along[lane_index() / SHARE][slot] = total;
  }

  const SweepArguments& a_;
  float* weight_;
  int64_t number_;
  int first_, own_;
  float q_[QUERIES][GROUPS], dz_[QUERIES][GROUPS], dq_[QUERIES][GROUPS];
};

template <int GROUPS, int QUERIES>
__global__ void __launch_bounds__(LANE_WARPS* WARP, 3) sweep_lanes(SweepArguments arguments, float* weight, int tiles) {
  SHARED_ARRAY(WarpPairs<QUERIES>, pairs, [LANE_WARPS]);
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x % tiles);  // start with the queries that have the most keys
  const int first = (tile * LANE_WARPS + warp_index()) * QUERIES;
  if (first >= arguments.pairs.queries) return;
  LaneSweeper<GROUPS, QUERIES> sweeper(arguments, weight, blockIdx.x / tiles, first);
  sweeper.sweep(pairs[warp_index()]);
  sweeper.store();
}

template <int GROUPS>
void run_lanes(const SweepArguments& arguments, float* weight, cudaStream_t stream) {
  constexpr int QUERIES = GROUPS <= 6 ? 4 : 2;  // as many as the registers hold
  const int tiles = static_cast<int>(blocks_for(arguments.pairs.queries, LANE_WARPS * QUERIES));
  LAUNCH((sweep_lanes<GROUPS, QUERIES>), grid_blocks(arguments.pairs.count() * tiles), LANE_WARPS * WARP, 0, stream,
         arguments, weight, tiles);
}

constexpr int LANE_WIDTH = 12 * WARP;  // the widest head of these kernels
static_assert(LANE_WIDTH <= EXP_IN_RANGE_WIDTH, "these kernels know ExpInRange only");

void run_lanes(const SweepArguments& arguments, float* weight, cudaStream_t stream) {
  const int groups = (arguments.pairs.width + WARP - 1) / WARP;
  switch (*std::lower_bound(std::begin(LANE_GROUPS), std::end(LANE_GROUPS), groups)) {
    case 1: return run_lanes<1>(arguments, weight, stream);
    case 2: return run_lanes<2>(arguments, weight, stream);
    case 3: return run_lanes<3>(arguments, weight, stream);
    case 4: return run_lanes<4>(arguments, weight, stream);
    case 6: return run_lanes<6>(arguments, weight, stream);
    case 8: return run_lanes<8>(arguments, weight, stream);
    case 12: return run_lanes<12>(arguments, weight, stream);
  }
}

// ---- Weights alone: any activation, any width -----------------------------------------------------------------------

constexpr int WEIGHT_WARPS = 4, WEIGHT_TILE = 4;  // queries and keys per warp

// A warp has 4 queries and takes their keys 4 at a time. A lane has the channels lane, lane + 32, … of the head.
template <class Psi>
__global__ void __launch_bounds__(WEIGHT_WARPS* WARP) weigh_pairs(SweepArguments a, float* weight, int tiles) {
  const Pairs& s = a.pairs;
  const int64_t number = blockIdx.x / tiles;
  const int first = ((tiles - 1 - static_cast<int>(blockIdx.x % tiles)) * WEIGHT_WARPS + warp_index()) * WEIGHT_TILE;
  if (first >= s.queries) return;
  const int end = s.visible(min(first + WEIGHT_TILE, s.queries) - 1);
  // The pair whose sum fold_many returns to this lane.
  const int lane_query = first + lane_index() / 2 / WEIGHT_TILE, lane_key = lane_index() / 2 % WEIGHT_TILE;
  const float *p = a.p + s.key_offset(number), *q = a.q + s.query_offset(number), *dz = a.dz + s.query_offset(number);
  const float* inv_std = a.inv_std + s.pair_offset(number);
  for (int key = 0; key < s.keys; key += WEIGHT_TILE) {
    float along[WEIGHT_TILE * WEIGHT_TILE] = {}, factor[WEIGHT_TILE * WEIGHT_TILE];
    int64_t query_row[WEIGHT_TILE], key_row[WEIGHT_TILE];
#pragma unroll
    for (int r = 0; r < WEIGHT_TILE; ++r) {
      query_row[r] = static_cast<int64_t>(min(first + r, s.queries - 1)) * s.hidden;
      key_row[r] = static_cast<int64_t>(min(key + r, s.keys - 1)) * s.hidden;
    }
#pragma unroll
    for (int n = 0; n < WEIGHT_TILE * WEIGHT_TILE; ++n) {
      const int query = min(first + n / WEIGHT_TILE, s.queries - 1), one = min(key + n % WEIGHT_TILE, s.keys - 1);
      factor[n] = Psi::factor(inv_std[static_cast<int64_t>(query) * s.keys + one]);
    }
    for (int c = lane_index(); key < end && c < s.width; c += WARP) {
      float key_value[WEIGHT_TILE], query_value[WEIGHT_TILE], dz_value[WEIGHT_TILE];
#pragma unroll
      for (int r = 0; r < WEIGHT_TILE; ++r) {
        key_value[r] = p[key_row[r] + c];
        query_value[r] = q[query_row[r] + c];
        dz_value[r] = dz[query_row[r] + c];
      }
#pragma unroll
      for (int n = 0; n < WEIGHT_TILE * WEIGHT_TILE; ++n) {
        const float d = key_value[n % WEIGHT_TILE] + query_value[n / WEIGHT_TILE];
        along[n] = numerics::fma(dz_value[n / WEIGHT_TILE] * Psi::slope(factor[n], d), d, along[n]);
      }
    }
    const float total = fold_many(along, lane_index());
    const int one = key + lane_key;
    if (lane_index() % 2 != 0 || lane_query >= s.queries || one >= s.keys) continue;
    const int64_t pair = static_cast<int64_t>(lane_query) * s.keys + one;
    weight[s.pair_offset(number) + pair] = one < s.visible(lane_query) ? pair_weight(inv_std[pair], total, s.width) : 0;
  }
}

template <class Psi>
void run_weights(const SweepArguments& arguments, float* weight, cudaStream_t stream) {
  const int tiles = static_cast<int>(blocks_for(arguments.pairs.queries, WEIGHT_WARPS * WEIGHT_TILE));
  LAUNCH(weigh_pairs<Psi>, grid_blocks(arguments.pairs.count() * tiles), WEIGHT_WARPS * WARP, 0, stream, arguments,
         weight, tiles);
}

// ---- Through the inner norm -----------------------------------------------------------------------------------------

constexpr int TOTAL_THREADS = 64;

// totals (B,heads,T): the sum of a key's weights over its queries in order. One thread per key.
__global__ void total_keys(float* totals, const float* weight, Pairs s) {
  const int strips = (s.keys + TOTAL_THREADS - 1) / TOTAL_THREADS;
  const int64_t number = blockIdx.x / strips;
  const int key = static_cast<int>(blockIdx.x % strips) * TOTAL_THREADS + static_cast<int>(threadIdx.x);
  if (key >= s.keys) return;
  const float* column = weight + s.pair_offset(number) + key;
  float sum = 0;
#pragma unroll 16
  for (int j = s.first_query(key); j < s.queries; ++j) sum += column[static_cast<int64_t>(j) * s.keys];
  totals[number * s.keys + key] = sum;
}

// totals (B,heads,T): the sum of a query's weights over its keys in order. One lane per query. The warp loads 32 keys
// of all its queries at a time, which are adjacent in memory; each lane then sums its own row.
__global__ void __launch_bounds__(TOTAL_THREADS) total_queries(float* totals, const float* weight, Pairs s) {
  SHARED_ARRAY(float, tile, [TOTAL_THREADS / WARP][WARP][WARP + 1]);
  const int groups = (s.queries + WARP - 1) / WARP;
  const int64_t group = static_cast<int64_t>(blockIdx.x) * (TOTAL_THREADS / WARP) + warp_index();
  if (group >= s.count() * groups) return;
  const int64_t number = group / groups;
  const int first = static_cast<int>(group % groups) * WARP, rows = min(WARP, s.queries - first);
  float(&own)[WARP][WARP + 1] = tile[warp_index()];
  const int end = s.visible(first + rows - 1), query = first + lane_index();
  float sum = 0;
  for (int key = 0; key < end; key += WARP) {
    const int columns = min(WARP, end - key);
    const float* from = weight + s.pair_offset(number) + static_cast<int64_t>(first) * s.keys + key + lane_index();
#pragma unroll 8
    for (int r = 0; r < rows; ++r)
      if (lane_index() < columns) own[r][lane_index()] = from[static_cast<int64_t>(r) * s.keys];
    __syncwarp();
    if (lane_index() < rows)
#pragma unroll 8
      for (int c = 0; c < columns; ++c) sum += own[lane_index()][c];
    __syncwarp();
  }
  if (lane_index() < rows) totals[number * s.queries + query] = sum;
}

// mixed (B,T,H) = W q for the keys or W p for the queries, head by head. Fully masked terms are zero and skipped.
template <bool KEYS>
struct Mixed {
  static constexpr Along A = KEYS ? Along::OUTPUT : Along::K, B = Along::OUTPUT;
  float* mixed;
  const float *weight, *other;
  Pairs pairs;
  Tiling tiling;  // (T,width)

  int64_t blocks() const { return pairs.count() * tiling.tiles(); }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    tile.batch = blockIdx.x / tiling.tiles();
    const Factor weights = {weight + pairs.pair_offset(tile.batch), pairs.keys};
    const Factor others = {other + pairs.query_offset(tile.batch), pairs.hidden};
    tiling.locate(tile, blockIdx.x % tiling.tiles(), weights, A, others, B);
    const int first = static_cast<int>(tile.row);
    return KEYS ? tile.cut(pairs.first_query(first), pairs.queries, chunk)
                : tile.cut(0, pairs.visible(first + tile.rows - 1), chunk);
  }

  __device__ void store(const Tile& tile, const Sums& sum) const {
    float* to = mixed + pairs.query_offset(tile.batch) + tile.row * pairs.hidden + tile.column;
    product::store_tile(to, pairs.hidden, nullptr, !tile.first, tile, sum);
  }
};

// dx = center(dx) − x · total − mixed, for each row and head.
__global__ void finish_rows(float* dx, const float* x, const float* totals, const float* mixed, Pairs s) {
  const int64_t n = row_of_warp();
  if (n >= s.count() * s.keys) return;
  const int64_t number = n / s.keys, at = s.query_offset(number) + n % s.keys * s.hidden;
  float* row = dx + at;
  const float total = totals[n];
  const float mean = sum_lanes(s.width, [&](float sum, int c) { return sum + row[c]; }) / static_cast<float>(s.width);
  map_lanes(row, s.width, [&](int c) { return numerics::fma(-total, x[at + c], row[c] - mean) - mixed[at + c]; });
}

template <bool KEYS>
void through_norm(float* dx, const float* x, const float* other, const float* weight, float* scratch, const Pairs& s,
                  cudaStream_t stream) {
  float *totals = scratch, *mixed = scratch + (s.count() * s.keys + 3) / 4 * 4;
  if (KEYS)
    LAUNCH(total_keys, grid_blocks(s.count() * blocks_for(s.keys, TOTAL_THREADS)), TOTAL_THREADS, 0, stream, totals,
           weight, s);
  else
    LAUNCH(total_queries, blocks_for(s.count() * blocks_for(s.queries, WARP), TOTAL_THREADS / WARP), TOTAL_THREADS, 0,
           stream, totals, weight, s);
  product::run(Mixed<KEYS>{mixed, weight, other, s, {s.keys, s.width}}, s.keys, stream);
  LAUNCH_ROWS(finish_rows, s.count() * s.keys, stream, dx, x, totals, mixed, s);
}

}  // namespace

void Gpu::relation_backward(real* dp, real* dq, real* weight, real* dz, const real* inv_std, const real* shift,
                            const real* p, const real* q, const RelationShape& shape) {
  const Pairs s(shape);
  LAUNCH_ROWS(average_rows, static_cast<int64_t>(s.batch) * s.queries, stream_, dz, s);
  const SweepArguments queries{dq, dz, inv_std, shift, p, q, s}, keys{dp, dz, inv_std, shift, p, q, s};
  if (inv_std && shape.activation == Activation::EXP && s.width <= LANE_WIDTH) {
    run_lanes(queries, weight, stream_);
  } else {
    sweep<Sweep::QUERY_GRADIENT>(queries, shape.activation, stream_);
    if (inv_std)
      with_activation(shape.activation, true, s.width,
                      [&](auto psi) { run_weights<decltype(psi)>(queries, weight, stream_); });
  }
  sweep<Sweep::KEY_GRADIENT>(keys, shape.activation, stream_);
  if (!inv_std) return;
  real* memory = scratch(s.count() * s.keys + 3 + static_cast<int64_t>(s.batch) * s.keys * s.hidden);
  through_norm<true>(dp, p, q, weight, memory, s, stream_);
  through_norm<false>(dq, q, p, weight, memory, s, stream_);
}

}  // namespace petroglyph
