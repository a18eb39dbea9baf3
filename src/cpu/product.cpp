// The blocked matrix product. Every output is one chain of fused multiply-adds over ascending k, cut every CHUNK terms,
// whatever the blocking: the blocks divide outputs among registers and threads, never the terms of one output.
//
// A tile of TILE_ROWS × TILE_COLUMNS outputs lives in registers while k runs. Each k takes one row of b, already packed
// side by side with its neighbours, and one number of a for each row of the tile, broadcast. At 8×48 on AVX-512 that is
// 24 independent chains (two fma units with a latency of 4 need 8), 3 loads and 8 broadcasts for 24 fmas, so that the
// loads stay behind the arithmetic.

#include "cpu/product.h"

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/parallel.h"
#include "cpu/simd.h"

namespace petroglyph {

namespace {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr int TILE_ROWS = 8, TILE_VECTORS = 3;  // 32 registers
#elif defined(__AVX__)
constexpr int TILE_ROWS = 6, TILE_VECTORS = 2;  // 16 registers
#else
constexpr int TILE_ROWS = 4, TILE_VECTORS = 2;
#endif
constexpr int TILE_COLUMNS = TILE_VECTORS * VECTOR_WIDTH;
constexpr int64_t BLOCK_ROWS = 32 * TILE_ROWS;  // rows of one task: enough to pay for packing b again in each

// sums (ROWS, TILE_COLUMNS) = Σ_k a_ik b_k over k < K; b packed (K, TILE_COLUMNS)
template <int ROWS>
void multiply_tile(real* sums, View a, const real* b, int64_t K) {
  Vector sum[ROWS][TILE_VECTORS] = {};
  for (int64_t k = 0; k < K; ++k, b += TILE_COLUMNS) {
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) {
      const Vector x = broadcast(a.data[i * a.row + k * a.column]);
#pragma GCC unroll 3
      for (int v = 0; v < TILE_VECTORS; ++v)
        sum[i][v] = fma(x, load(b + v * VECTOR_WIDTH), sum[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 3
    for (int v = 0; v < TILE_VECTORS; ++v) store(sums + i * TILE_COLUMNS + v * VECTOR_WIDTH, sum[i][v]);
}

void multiply_rows(int rows, real* sums, View a, const real* b, int64_t K) {
  switch (rows) {
    case 8: return multiply_tile<8>(sums, a, b, K);
    case 7: return multiply_tile<7>(sums, a, b, K);
    case 6: return multiply_tile<6>(sums, a, b, K);
    case 5: return multiply_tile<5>(sums, a, b, K);
    case 4: return multiply_tile<4>(sums, a, b, K);
    case 3: return multiply_tile<3>(sums, a, b, K);
    case 2: return multiply_tile<2>(sums, a, b, K);
    default: return multiply_tile<1>(sums, a, b, K);
  }
}

// packed (K, TILE_COLUMNS) = columns of b, with zeros beside the last one
void pack(real* packed, View b, int64_t K, int columns) {
  if (columns < TILE_COLUMNS) std::fill_n(packed, K * TILE_COLUMNS, real(0));
  if (b.column == 1) {
    for (int64_t k = 0; k < K; ++k) std::copy_n(b.data + k * b.row, columns, packed + k * TILE_COLUMNS);
    return;
  }
  constexpr int64_t STRIP = 16;  // a transposition: strips of one cache line along k keep both sides in L1
  for (int64_t strip = 0; strip < K; strip += STRIP)
    for (int n = 0; n < columns; ++n)
      for (int64_t k = strip; k < std::min(strip + STRIP, K); ++k)
        packed[k * TILE_COLUMNS + n] = b.data[k * b.row + n * b.column];
}

// c = start + sums, then + bias
void store_tile(const Product& p, const real* sums, int64_t row, int rows, int64_t column, int columns, bool add, bool last) {
  for (int i = 0; i < rows; ++i, sums += TILE_COLUMNS) {
    real* c = p.c + (row + i) * p.c_row + column;
    for (int n = 0; n < columns; ++n) c[n] = (add ? c[n] : 0) + sums[n];
    if (last && p.bias)
      for (int n = 0; n < columns; ++n) c[n] += p.bias[column + n];
  }
}

// One column of tiles, `columns` wide, for the rows row_begin … row_end−1.
void multiply_block(const Product& p, int64_t row_begin, int64_t row_end, int64_t column, int columns, real* packed) {
  alignas(64) real sums[TILE_ROWS * TILE_COLUMNS];
  for (int64_t k = 0; k < p.K; k += CHUNK) {
    const int64_t depth = std::min(CHUNK, p.K - k);
    pack(packed, {p.b.data + k * p.b.row + column * p.b.column, p.b.row, p.b.column}, depth, columns);
    for (int64_t row = row_begin; row < row_end; row += TILE_ROWS) {
      const int rows = static_cast<int>(std::min<int64_t>(TILE_ROWS, row_end - row));
      multiply_rows(rows, sums, {p.a.data + row * p.a.row + k * p.a.column, p.a.row, p.a.column}, packed, depth);
      store_tile(p, sums, row, rows, column, columns, k > 0 || p.into == Into::ADD, k + CHUNK >= p.K);
    }
  }
}

}  // namespace

const int64_t PACKED_SIZE = CHUNK * TILE_COLUMNS;

void multiply(const Product& p, real* packed) {
  for (int64_t column = 0; column < p.N; column += TILE_COLUMNS)
    multiply_block(p, 0, p.M, column, static_cast<int>(std::min<int64_t>(TILE_COLUMNS, p.N - column)), packed);
}

void Cpu::product(const Product& p) {
  reserve_scratch(PACKED_SIZE);
  const int64_t strips = (p.N + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const int64_t blocks = (p.M + BLOCK_ROWS - 1) / BLOCK_ROWS;
  parallel(threads_, strips * blocks, 1, [&](int64_t task, int64_t, int thread) {
    const int64_t row = task / strips * BLOCK_ROWS, column = task % strips * TILE_COLUMNS;
    const int columns = static_cast<int>(std::min<int64_t>(TILE_COLUMNS, p.N - column));
    multiply_block(p, row, std::min(row + BLOCK_ROWS, p.M), column, columns, scratch(thread));
  });
}

}  // namespace petroglyph
