// The tile of a matrix product: the GPU version of cpu/product.cpp. Every product of the catalogue uses it.
//
// A block computes TILE_ROWS × TILE_COLUMNS outputs. A thread computes 8×8 of them in registers, each as the
// catalogue's chain: one fma after the other over ascending k, cut every CHUNK terms. Slices of DEPTH terms of both
// factors pass through shared memory; the next slice is copied while this one is multiplied. For each k a thread reads
// 8 + 8 numbers for 64 fma, 16 bytes at a time. Lanes share these addresses, so that reads take less time than
// arithmetic. The tile is 96×64: 192, the papers' width, is a multiple of both, and four blocks of three warps fill a
// multiprocessor's registers.
//
// Registers have two banks, even and odd. An fma that reads two factors and a sum takes two cycles if all three are in
// one bank. So a term's rows and columns are adjacent in shared memory for either layout of the factors, and are loaded
// to registers in fours. test/sass_banks.awk counts the loop's cycles: 1.45 per fma before this, 1.16 now. Predicted
// from that, not yet measured: x·weightᵀ at 75 % of the peak instead of 57 %.
//
// A Problem, passed to the kernel by value, defines what is multiplied and where the result goes:
//   static constexpr Along A, B      which way its factors lie in memory
//   int64_t blocks() const           on the host: how many tiles to compute
//   bool locate(Tile&, int64_t chunk) const           on the device: the tile of this block; false: nothing to do
//   void store(const Tile&, const Sums&) const        stores the sums of one chunk; the chunks come in order
#pragma once

#include "gpu/lanes.cuh"
#include "ops/ops.h"

namespace petroglyph {
namespace product {

constexpr int TILE_ROWS = 96, TILE_COLUMNS = 64;
constexpr int THREADS = TILE_ROWS / 8 * TILE_COLUMNS / 8, WARPS = THREADS / WARP;
constexpr int BLOCKS_AT_ONCE = 4;  // per multiprocessor: three warps per quarter leave a thread 168 registers
constexpr int DEPTH = 16;
constexpr int PAD = 4;  // between rows of shared memory: eight rows' pieces of 16 bytes fall into different banks

// Which index of a factor is contiguous: k, or the row of a (the column of b).
enum class Along { K, OUTPUT };

// Element (r, k) is at data[r·stride + k] or data[k·stride + r].
struct Factor {
  const float* data;
  int stride;
};

// One block's part of a product.
struct Tile {
  Factor a, b;             // pointers at the tile's first row and column and at k = 0
  int rows, columns;       // rows and columns that exist
  int64_t row, column;     // of its top left element
  int64_t batch;           // index that the problem counts beside rows and columns
  int64_t k_begin, k_end;  // terms of one chunk; k_begin is a multiple of DEPTH
  bool first, last;        // whether this chunk is the tile's first, its last

  // Sets the terms of begin … end−1 that belong to the chunk. Returns false if there are none.
  __device__ bool cut(int64_t begin, int64_t end, int64_t chunk) {
    k_begin = max(begin, chunk * CHUNK);
    k_end = min(end, (chunk + 1) * CHUNK);
    first = k_begin == begin;
    last = k_end == end;
    return k_begin < k_end;
  }
};

using Sums = float[8][8];

// The rows and columns of a lane in its warp's 32 × 64, as adjacent groups of four. Two neighbouring lanes have the
// same columns; in a half warp, lanes of equal lane % 2 have the same rows. Shared memory then serves a 16-byte read of
// 32 lanes in two passes; with columns of lane % 8 it would take four.
__device__ inline int tile_row(int r, int lane) {
  return warp_index() * 32 + (lane % 2 + lane / 16 * 2) * 4 + r % 4 + r / 4 * 16;
}
HOST_DEVICE constexpr int column_offset(int c) { return c % 4 + c / 4 * 32; }
__device__ inline int tile_column(int c, int lane) { return lane / 2 % 8 * 4 + column_offset(c); }

// DEPTH terms of SIZE rows of a factor in shared memory.
template <int SIZE>
struct alignas(16) Slice {
  float terms[DEPTH][SIZE + PAD];
};

// Copies slice after slice. Rows out of range repeat rows that exist; their sums are never used. Along OUTPUT, pieces
// are as long as alignment allows. Along K, a slice is the transpose of the memory, so a piece is one number:
// TERMS_AT_ONCE lanes read 32 bytes of a row, and a warp's 32 numbers go to 32 different banks.
template <Along ALONG, int SIZE>
class Copier {
 public:
  __device__ Copier(const Factor& factor, int size, int64_t k_begin)
      : next_(factor.data), stride_(factor.stride), size_(size) {
    next_ += ALONG == Along::K ? k_begin : k_begin * stride_;
    const unsigned misfits = static_cast<unsigned>(reinterpret_cast<uintptr_t>(factor.data) / sizeof(float)) |
                             static_cast<unsigned>(stride_) | static_cast<unsigned>(size);
    length_ = misfits % 4 == 0 ? 4 : misfits % 2 == 0 ? 2 : 1;
    const int thread = static_cast<int>(threadIdx.x), pieces = SIZE / length_;
    term_ = ALONG == Along::K ? thread % TERMS_AT_ONCE : thread / pieces;
    row_ = ALONG == Along::K ? thread / TERMS_AT_ONCE : thread % pieces * length_;
    from_ = ALONG == Along::K ? min(row_, size - 1) * static_cast<int64_t>(stride_) + term_
                              : term_ * static_cast<int64_t>(stride_) + min(row_, size - length_);
  }

