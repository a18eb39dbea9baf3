// The pairwise relation, the core of the Causal Relation Network: the GPU version of the first half of
// cpu/relation.cpp. The derivation is in models/causal_rn.cpp.
//
// Forward cost per pair and channel: an addition, a multiplication and the ten instructions of exp2, the last of which
// adds. Everything else is kept out of this loop. Factors come from shared memory, one for all channels. Queries and
// sums stay in registers (relation.cuh). The variances come from a matrix product of queries and keys (product.cuh).

#include <algorithm>

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

// squares (B,heads,rows): |x|² of each row and head of x (B,capacity,H)
__global__ void square_rows(float* squares, const float* x, int rows, int capacity, Pairs s) {
  const int64_t n = row_of_warp();
  if (n >= s.count() * rows) return;
  const int64_t number = n / rows;
  const float* row = x + (number / s.heads * capacity + n % rows) * s.hidden + number % s.heads * s.width;
  const float square = sum_lanes(s.width, [&](float sum, int c) { return numerics::fma(row[c], row[c], sum); });
  if (lane_index() == 0) squares[n] = square;
}

// inv_std from the dot products of queries (rows) and keys (columns), one product for each sample and head.
struct InverseStd {
  static constexpr Along A = Along::K, B = Along::K;
  float* inv_std;
  const float *p, *q, *key_squares, *query_squares;
  Pairs pairs;
  Tiling tiling;  // (Q,T)

  int64_t blocks() const { return pairs.count() * tiling.tiles(); }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    tile.batch = blockIdx.x / tiling.tiles();
    const Factor queries = {q + pairs.query_offset(tile.batch), pairs.hidden};
    const Factor keys = {p + pairs.key_offset(tile.batch), pairs.hidden};
    tiling.locate(tile, blockIdx.x % tiling.tiles(), queries, A, keys, B);
    const int last = static_cast<int>(tile.row) + tile.rows - 1;
    if (tile.column < pairs.visible(last)) return tile.cut(0, pairs.width, chunk);
    for (int n = static_cast<int>(threadIdx.x); n < tile.rows * tile.columns; n += product::THREADS)
      row_of(tile, n / tile.columns)[n % tile.columns] = 0;
    return false;
  }

  // The part of a row of inv_std that belongs to the tile.
  __device__ float* row_of(const Tile& tile, int row) const {
    return inv_std + pairs.pair_offset(tile.batch) + (tile.row + row) * pairs.keys + tile.column;
  }

  __device__ float inverse(float square) const {
    const float variance = square / static_cast<float>(pairs.width);
    return variance > 0 ? 1 / numerics::sqrt(variance) : 0;
  }

  __device__ void store(const Tile& tile, const Sums& sum) const;
  __device__ unsigned store_row(const Tile& tile, const float (&sum)[8], int r) const;
  __device__ void sum_directly(const Tile& tile, int r, unsigned cancelled) const;
};

// Not unrolled: 64 copies of a division and a square root would not fit the instruction cache. After each row the
// others move up, so that the current row is always in rows[0]: registers that the compiler knows.
__device__ void InverseStd::store(const Tile& tile, const Sums& sum) const {
  Sums rows;
#pragma unroll
  for (int n = 0; n < 64; ++n) rows[n / 8][n % 8] = sum[n / 8][n % 8];
#pragma unroll 1
  for (int r = 0; r < 8; ++r) {
    unsigned cancelled = 0;
    if (product::tile_row(r, lane_index()) < tile.rows) cancelled = store_row(tile, rows[0], r);
    sum_directly(tile, r, cancelled);
#pragma unroll
    for (int n = 0; n < 56; ++n) rows[n / 8][n % 8] = rows[n / 8 + 1][n % 8];
  }
}

// For a head wider than a chunk, inv_std holds the partial dot products between chunks. Returns one bit per column
// whose sum cancelled.
__device__ unsigned InverseStd::store_row(const Tile& tile, const float (&sum)[8], int r) const {
  const int row = product::tile_row(r, lane_index());
  const int visible = pairs.visible(static_cast<int>(tile.row) + row) - static_cast<int>(tile.column);
  const float query_square = query_squares[tile.batch * pairs.queries + tile.row + row];
  float* out = row_of(tile, row);
  unsigned cancelled = 0;
#pragma unroll
  for (int c = 0; c < 8; ++c) {
    const int column = product::tile_column(c, lane_index());
    if (column >= tile.columns) continue;
    const float dot = (tile.first ? 0 : out[column]) + sum[c];
    if (!tile.last) {
      out[column] = dot;
      continue;
    }
    const float square_sum = key_squares[tile.batch * pairs.keys + tile.column + column] + query_square;
    const float square = numerics::fma(2.0f, dot, square_sum);
    if (column < visible && square < CANCELLATION * square_sum) cancelled |= 1u << c;
    out[column] = column < visible ? inverse(square) : 0;
  }
  return cancelled;
}

