// The tile of a matrix product: the twin of cpu/product.cpp, on which every product of the catalogue is built.
//
// A block computes TILE_ROWS × TILE_COLUMNS outputs, a thread 8×8 of them in registers, each as the contract's chain: one
// fma after the other over ascending k, cut every CHUNK terms. Slices of DEPTH terms of both factors pass through shared
// memory, the next one copied while this one is multiplied. For each k a thread reads 8 + 8 numbers for 64 fma, in four
// 16-byte reads whose lanes share addresses, so that the reads stay behind the arithmetic. The tile is 96×64 because 192,
// the papers' width, is a multiple of both, and four blocks of three warps fill the registers of a multiprocessor.
//
// What is multiplied and where it goes is a Problem, passed to the kernel by value:
//   static constexpr Along A, B      which way its factors lie in memory
//   int64_t blocks() const           on the host: how many tiles to compute
//   bool locate(Tile&) const         on the device: the tile of this block; false where there is nothing to do
//   void store(const Tile&, const Sums&, bool first, bool last) const     takes a chunk's sums, first to last
#pragma once

#include "gpu/lanes.cuh"
#include "ops.h"

#ifndef CUDA_ON_HOST
#include <cuda_pipeline_primitives.h>
#endif

namespace petroglyph {
namespace product {

constexpr int CHUNK = 1024;  // the contract's
constexpr int TILE_ROWS = 96, TILE_COLUMNS = 64;
constexpr int THREADS = TILE_ROWS / 8 * TILE_COLUMNS / 8, WARPS = THREADS / WARP;
constexpr int BLOCKS_AT_ONCE = 4;  // on a multiprocessor: three warps for each of its quarters leave a thread 168 registers
constexpr int DEPTH = 16;
constexpr int PAD = 4;  // each term starts four banks after the one before: the transposing copies meet no conflict

// Which index of a factor is contiguous: k, or the row of a (the column of b).
enum class Along { K, OUTPUT };

// Element (r, k) stands at data[r·stride + k] or data[k·stride + r].
struct Factor {
  const float* data;
  int64_t stride;
};

// One block's part of a product.
struct Tile {
  Factor a, b;  // from the tile's first row and column and from k = 0 on
  int rows, columns;  // that exist
  int64_t k_begin, k_end;  // k_begin is a multiple of DEPTH
  int64_t row, column;  // of its corner
  int64_t batch;        // what the problem counts beside rows and columns
};

using Sums = float[8][8];

// The rows and columns of a lane: two groups of four, half of its warp's 32 × 64 outputs apart.
__device__ inline int tile_row(int r, int lane) { return warp_index() * 32 + lane / 8 * 4 + r % 4 + r / 4 * 16; }
__device__ inline int tile_column(int c, int lane) { return lane % 8 * 4 + c % 4 + c / 4 * 32; }
__device__ inline int tile_row(int r) { return tile_row(r, lane_index()); }
__device__ inline int tile_column(int c) { return tile_column(c, lane_index()); }

template <int SIZE>
struct alignas(16) Slice {
  float term[DEPTH][SIZE + PAD];
};

// Brings in slice after slice of a tile's SIZE rows. Of the last slice it copies only the terms that exist; rows that do not
// exist are replaced by the last one that does, and never used.
template <Along ALONG, int SIZE>
class Copier;

// A warp copies 4 rows × 8 terms at a time: sectors of 32 bytes at the source, 32 different banks at the destination.
template <int SIZE>
class Copier<Along::K, SIZE> {
 public:
  __device__ Copier(const Factor& factor, int size, int64_t k_begin) {
#pragma unroll
    for (int s = 0; s < STEPS; ++s) next_[s] = factor.data + min(row(s), size - 1) * factor.stride + k_begin + term();
  }

  // left: how many terms there are from here on
  __device__ void copy(Slice<SIZE>& slice, int64_t left) {
    const bool low = term() < left, high = term() + 8 < left;
#pragma unroll
    for (int s = 0; s < STEPS; ++s) {
      if (SIZE % ROWS != 0 && row(s) >= SIZE) break;
      if (low) __pipeline_memcpy_async(&slice.term[term()][row(s)], next_[s], sizeof(float));
      if (high) __pipeline_memcpy_async(&slice.term[term() + 8][row(s)], next_[s] + 8, sizeof(float));
      next_[s] += DEPTH;
    }
  }