  // terms: the number of remaining terms
  __device__ void copy(Slice<SIZE>& slice, int terms) {
    if (terms < DEPTH)
      copy_rest(slice, terms);
    else if (ALONG == Along::K && size_ == SIZE)
      copy_rows<true>(slice);
    else if (ALONG == Along::K)
      copy_rows<false>(slice);
    else if (length_ == 4)
      copy_pieces<4>(slice);
    else if (length_ == 2)
      copy_pieces<2>(slice);
    else
      copy_pieces<1>(slice);
    next_ += ALONG == Along::K ? DEPTH : DEPTH * static_cast<int64_t>(stride_);
  }

 private:
  static constexpr int TERMS_AT_ONCE = 8;

  // WHOLE: all rows exist. The loop for fewer is not unrolled: the compiler would choose all its steps before the first
  // slice, and keep them in 24 registers.
  template <bool WHOLE>
  __device__ void copy_rows(Slice<SIZE>& slice) const {
    constexpr int AT_ONCE = THREADS / TERMS_AT_ONCE;
    const int64_t step = static_cast<int64_t>(AT_ONCE) * stride_;
    const float* from = next_ + from_;
#pragma unroll(WHOLE ? SIZE : 1)
    for (int n = 0; n < SIZE; n += AT_ONCE) {
      if (n + AT_ONCE > SIZE && n + row_ >= SIZE) break;
#pragma unroll
      for (int term = 0; term < DEPTH; term += TERMS_AT_ONCE)
        __pipeline_memcpy_async(&slice.terms[term_ + term][row_ + n], from + term, sizeof(float));
      if (WHOLE || n + AT_ONCE + row_ < size_) from += step;
    }
  }

  // The threads copy the pieces of some terms, then those of the next terms.
  template <int LENGTH>
  __device__ void copy_pieces(Slice<SIZE>& slice) const {
    constexpr int PIECES = SIZE / LENGTH, AT_ONCE = THREADS / PIECES > 0 ? THREADS / PIECES : 1;
    if (THREADS % PIECES != 0 && term_ >= AT_ONCE) return;
    const int64_t step = static_cast<int64_t>(AT_ONCE) * stride_;
    const float* from = next_ + from_;
#pragma unroll
    for (int n = 0; n < DEPTH; n += AT_ONCE, from += step) {
      if (n + AT_ONCE > DEPTH && n + term_ >= DEPTH) break;
      __pipeline_memcpy_async(&slice.terms[term_ + n][row_], from, LENGTH * sizeof(float));
    }
  }

  // Copies the last slice if it has fewer than DEPTH terms.
  __device__ void copy_rest(Slice<SIZE>& slice, int terms) const {
#pragma unroll 1
    for (int n = static_cast<int>(threadIdx.x); n < SIZE * DEPTH; n += THREADS) {
      const int term = n % DEPTH;
      const int64_t row = min(n / DEPTH, size_ - 1);
      const int64_t at = ALONG == Along::K ? row * stride_ + term : static_cast<int64_t>(term) * stride_ + row;
      if (term < terms) __pipeline_memcpy_async(&slice.terms[term][n / DEPTH], next_ + at, sizeof(float));
    }
  }

