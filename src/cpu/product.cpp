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
// A block of a stays in the L2 cache while the strips of b, one tile wide, go over it.
constexpr int64_t BLOCK_SIZE = 1 << 18;
constexpr int64_t MOST_ROWS = 128 * TILE_ROWS, FEWEST_ROWS = 4 * TILE_ROWS;
constexpr int64_t MOST_STRIPS = 4;

int64_t rows_of_block(int64_t K) {
  return std::min(MOST_ROWS, std::max(FEWEST_ROWS, BLOCK_SIZE / std::min(CHUNK, K) / TILE_ROWS * TILE_ROWS));
}

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

// packed = the rows of a, a tile's beside each other for every k: (rows/TILE_ROWS, K, TILE_ROWS). Where a's rows run along
// memory there is nothing to gain; across it (a weight's gradient) each k would touch another page.
void pack_rows(real* packed, View a, int64_t rows, int64_t K) {
  for (int64_t row = 0; row < rows; row += TILE_ROWS) {
    const int64_t count = std::min<int64_t>(TILE_ROWS, rows - row);
    for (int64_t k = 0; k < K; ++k, packed += TILE_ROWS)
      for (int64_t i = 0; i < count; ++i) packed[i] = a.data[(row + i) * a.row + k * a.column];
  }
}

struct Block {
  int64_t row_begin, row_end, column_begin, column_end;
};

// scratch: PACKED_SIZE reals
void multiply_block(const Product& p, const Block& block, real* scratch) {
  alignas(64) real sums[TILE_ROWS * TILE_COLUMNS];
  real *packed_b = scratch, *packed_a = scratch + CHUNK * TILE_COLUMNS;
  const int64_t rows = block.row_end - block.row_begin;
  const bool across = p.a.column != 1 && rows > 1;
  for (int64_t k = 0; k < p.K; k += CHUNK) {
    const int64_t depth = std::min(CHUNK, p.K - k);
    const View a{p.a.data + block.row_begin * p.a.row + k * p.a.column, p.a.row, p.a.column};
    if (across) pack_rows(packed_a, a, rows, depth);
    for (int64_t column = block.column_begin; column < block.column_end; column += TILE_COLUMNS) {
      const int columns = static_cast<int>(std::min<int64_t>(TILE_COLUMNS, block.column_end - column));
      pack(packed_b, {p.b.data + k * p.b.row + column * p.b.column, p.b.row, p.b.column}, depth, columns);
      for (int64_t row = 0; row < rows; row += TILE_ROWS) {
        const int count = static_cast<int>(std::min<int64_t>(TILE_ROWS, rows - row));
        const View tile = across ? View{packed_a + row * depth, 1, TILE_ROWS} : View{a.data + row * a.row, a.row, a.column};
        multiply_rows(count, sums, tile, packed_b, depth);
        store_tile(p, sums, block.row_begin + row, count, column, columns, k > 0 || p.into == Into::ADD, k + CHUNK >= p.K);
      }
    }
  }
}

}  // namespace

const int64_t PACKED_SIZE = CHUNK * TILE_COLUMNS + std::max(BLOCK_SIZE, CHUNK * FEWEST_ROWS);

void multiply(const Product& p, real* scratch) {
  const int64_t rows = rows_of_block(p.K);
  for (int64_t row = 0; row < p.M; row += rows) multiply_block(p, {row, std::min(row + rows, p.M), 0, p.N}, scratch);
}

void Cpu::product(const Product& p) {
  reserve_scratch(PACKED_SIZE);
  const auto pieces = [](int64_t size, int64_t piece) { return (size + piece - 1) / piece; };
  int64_t rows = std::min(rows_of_block(p.K), pieces(p.M, TILE_ROWS) * TILE_ROWS), strips = MOST_STRIPS;
  // Smaller blocks until all threads are busy, first along the side whose other side is cheap to pack again.
  const int64_t wanted = threads_.count == 1 ? 1 : 2 * threads_.count;
  const bool rows_first = p.a.column != 1;
  while (pieces(p.M, rows) * pieces(p.N, strips * TILE_COLUMNS) < wanted) {
    if (rows > FEWEST_ROWS && (rows_first || strips == 1))
      rows = pieces(rows / TILE_ROWS, 2) * TILE_ROWS;
    else if (strips > 1)
      strips /= 2;
    else
      break;
  }
  const int64_t columns = strips * TILE_COLUMNS, across = pieces(p.N, columns);
  parallel(threads_, pieces(p.M, rows) * across, 1, [&](int64_t task, int64_t, int thread) {
    const int64_t row = task / across * rows, column = task % across * columns;
    multiply_block(p, {row, std::min(row + rows, p.M), column, std::min(column + columns, p.N)}, scratch(thread));
  });
}

}  // namespace petroglyph
