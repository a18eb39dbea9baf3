// The matrix product behind every linear operation.
#pragma once

#include "ops/ops.h"

namespace petroglyph {

// The outputs that lie in registers while their terms are added: rows, and vectors of columns.
#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int TILE_ROWS = 8, TILE_VECTORS = 3;  // 32 registers
#elif defined(__AVX__)
constexpr int TILE_ROWS = 6, TILE_VECTORS = 2;  // 16 registers
#else
constexpr int TILE_ROWS = 4, TILE_VECTORS = 2;
#endif
// So many rows are multiplied at a time where each has few terms or columns that count, as in causal attention: whole tiles, of
// which a rest of fewer rows has too few chains to keep the arithmetic busy.
constexpr int FEW_ROWS = (16 + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;

// The contract cuts every fma chain of a product after this many terms, so that a GPU may give each piece to another
// block: 1024 rows of a weight's gradient.
constexpr int64_t CHUNK = 1024;

// A matrix in any layout: element (i,k) is data[i·row + k·column].
struct View {
  const real* data;
  int64_t row, column;

  View from(int64_t i, int64_t k) const { return {data + i * row + k * column, row, column}; }
};

// c (M,N) = a (M,K) · b (K,N) + bias, starting from zero or from what c holds. A chain's sum is always added to its start,
// so that a product that leaves out terms with a factor zero has the same bits (0 + −0 = 0; the other factor is finite).
struct Product {
  real* c;
  int64_t c_row;
  View a, b;
  int64_t M, N, K;
  Into into;
  const real* bias = nullptr;  // (N)
};

// Does it all on the calling thread. packed: PACKED_SIZE reals of scratch.
void multiply(const Product& p, real* packed);
extern const int64_t PACKED_SIZE;

// The same of 1 … MOST_FEW rows where b lies along its columns (b.row is 1), as a weight does that is used as Wᵀ: nothing is
// packed.
constexpr int MOST_FEW = 4;
void multiply_few(const Product& p);

// A factor b that several products share: packed once, all of it, unless a few rows of whole vectors are as well read where
// they are.
struct Packed {
  const real* data;
  int64_t K, columns;
  int64_t row = 0;  // from one row to the next where b is not packed
};
int64_t packed_size(int64_t K, int64_t columns);
// rows: of the factors a, where these are few.
Packed pack(real* to, View b, int64_t K, int64_t columns, int64_t rows = INT64_MAX);
// p.b is not looked at: b's rows are first … first + p.K − 1 and its columns the first p.N. The chain is cut where b's rows
// are multiples of CHUNK, so that `first` is one of those, or the last row lies in the same chunk.
void multiply(const Product& p, const Packed& b, int64_t first = 0);
// Where a is transposed (a.row is 1), and p.K ≤ CHUNK: its rows are packed as well. a_packed: packed_rows_size reals of scratch
int64_t packed_rows_size(int64_t M, int64_t K);
void multiply_transposed(const Product& p, const Packed& b, real* a_packed);

}  // namespace petroglyph