// Few pairs nearly cancel. The warp recomputes them together, one pair after the other, for all lanes.
__device__ void InverseStd::sum_directly(const Tile& tile, int r, unsigned cancelled) const {
  for (unsigned lanes; (lanes = __ballot_sync(ALL_LANES, cancelled != 0)) != 0;) {
    const int lane = __ffs(static_cast<int>(lanes)) - 1;
    const int c = __ffs(static_cast<int>(__shfl_sync(ALL_LANES, cancelled, lane))) - 1;
    const int row = product::tile_row(r, lane), column = product::tile_column(c, lane);
    const float* query = tile.a.data + row * tile.a.stride;
    const float* key = tile.b.data + column * tile.b.stride;
    const float square = sum_lanes(pairs.width, [&](float sum, int i) {
      const float d = key[i] + query[i];
      return numerics::fma(d, d, sum);
    });
    if (lane_index() != lane) continue;
    row_of(tile, row)[column] = inverse(square);
    cancelled &= cancelled - 1;
  }
}

// ---- Shift --------------------------------------------------------------------------------------------------------

constexpr int SHIFT_THREADS = 64;

// largest (B,Q,H): per channel the largest key visible to a query. One thread per channel of a sample, keys in order.
__global__ void largest_keys(float* largest, const float* p, Pairs s) {
  const int strips = (s.hidden + SHIFT_THREADS - 1) / SHIFT_THREADS;
  const int64_t sample = blockIdx.x / strips;
  const int c = static_cast<int>(blockIdx.x % strips) * SHIFT_THREADS + static_cast<int>(threadIdx.x);
  if (c >= s.hidden) return;
  const float* keys = p + sample * s.capacity * s.hidden + c;
  float top = keys[0];
  int seen = 1;
  for (int j = 0; j < s.queries; ++j) {
#pragma unroll 4
    for (; seen < s.visible(j); ++seen) top = numerics::max(keys[static_cast<int64_t>(seen) * s.hidden], top);
    largest[(sample * s.queries + j) * s.hidden + c] = top;
  }
}

// shift_n = max over channels of largest + q. Of equal sums the lower channel's is taken, as on the CPU: zeros have
// signs.
__global__ void largest_sums(float* shift, const float* largest, const float* q, int64_t rows, int hidden) {
  const int64_t n = row_of_warp();
  if (n >= rows) return;
  const Best best = largest_of(hidden, [&](int c) { return largest[n * hidden + c] + q[n * hidden + c]; });
  if (lane_index() == 0) shift[n] = best.value;
}

}  // namespace

void Gpu::relation_inv_std(real* inv_std, const real* p, const real* q, const RelationShape& shape) {
  const Pairs s(shape);
  const int64_t key_rows = s.count() * s.keys, query_rows = s.count() * s.queries;
  real* key_squares = scratch(s.count() * s.capacity + query_rows);  // a decoder's number of keys grows
  real* query_squares = key_squares + key_rows;
  LAUNCH_ROWS(square_rows, key_rows, stream_, key_squares, p, s.keys, s.capacity, s);
  LAUNCH_ROWS(square_rows, query_rows, stream_, query_squares, q, s.queries, s.queries, s);
  product::run(InverseStd{inv_std, p, q, key_squares, query_squares, s, {s.queries, s.keys}}, s.width, stream_);
}

void Gpu::relation_shift(real* shift, const real* p, const real* q, const RelationShape& shape) {
  const Pairs s(shape);
  const int64_t rows = static_cast<int64_t>(s.batch) * s.queries;
  real* largest = scratch(rows * s.hidden);
  LAUNCH(largest_keys, grid_blocks(int64_t{1} * blocks_for(s.hidden, SHIFT_THREADS) * s.batch), SHIFT_THREADS, 0,
         stream_, largest, p, s);
  LAUNCH_ROWS(largest_sums, rows, stream_, shift, largest, q, rows, s.hidden);
}

void Gpu::relation(real* z, const real* inv_std, const real* shift, const real* p, const real* q,
                   const RelationShape& shape) {
  with_activation(shape.activation, inv_std != nullptr, shape.head_width(), [&](auto psi) {
    run_sweep<decltype(psi), Sweep::VALUE>({z, nullptr, inv_std, shift, p, q, Pairs(shape)}, stream_);
  });
}

}  // namespace petroglyph