  const float* next_;  // the tile's first row at the next slice's first term
  int stride_, size_;
  int length_;      // of a piece
  int term_, row_;  // of this thread's first piece
  int64_t from_;    // offset of that piece from next_
};

// Reads a lane's eight rows (or columns) of a term: four, and four more at distance `apart`.
__device__ inline void read_eight(float (&to)[8], const float* from, int apart) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const float4 x = *reinterpret_cast<const float4*>(from + n * apart);
    to[n * 4] = x.x, to[n * 4 + 1] = x.y, to[n * 4 + 2] = x.z, to[n * 4 + 3] = x.w;
  }
}

// Odd rows go from right to left. Two neighbouring fma then always share a factor, which the second reads from the
// operand cache instead of a register bank.
__device__ inline void multiply_term(Sums& sum, const float* a, const float* b) {
  float x[8], y[8];
  read_eight(x, a, 16);
  read_eight(y, b, 32);
#pragma unroll
  for (int n = 0; n < 64; ++n) {
    const int r = n / 8, c = r % 2 ? 7 - n % 8 : n % 8;
    sum[r][c] = numerics::fma(x[r], y[c], sum[r][c]);
  }
}

// Never adds padding terms: even a zero would turn a sum of −0 into +0.
__device__ inline void multiply_slice(Sums& sum, const Slice<TILE_ROWS>& a, const Slice<TILE_COLUMNS>& b, int terms) {
  const float *x = &a.terms[0][tile_row(0, lane_index())], *y = &b.terms[0][tile_column(0, lane_index())];
  if (terms == DEPTH) {
#pragma unroll 8
    for (int k = 0; k < DEPTH; ++k) multiply_term(sum, x + k * (TILE_ROWS + PAD), y + k * (TILE_COLUMNS + PAD));
    return;
  }
#pragma unroll 1
  for (int k = 0; k < terms; ++k) multiply_term(sum, x + k * (TILE_ROWS + PAD), y + k * (TILE_COLUMNS + PAD));
}

template <class Problem>
__global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE) multiply(Problem problem, int64_t chunk) {
  constexpr Along A = Problem::A, B = Problem::B;
  using SliceA = Slice<TILE_ROWS>;
  using SliceB = Slice<TILE_COLUMNS>;
  SHARED_ARRAY(SliceA, a, [2]);
  SHARED_ARRAY(SliceB, b, [2]);
  Tile tile;
  if (!problem.locate(tile, chunk)) return;
  Copier<A, TILE_ROWS> copier_a(tile.a, tile.rows, tile.k_begin);
  Copier<B, TILE_COLUMNS> copier_b(tile.b, tile.columns, tile.k_begin);
  int left = static_cast<int>(tile.k_end - tile.k_begin), slice = 0;
  copier_a.copy(a[0], left);
  copier_b.copy(b[0], left);
  __pipeline_commit();
  Sums sum = {};
  for (; left > 0; left -= DEPTH) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this slice has arrived; no thread reads the other buffer, which is filled next
    if (left > DEPTH) {
      copier_a.copy(a[slice ^ 1], left - DEPTH);
      copier_b.copy(b[slice ^ 1], left - DEPTH);
      __pipeline_commit();
    }
    if (tile_row(0, 0) < tile.rows) multiply_slice(sum, a[slice], b[slice], min(left, DEPTH));  // skip empty warps
    slice ^= 1;
  }
  problem.store(tile, sum);
}

template <class Problem>
void run_chunk(const Problem& problem, int64_t chunk, cudaStream_t stream) {
  LAUNCH(multiply<Problem>, grid_blocks(problem.blocks()), THREADS, 0, stream, problem, chunk);
}

// One launch per chunk keeps the chunks in order. A loop in the kernel would keep its addresses in registers, but the
// tile needs all registers.
template <class Problem>
void run(const Problem& problem, int64_t K, cudaStream_t stream) {
  for (int64_t chunk = 0; chunk * CHUNK < K; ++chunk) run_chunk(problem, chunk, stream);
}