 private:
  static constexpr int ROWS = 4 * WARPS, STEPS = (SIZE + ROWS - 1) / ROWS;
  __device__ static int term() { return lane_index() % 8; }
  __device__ static int row(int s) { return s * ROWS + warp_index() * 4 + lane_index() / 8; }

  const float* next_[STEPS];
};

// The rows of one term lie side by side; where they are aligned, pieces of 16 bytes are copied.
template <int SIZE>
class Copier<Along::OUTPUT, SIZE> {
 public:
  __device__ Copier(const Factor& factor, int size, int64_t k_begin)
      : aligned_((reinterpret_cast<uintptr_t>(factor.data) / sizeof(float) | static_cast<uint64_t>(factor.stride | size)) % 4 ==
                 0),
        size_(size),
        stride_(factor.stride),
        next_(factor.data + k_begin * factor.stride) {}

  __device__ void copy(Slice<SIZE>& slice, int64_t left) {
    if (aligned_)
      copy_pieces<4>(slice, left);
    else
      copy_pieces<1>(slice, left);
    next_ += DEPTH * stride_;
  }

 private:
  template <int LENGTH>
  __device__ void copy_pieces(Slice<SIZE>& slice, int64_t left) const {
    constexpr int PIECES = SIZE / LENGTH;                                    // of one term
    constexpr int TERMS = THREADS / PIECES > 0 ? THREADS / PIECES : 1;  // at a time
    const int thread = static_cast<int>(threadIdx.x), row = thread % PIECES * LENGTH;
    if (thread >= TERMS * PIECES) return;
    const float* from = next_ + thread / PIECES * stride_ + min(row, size_ - LENGTH);
#pragma unroll
    for (int first = 0; first < DEPTH; first += TERMS, from += TERMS * stride_) {
      const int term = first + thread / PIECES;
      if (DEPTH % TERMS != 0 && term >= DEPTH) break;
      if (term < left) __pipeline_memcpy_async(&slice.term[term][row], from, LENGTH * sizeof(float));
    }
  }

  bool aligned_;
  int size_;
  int64_t stride_;
  const float* next_;
};

__device__ inline void multiply_term(Sums& sum, const float* a, const float* b) {
  float x[8], y[8];
#pragma unroll
  for (int i = 0; i < 8; i += 4) {
    const float4 xs = *reinterpret_cast<const float4*>(a + tile_row(i));
    const float4 ys = *reinterpret_cast<const float4*>(b + tile_column(i));
    x[i] = xs.x, x[i + 1] = xs.y, x[i + 2] = xs.z, x[i + 3] = xs.w;
    y[i] = ys.x, y[i + 1] = ys.y, y[i + 2] = ys.z, y[i + 3] = ys.w;
  }
#pragma unroll
  for (int r = 0; r < 8; ++r)
#pragma unroll
    for (int c = 0; c < 8; ++c) sum[r][c] = numerics::fma(x[r], y[c], sum[r][c]);
}

// No term is added that the factors do not have: even a zero would turn a sum of −0 into +0.
__device__ inline void multiply_slice(Sums& sum, const Slice<TILE_ROWS>& a, const Slice<TILE_COLUMNS>& b, int64_t terms) {
  if (terms >= DEPTH) {
#pragma unroll 8
    for (int k = 0; k < DEPTH; ++k) multiply_term(sum, a.term[k], b.term[k]);
  } else {
#pragma unroll 1
    for (int k = 0; k < terms; ++k) multiply_term(sum, a.term[k], b.term[k]);
  }
}

template <class Problem>
__global__ void __launch_bounds__(THREADS, BLOCKS_AT_ONCE) multiply(Problem problem) {
  SHARED_ARRAY(Slice<TILE_ROWS>, a, [2]);
  SHARED_ARRAY(Slice<TILE_COLUMNS>, b, [2]);
  Tile tile;
  if (!problem.locate(tile)) return;
  Copier<Problem::A, TILE_ROWS> copier_a(tile.a, tile.rows, tile.k_begin);
  Copier<Problem::B, TILE_COLUMNS> copier_b(tile.b, tile.columns, tile.k_begin);
  int64_t left = tile.k_end - tile.k_begin;
  copier_a.copy(a[0], left);
  copier_b.copy(b[0], left);
  __pipeline_commit();
  bool first = true;
  for (int slice = 0; left > 0;) {
    Sums sum = {};
    int64_t of_chunk = min(left, CHUNK - (tile.k_end - left) % CHUNK);
    left -= of_chunk;
    for (; of_chunk > 0; of_chunk -= DEPTH) {
      __pipeline_wait_prior(0);
      __syncthreads();  // this slice has come, and everyone is done with the one before, which the next will replace
      copier_a.copy(a[slice ^ 1], left + of_chunk - DEPTH);
      copier_b.copy(b[slice ^ 1], left + of_chunk - DEPTH);
      __pipeline_commit();
      multiply_slice(sum, a[slice], b[slice], of_chunk);
      slice ^= 1;
    }
    problem.store(tile, sum, first, left == 0);
    first = false;
  }
}

template <class Problem>
void run(const Problem& problem, cudaStream_t stream) {
  if (problem.blocks() > 0) LAUNCH(multiply<Problem>, static_cast<unsigned>(problem.blocks()), THREADS, 0, stream, problem);
}

// c = start + sum, then + bias, where the start is what c holds or zero. c and bias (may be null) begin at the tile's corner.
__device__ inline void store_tile(float* c, int64_t stride, const float* bias, bool add, const Tile& tile, const Sums& sum) {
  const auto address = [](const float* at) { return reinterpret_cast<uintptr_t>(at) / sizeof(float); };
  const bool aligned = (address(c) | address(bias) | static_cast<uint64_t>(stride)) % 4 == 0;
#pragma unroll
  for (int r = 0; r < 8; ++r) {
    if (tile_row(r) >= tile.rows) break;
#pragma unroll
    for (int group = 0; group < 8; group += 4) {
      const int column = tile_column(group);
      float* to = c + tile_row(r) * stride + column;
      if (aligned && column + 4 <= tile.columns) {
        const float* s = sum[r] + group;
        float4 value = add ? *reinterpret_cast<float4*>(to) : make_float4(0, 0, 0, 0);
        value = make_float4(value.x + s[0], value.y + s[1], value.z + s[2], value.w + s[3]);
        if (bias) {
          const float4 more = *reinterpret_cast<const float4*>(bias + column);
          value = make_float4(value.x + more.x, value.y + more.y, value.z + more.z, value.w + more.w);
        }
        *reinterpret_cast<float4*>(to) = value;
        continue;
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (column + i >= tile.columns) break;
        const float value = (add ? to[i] : 0) + sum[r][group + i];
        to[i] = bias ? value + bias[column + i] : value;
      }
    }
  }
}

// Cuts M × N outputs into tiles. Neighbouring blocks take the columns of the same rows, which are the larger factor.
struct Tiling {
  int64_t M, N;

