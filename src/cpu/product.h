// The matrix product c (M,N) = a (M,K) · b (K,N) behind every linear operation. product.cpp explains the blocking.
#pragma once

#include "ops/ops.h"

namespace petroglyph {

// A tile: the outputs whose partial sums stay in registers, as rows and vectors of columns.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int TILE_ROWS = 8, TILE_VECTORS = 3;  // 32 registers
#elif defined(__AVX__)
constexpr int TILE_ROWS = 6, TILE_VECTORS = 2;  // 16 registers
#else
constexpr int TILE_ROWS = 4, TILE_VECTORS = 2;
#endif
// Causal attention multiplies this many rows at a time, because fewer rows waste less work on keys that not all of them
// see. It is a whole number of tiles: a tile with fewer rows has too few chains to keep the fma units busy. Gain over
// 16 with AVX2: 10 % of attention.
constexpr int FEW_ROWS = (16 + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;

// The contract cuts every fma chain of a product after this many terms, for example rows of a weight's gradient, so
// that a GPU can compute each chunk in another thread block.
constexpr int64_t CHUNK = 1024;

// A matrix in any layout: element (i,k) is data[i·row + k·column].
struct View {
  const real* data;
  int64_t row, column;

  View from(int64_t i, int64_t k) const { return {data + i * row + k * column, row, column}; }
};

// c (M,N) = a (M,K) · b (K,N) + bias, or c += a · b + bias. A chunk's sum is added to its start, zero or c, even if it
// is the only one. Therefore a product that leaves out terms with a factor zero is bit-identical (0 + −0 = 0; the other
// factor is finite).
struct Product {
  real* c;
  int64_t c_row;
  View a, b;
  int64_t M, N, K;
  Into into;
  const real* bias = nullptr;  // (N)
};

// Computes p on the calling thread. packed: scratch of PACKED_SIZE numbers.
void multiply(const Product& p, real* packed);
extern const int64_t PACKED_SIZE;

// The same for 1 … MOST_FEW rows if the columns of b are contiguous (b.row is 1), as in a weight used as Wᵀ. Nothing is
// packed.
constexpr int MOST_FEW = 4;
void multiply_few(const Product& p);

// A factor b that several products share. It is packed once, or not at all if it is as fast to read it in place.
struct Packed {
  const real* data;
  int64_t K, columns;
  int64_t row = 0;  // if b is in place: the distance from one of its rows to the next; 0: b is packed
};
int64_t packed_size(int64_t K, int64_t columns);
// to: scratch of packed_size(K, columns) numbers. rows: the largest M of the products that follow.
Packed pack(real* to, View b, int64_t K, int64_t columns, int64_t rows = INT64_MAX);
// Computes p with b in place of p.b: with its rows first … first + p.K − 1 and its first p.N columns. Chains are cut at
// multiples of CHUNK in p's k, so `first` must be a multiple of CHUNK, or first + p.K − 1 must be in the same chunk as
// `first`.
void multiply(const Product& p, const Packed& b, int64_t first = 0);
// The same for a transposed a (a.row is 1) and p.K ≤ CHUNK: packs the rows of a too. a_packed: scratch of
// packed_rows_size(M, K).
int64_t packed_rows_size(int64_t M, int64_t K);
void multiply_transposed(const Product& p, const Packed& b, real* a_packed);

}  // namespace petroglyph