// WHOLE: no row or column of the tile is out of range, so no bounds are checked.
template <bool WHOLE>
__device__ inline void store_rows(float* c, int64_t stride, const float* bias, bool add, bool aligned, const Tile& tile,
                                  const Sums& sum) {
  const int left = tile_column(0, lane_index());
  const auto exists = [&](int n) { return WHOLE || left + column_offset(n) < tile.columns; };
  float terms[8] = {};
#pragma unroll
  for (int n = 0; n < 8; ++n)
    if (bias && exists(n)) terms[n] = bias[left + column_offset(n)];
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    const int row = tile_row(r, lane_index());
    if (!WHOLE && row >= tile.rows) break;
    float* line = c + row * stride + left;
    float value[8];
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      value[n] = (add && exists(n) ? line[column_offset(n)] : 0) + sum[r][n];
      if (bias) value[n] += terms[n];
    }
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      float* to = line + column_offset(n);
      if (!exists(n)) continue;
      if (!aligned)
        *to = value[n];
      else if (n % 4 == 0)
        *reinterpret_cast<float4*>(to) = make_float4(value[n], value[n + 1], value[n + 2], value[n + 3]);
    }
  }
}

// c = start + sum, then + bias. start: c with `add`, otherwise zero. c and bias (or null) point to the tile's top left
// element.
__device__ inline void store_tile(float* c, int64_t stride, const float* bias, bool add, const Tile& tile,
                                  const Sums& sum) {
  const bool aligned =
      (reinterpret_cast<uintptr_t>(c) / sizeof(float) | static_cast<uint64_t>(stride | tile.columns)) % 4 == 0;
  if (tile.rows == TILE_ROWS && tile.columns == TILE_COLUMNS)
    store_rows<true>(c, stride, bias, add, aligned, tile, sum);
  else
    store_rows<false>(c, stride, bias, add, aligned, tile, sum);
}

// Transforms a finished tile: for each row finish = of_row(row), then finish(column) for its columns. A thread gets
// only elements that it has just stored.
template <class OfRow>
__device__ inline void finish_tile(const Tile& tile, OfRow of_row) {
#pragma unroll 1
  for (int r = 0; r < 8; ++r) {
    const int row = tile_row(r, lane_index());
    if (row >= tile.rows) break;
    const auto finish = of_row(row);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      const int column = tile_column(n, lane_index());
      if (column < tile.columns) finish(column);
    }
  }
}

// Cuts M × N outputs into tiles. Neighbouring blocks have the same rows (the larger factor) and different columns.
struct Tiling {
  int64_t M, N;

  HOST_DEVICE int64_t columns() const { return (N + TILE_COLUMNS - 1) / TILE_COLUMNS; }
  HOST_DEVICE int64_t tiles() const { return (M + TILE_ROWS - 1) / TILE_ROWS * columns(); }

  // Sets all of the tile except the batch and the terms.
  __device__ void locate(Tile& tile, int64_t number, const Factor& a, Along along_a, const Factor& b,
                         Along along_b) const {
    tile.row = number / columns() * TILE_ROWS;
    tile.column = number % columns() * TILE_COLUMNS;
    tile.rows = static_cast<int>(min(M - tile.row, static_cast<int64_t>(TILE_ROWS)));
    tile.columns = static_cast<int>(min(N - tile.column, static_cast<int64_t>(TILE_COLUMNS)));
    tile.a = {a.data + tile.row * (along_a == Along::K ? a.stride : 1), a.stride};
    tile.b = {b.data + tile.column * (along_b == Along::K ? b.stride : 1), b.stride};
  }
};

// c (M,N) = a b + bias, or c += a b + bias, as in cpu/product.h.
template <Along ALONG_A, Along ALONG_B>
struct Plain {
  static constexpr Along A = ALONG_A, B = ALONG_B;
  float* c;
  Factor a, b;
  Tiling tiling;
  int64_t K;
  Into into;
  const float* bias;  // (N) or null; only for x·weightᵀ

  int64_t blocks() const { return tiling.tiles(); }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    tiling.locate(tile, blockIdx.x, a, A, b, B);
    return tile.cut(0, K, chunk);
  }

  __device__ void store(const Tile& tile, const Sums& sum) const {
    const bool biased = B == Along::K && tile.last && bias;
    store_tile(c + tile.row * tiling.N + tile.column, tiling.N, biased ? bias + tile.column : nullptr,
               into == Into::ADD || !tile.first, tile, sum);
  }
};

}  // namespace product
}  // namespace petroglyph
