// Sums down the columns of a matrix, for gradients of gains, biases and filters. Every chunk of 1024 rows has its own
// threads. The chunk sums are then added in order. The GPU version of cpu/columns.h.
#pragma once

#include <algorithm>

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {
namespace columns {

constexpr int THREADS = 64;

// sums (chunks,columns). add(sum, n, c) returns `sum` plus the term of row n and column c.
template <class Add>
__global__ void sum_chunks(float* sums, Add add, int64_t rows, int columns) {
  const int strips = (columns + THREADS - 1) / THREADS;
  const int64_t chunk = blockIdx.x / strips;
  const int c = static_cast<int>(blockIdx.x % strips) * THREADS + static_cast<int>(threadIdx.x);
  if (c >= columns) return;
  const int64_t end = min((chunk + 1) * CHUNK, rows);
  float sum = 0;
#pragma unroll 32
  for (int64_t n = chunk * CHUNK; n < end; ++n) sum = add(sum, n, c);
  sums[chunk * columns + c] = sum;
}

constexpr int ADD_THREADS = 128;

// total (size) += the chunk sums (chunks,size), one after the other
static __global__ void add_sums(float* total, const float* sums, int64_t chunks, int64_t size) {
  const int64_t i = element_of_thread<ADD_THREADS>();
  if (i >= size) return;
  float sum = total[i];
#pragma unroll 8
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * size + i];
  total[i] = sum;
}

inline void add(float* total, const float* sums, int64_t chunks, int64_t size, cudaStream_t stream) {
  LAUNCH(add_sums, blocks_for(size, ADD_THREADS), ADD_THREADS, 0, stream, total, sums, chunks, size);
}

inline int64_t chunks_of(int64_t rows) { return (rows + CHUNK - 1) / CHUNK; }

// The number of chunks whose sums (`size` numbers each) fit the scratch at once. The caller loops over the rest.
inline int64_t chunks_at_once(const ScratchLimits& limits, int64_t rows, int64_t size) {
  return std::clamp<int64_t>(limits.sums / size, 1, chunks_of(rows));
}

// total (columns) += Σ over the rows. sums: scratch of chunks_of(rows) · columns
template <class Add>
void sum(float* total, float* sums, const Add& term, int64_t rows, int columns, cudaStream_t stream) {
  const int64_t chunks = chunks_of(rows);
  LAUNCH(sum_chunks<Add>, grid_blocks(chunks * blocks_for(columns, THREADS)), THREADS, 0, stream, sums, term, rows,
         columns);
  columns::add(total, sums, chunks, columns, stream);
}

}  // namespace columns
}  // namespace petroglyph
