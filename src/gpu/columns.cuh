// Sums down the columns of a matrix, as gradients of gains, biases and filters want them: every chunk of 1024 rows has
// its own threads, and the chunk sums are added in order. The twin of the loops over chunks on the CPU.
#pragma once

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {
namespace columns {

constexpr int64_t CHUNK = 1024;  // the contract's
constexpr int THREADS = 64;

// sums (chunks,columns). add(sum, n, c) returns the sum with row n of column c in it.
template <class Add>
__global__ void sum_chunks(float* sums, Add add, int64_t rows, int columns) {
  const int strips = (columns + THREADS - 1) / THREADS;
  const int64_t chunk = blockIdx.x / strips;
  const int c = static_cast<int>(blockIdx.x % strips) * THREADS + static_cast<int>(threadIdx.x);
  if (c >= columns) return;
  const int64_t end = min((chunk + 1) * CHUNK, rows);
  float sum = 0;
#pragma unroll 8
  for (int64_t n = chunk * CHUNK; n < end; ++n) sum = add(sum, n, c);
  sums[chunk * columns + c] = sum;
}

// total (columns) += the chunk sums, one after the other
static __global__ void add_sums(float* total, const float* sums, int64_t chunks, int columns) {
  const int c = static_cast<int>(blockIdx.x) * THREADS + static_cast<int>(threadIdx.x);
  if (c >= columns) return;
  float sum = total[c];
#pragma unroll 8
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * columns + c];
  total[c] = sum;
}

inline int64_t chunks_of(int64_t rows) { return (rows + CHUNK - 1) / CHUNK; }

// total (columns) += Σ over the rows. sums: scratch of chunks_of(rows) · columns
template <class Add>
void sum(float* total, float* sums, const Add& add, int64_t rows, int columns, cudaStream_t stream) {
  const int64_t chunks = chunks_of(rows);
  LAUNCH(sum_chunks<Add>, static_cast<unsigned>(chunks * blocks_for(columns, THREADS)), THREADS, 0, stream, sums, add,
         rows, columns);
  LAUNCH(add_sums, blocks_for(columns, THREADS), THREADS, 0, stream, total, sums, chunks, columns);
}

}  // namespace columns
}  // namespace petroglyph