  HOST_DEVICE int64_t columns() const { return (N + TILE_COLUMNS - 1) / TILE_COLUMNS; }
  HOST_DEVICE int64_t tiles() const { return (M + TILE_ROWS - 1) / TILE_ROWS * columns(); }

  // Everything but k_begin, k_end and batch.
  __device__ void locate(Tile& tile, int64_t number, const Factor& a, Along along_a, const Factor& b, Along along_b) const {
    tile.row = number / columns() * TILE_ROWS;
    tile.column = number % columns() * TILE_COLUMNS;
    tile.rows = static_cast<int>(min(M - tile.row, static_cast<int64_t>(TILE_ROWS)));
    tile.columns = static_cast<int>(min(N - tile.column, static_cast<int64_t>(TILE_COLUMNS)));
    tile.a = {a.data + tile.row * (along_a == Along::K ? a.stride : 1), a.stride};
    tile.b = {b.data + tile.column * (along_b == Along::K ? b.stride : 1), b.stride};
  }
};

// c (M,N) = a b + bias, or c += a b + bias, as cpu/product.h has it.
template <Along ALONG_A, Along ALONG_B>
struct Plain {
  static constexpr Along A = ALONG_A, B = ALONG_B;
  float* c;
  Factor a, b;
  Tiling tiling;
  int64_t K;
  Into into;
  const float* bias;  // (N) or null

  int64_t blocks() const { return tiling.tiles(); }

  __device__ bool locate(Tile& tile) const {
    tiling.locate(tile, blockIdx.x, a, A, b, B);
    tile.k_begin = 0;
    tile.k_end = K;
    tile.batch = 0;
    return true;
  }

  __device__ void store(const Tile& tile, const Sums& sum, bool first, bool last) const {
    store_tile(c + tile.row * tiling.N + tile.column, tiling.N, last && bias ? bias + tile.column : nullptr,
               into == Into::ADD || !first, tile, sum);
  }
};

}  // namespace product
}  // namespace petroglyph
