// The blocked matrix product: c (M,N) = a (M,K) · b (K,N) + bias (N). The loop that defines one output is chain_dot()
// in reference/sums.h.
//
// Each output is one chain of fused multiply-adds over ascending k, cut every CHUNK terms. Blocking divides the outputs
// among registers and threads. It never divides the terms of one output, so it cannot change a bit.
//
// A tile is TILE_ROWS rows by up to TILE_VECTORS vectors of outputs. Its partial sums stay in registers for all k. For
// each k the tile loads one row of the packed b, and broadcasts one number of a for each of its rows. With AVX-512 a
// tile is 8×48: 24 independent chains (two fma units with a latency of 4 need 8), with 3 loads and 8 broadcasts for 24
// fmas, so the arithmetic is the bottleneck, not the loads.
//
//                    b (K,N), packed
//                     strip 0   1   2      a strip is 3 vectors wide: K rows of 48 numbers
//                    ┌───────┬───┬───┐
//                  K │       │   │   │
//        a (M,K)     └───────┴───┴───┘
//      ┌─────────┐    c (M,N)                a block is 8 tiles high: a task's, which takes it strip after strip
//      ├─ tile ──┤    8 × 48 ──────────      a tile is 8 rows high: its 24 vectors of sums are stored once
//      └─────────┘
//
// Prefetching (gain: 7 to 10 % of a Transformer's step on a Zen 5, 5 to 20 % of a product on Xeons). The rows of a
// block are read from memory once and used for all strips. While a tile computes, it prefetches a few cache lines of
// the thread's next block into L2. The number of prefetches is limited because a core can wait for only ten to sixteen
// cache misses at a time: more prefetches would delay the loads that the tile needs now.
//
// Packing. The columns of b that a tile uses (a strip) are copied so that they are contiguous. If b is a weight used as
// Wᵀ, squares of it are transposed in registers; copying single numbers took a fifth of the time. If a is transposed
// (the dyᵀ of a weight's gradient), consecutive k are a whole row apart, which halves the speed; so its rows are packed
// as well.

#include "cpu/product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu/cpu.h"
#include "cpu/loops.h"
#include "cpu/simd.h"

namespace petroglyph {

namespace {

constexpr int WIDTH = VECTOR_WIDTH;
constexpr int TILE_COLUMNS = TILE_VECTORS * WIDTH;
constexpr int64_t LINE = 64 / sizeof(real);  // numbers in a cache line

// The columns of b that one tile uses. The strips of a matrix are as equal in width as whole vectors allow: 64 columns
// are two strips of 32, because 48 and 16 would leave the second one with too few chains in flight.
struct Strip {
  int64_t column;
  int columns, vectors;

  int width() const { return vectors * WIDTH; }
};

// Calls f with n as a compile-time constant, 1 ≤ n ≤ MOST.
template <int MOST, class F>
void with_constant(int64_t n, F f) {
  if constexpr (MOST > 1)
    if (n < MOST) return with_constant<MOST - 1>(n, f);
  f(std::integral_constant<int, MOST>());
}

int64_t vectors_of(int64_t columns) { return (columns + WIDTH - 1) / WIDTH; }
int64_t strips_of(int64_t columns) { return (vectors_of(columns) + TILE_VECTORS - 1) / TILE_VECTORS; }

Strip strip_of(int64_t columns, int64_t number) {
  const int64_t vectors = vectors_of(columns), strips = strips_of(columns);
  const int64_t begin = vectors * number / strips, end = vectors * (number + 1) / strips;
  return {begin * WIDTH, static_cast<int>(std::min(end * WIDTH, columns) - begin * WIDTH),
          static_cast<int>(end - begin)};
}

// ---- Packing --------------------------------------------------------------------------------------------------------

template <int... L>
inline void interleave(Vector& a, Vector& b, std::integer_sequence<int, L...>) {
#ifdef __clang__
  const Vector low = __builtin_shufflevector(a, b, (L / 2 + L % 2 * WIDTH)...);
  const Vector high = __builtin_shufflevector(a, b, (WIDTH / 2 + L / 2 + L % 2 * WIDTH)...);
#else  // g++ has __builtin_shufflevector only from version 12 on
  typedef std::conditional_t<sizeof(real) == 4, int32_t, int64_t> Mask __attribute__((vector_size(VECTOR_BYTES)));
  const Vector low = __builtin_shuffle(a, b, Mask{(L / 2 + L % 2 * WIDTH)...});
  const Vector high = __builtin_shuffle(a, b, Mask{(WIDTH / 2 + L / 2 + L % 2 * WIDTH)...});
#endif
  a = low;
  b = high;
}

// Transposes WIDTH × WIDTH numbers. Interleaving row i with row i + WIDTH/2 moves the highest bit of the row index to
// the lowest place of the combined index (row, column). log2(WIDTH) such rounds exchange the row's bits with the
// column's.
inline void transpose(Vector (&rows)[WIDTH]) {
#pragma GCC unroll 4
  for (int round = 1; round < WIDTH; round *= 2) {
    Vector next[WIDTH];
#pragma GCC unroll 8
    for (int i = 0; i < WIDTH / 2; ++i) {
      next[2 * i] = rows[i];
      next[2 * i + 1] = rows[i + WIDTH / 2];
      interleave(next[2 * i], next[2 * i + 1], std::make_integer_sequence<int, WIDTH>());
    }
#pragma GCC unroll 16
    for (int i = 0; i < WIDTH; ++i) rows[i] = next[i];
  }
}

// packed (K, VECTORS·WIDTH) = VECTORS whole vectors of each row of b, whose rows are contiguous
template <int VECTORS>
void copy_vectors(real* packed, View b, int64_t K) {
  constexpr int64_t ROWS_AHEAD = 16;
  for (int64_t k = 0; k < K; ++k)
#pragma GCC unroll 3
    for (int v = 0; v < VECTORS; ++v) {
      const real* from = b.data + k * b.row + v * WIDTH;
      __builtin_prefetch(from + ROWS_AHEAD * b.row);
      store(packed + (k * VECTORS + v) * WIDTH, load(from));
    }
}

// Packs whole squares along k, as many as fit in K; returns the number of terms that are packed.
int64_t transpose_squares(real* packed, View b, int64_t K, const Strip& strip) {
  const int64_t done = K / WIDTH * WIDTH;
  for (int n = 0; n < strip.width(); n += WIDTH)
    for (int64_t k = 0; k < done; k += WIDTH) {  // k is the contiguous index of b
      alignas(VECTOR_BYTES) Vector rows[WIDTH];
      for (int i = 0; i < WIDTH; ++i) {
        const real* from = b.data + k + (n + i) * b.column;
        __builtin_prefetch(from + WIDTH * b.column);
        rows[i] = n + i < strip.columns ? load(from) : Vector{};
      }
      transpose(rows);
      for (int i = 0; i < WIDTH; ++i) store(packed + (k + i) * strip.width() + n, rows[i]);
    }
  return done;
}

// packed (K, width) = the strip's columns of b, padded with zeros
void pack_strip(real* packed, View b, int64_t K, const Strip& strip) {
  const int width = strip.width();
  if (b.column == 1 && strip.columns == width)
    return with_constant<TILE_VECTORS>(strip.vectors, [&](auto vectors) { copy_vectors<vectors>(packed, b, K); });
  for (int64_t k = b.row == 1 ? transpose_squares(packed, b, K, strip) : 0; k < K; ++k)
    for (int n = 0; n < width; ++n) packed[k * width + n] = n < strip.columns ? b.data[k * b.row + n * b.column] : 0;
}

// sums (M) += Σ_k a_ik of a transposed a
void add_terms(real* sums, View a, int64_t M, int64_t K) {
  constexpr int VECTORS = 4;
  int64_t i = 0;
  for (; i + VECTORS * WIDTH <= M; i += VECTORS * WIDTH) {
    Vector sum[VECTORS];
    for (int v = 0; v < VECTORS; ++v) sum[v] = load(sums + i + v * WIDTH);
    for (int64_t k = 0; k < K; ++k)
      for (int v = 0; v < VECTORS; ++v) sum[v] = sum[v] + load(a.data + k * a.column + i + v * WIDTH);
    for (int v = 0; v < VECTORS; ++v) store(sums + i + v * WIDTH, sum[v]);
  }
  for (int64_t k = 0; k < K; ++k)
    for (int64_t j = i; j < M; ++j) sums[j] += a.data[k * a.column + j];
}

// packed (tiles, K, TILE_ROWS) = the rows of a transposed a, tile after tile. sums (M), unless null, += Σ_k a_ik.
void pack_rows(real* packed, View a, int64_t M, int64_t K, real* sums = nullptr) {
  const int64_t whole = M / TILE_ROWS * TILE_ROWS;
  constexpr int64_t STRIP = VECTOR_BYTES == 64 ? 64 : 16;  // terms that stay in L1 while all tiles copy their rows
  for (int64_t strip = 0; strip < K; strip += STRIP) {
    if (sums) add_terms(sums, a.from(0, strip), M, std::min(STRIP, K - strip));
    for (int64_t tile = 0; tile < whole; tile += TILE_ROWS)
      for (int64_t k = strip; k < std::min(strip + STRIP, K); ++k) {
        const real* from = a.data + k * a.column + tile;
        // the hardware prefetcher does not follow rows that are a page apart
        if (tile % LINE < TILE_ROWS && k + STRIP < K) __builtin_prefetch(from + STRIP * a.column, 0, 2);
        std::memcpy(packed + tile * K + k * TILE_ROWS, from, TILE_ROWS * sizeof(real));
      }
  }
  for (int64_t k = 0; k < K; ++k)
    for (int64_t i = whole; i < M; ++i) packed[whole * K + k * TILE_ROWS + i - whole] = a.data[k * a.column + i];
}

// A weight's gradient processes a chunk in pieces of at most PIECE terms; each piece continues the chains of the one
// before. Then a strip (16 or 24 KB) stays in L1 and the packed rows of a task stay in L2, and the next piece is
// prefetched while this one is multiplied. Gain: 7 to 12 % of a linear layer's backward pass with AVX2, 1 to 2 %
// of a Transformer's step on a Zen 5, whose caches hold more.
constexpr int64_t PIECE = VECTOR_BYTES == 64 ? 128 : 256;
static_assert(CHUNK % PIECE == 0, "no piece lies in two chunks");

// ---- One tile -------------------------------------------------------------------------------------------------------

// Where a tile stores its sums: c = start + sums, and + bias after the last chunk.
struct Target {
  real* c;
  int64_t row;
  bool add;          // the start is the value in c; otherwise zero
  const real* bias;  // or null
  // Partial sums (ROWS,VECTORS·WIDTH) of this chunk's earlier pieces, and those for the next piece. Null: there is
  // none.
  const real* before = nullptr;
  real* after = nullptr;
};

// Stores the first `columns` columns of a tile whose last vector is incomplete. Rows of sums are `step` numbers apart.
// It is not inlined, because a copy in each kind of tile made this file's machine code 1.5 times as large with g++ and
// 2.4 times with clang++, and no faster.
__attribute__((noinline)) void store_part(const Target& to, int rows, int columns, const real* sums, int step) {
  const Target copy = to;  // tells the compiler that stores to c do not change it
  for (int i = 0; i < rows; ++i) {
    real* const c = copy.c + i * copy.row;
    const real* const sum = sums + i * step;
    int n = 0;
    for (; n + WIDTH <= columns; n += WIDTH) {
      Vector total = (copy.add ? load(c + n) : Vector{}) + load(sum + n);
      if (copy.bias) total = total + load(copy.bias + n);
      store(c + n, total);
    }
    for (; n < columns; ++n) {
      c[n] = (copy.add ? c[n] : 0) + sum[n];
      if (copy.bias) c[n] += copy.bias[n];
    }
  }
}

// These three functions are always inlined: the compiler keeps a tile's sums in registers only if their address is
// passed to no function. Where clang++ did not inline the last one, it loaded and stored each sum with each term, at a
// third of the speed.

template <int ROWS, int VECTORS>
inline __attribute__((always_inline)) void load_sums(const real* from, Vector (&sum)[ROWS][VECTORS]) {
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 3
    for (int v = 0; v < VECTORS; ++v) sum[i][v] = load(from + (i * VECTORS + v) * WIDTH);
}

template <int ROWS, int VECTORS>
inline __attribute__((always_inline)) void store_sums(real* to, const Vector (&sum)[ROWS][VECTORS]) {
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 3
    for (int v = 0; v < VECTORS; ++v) store(to + (i * VECTORS + v) * WIDTH, sum[i][v]);
}

template <int ROWS, int VECTORS>
inline __attribute__((always_inline)) void store_sums(const Target& to, int columns,
                                                      const Vector (&sum)[ROWS][VECTORS]) {
  if (columns < VECTORS * WIDTH) {
    real sums[ROWS * VECTORS * WIDTH];
    store_sums(sums, sum);
    return store_part(to, ROWS, columns, sums, VECTORS * WIDTH);
  }
  const Target copy = to;  // tells the compiler that stores to c do not change it
  Vector bias[VECTORS] = {};
  if (copy.bias)
    for (int v = 0; v < VECTORS; ++v) bias[v] = load(copy.bias + v * WIDTH);
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i)
#pragma GCC unroll 3
    for (int v = 0; v < VECTORS; ++v) {
      real* c = copy.c + i * copy.row + v * WIDTH;
      Vector total = (copy.add ? load(c) : Vector{}) + sum[i][v];
      if (copy.bias) total = total + bias[v];
      store(c, total);
    }
}

// A strip of b, packed or in place: the row of each k, `step` numbers after the row of k − 1.
struct Rows {
  const real* data;
  int64_t step;
};

// What a tile prefetches into L2: with every GROUP terms one cache line at each of up to two addresses, which then
// advance by their steps (bytes). With AVX2 a term takes so few cycles that counting terms costs more than prefetching
// gains; there each term prefetches one line from one address.
struct Prefetch {
  const void *first = nullptr, *second = nullptr;
  int64_t first_step = 0, second_step = 0;
};
constexpr int64_t GROUP = VECTOR_BYTES == 64 ? 4 : 1;
constexpr int64_t PLACES = GROUP > 1 ? 2 : 1;

struct NoPrefetch {
  Prefetch operator()(int64_t) const { return {}; }
};

// Prefetches the lines of `next`, and the tile's own outputs in c, one row for each group of terms.
template <int ROWS, int VECTORS>
inline __attribute__((always_inline)) void prefetch_lines(const Prefetch& next, const Target& to, int64_t group) {
  if (next.first) __builtin_prefetch(static_cast<const char*>(next.first) + group * next.first_step, 0, 2);
  if (next.second) __builtin_prefetch(static_cast<const char*>(next.second) + group * next.second_step, 0, 2);
  const real* const row = to.c + std::min<int64_t>(group, ROWS - 1) * to.row;
#pragma GCC unroll 3
  for (int v = 0; v < VECTORS; ++v) __builtin_prefetch(row + v * WIDTH, 0, 2);
}

// A tile's sums Σ_k a_ik b_k over k < K. ALONG_K: a.column is 1; otherwise a.row is 1. GROUPS: terms are counted, and
// every GROUP of them prefetches.
template <int ROWS, int VECTORS, bool ALONG_K, bool GROUPS>
void multiply_tile(const Target& to, int columns, View a, Rows b, int64_t K, const Prefetch& next) {
  if (!GROUPS)
    for (int i = 0; i < ROWS; ++i)
      for (int v = 0; v < VECTORS; ++v) __builtin_prefetch(to.c + i * to.row + v * WIDTH, 1);
  constexpr int EACH = 3;  // rows addressed from one pointer: at offsets 0, 1 and 2 times the distance between rows
  constexpr int POINTERS = (ROWS + EACH - 1) / EACH;
  const int64_t row = ALONG_K ? a.row : 1, step = ALONG_K ? 1 : a.column;
  const real* x[POINTERS];
  for (int n = 0; n < POINTERS; ++n) x[n] = a.data + n * EACH * row;
  const char* line = static_cast<const char*>(next.first ? next.first : b.data);  // with each term
  // clang++ ignores through a reference that Vector has a lower alignment; so the array itself is aligned.
  alignas(VECTOR_BYTES) Vector sum[ROWS][VECTORS] = {};
  constexpr bool PIECES = !ALONG_K;  // only a weight's gradient has pieces; this test in all tiles cost 2 to 4 %
  if (PIECES && to.before) load_sums(to.before, sum);
  const real *from = b.data, *const end = from + K * b.step;
  for (int64_t k = 0; from != end; from += b.step, ++k) {
    if constexpr (GROUP == 1) {
      __builtin_prefetch(line, 0, 2);
      line += next.first_step;
    }
    if (GROUPS && k % GROUP == 0) prefetch_lines<ROWS, VECTORS>(next, to, k / GROUP);
    Vector y[VECTORS];
#pragma GCC unroll 3
    for (int v = 0; v < VECTORS; ++v) y[v] = load(from + v * WIDTH);
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) {
      const Vector factor = broadcast(x[i / EACH][i % EACH * row]);
#pragma GCC unroll 3
      for (int v = 0; v < VECTORS; ++v) sum[i][v] = fma(factor, y[v], sum[i][v]);
    }
#pragma GCC unroll 3
    for (int n = 0; n < POINTERS; ++n) x[n] += step;
  }
  if (PIECES && to.after) return store_sums(to.after, sum);
  store_sums(to, columns, sum);
}

template <bool ALONG_K, bool PREFETCH>
void multiply_tile_of(int rows, int vectors, const Target& to, int columns, View a, Rows b, int64_t K,
                      const Prefetch& next) {
  with_constant<TILE_ROWS>(rows, [&](auto r) {
    with_constant<TILE_VECTORS>(vectors, [&](auto v) {
      multiply_tile<r, v, ALONG_K, PREFETCH && GROUP != 1 && r == TILE_ROWS>(to, columns, a, b, K, next);
    });
  });
}

// ---- A row or a few -------------------------------------------------------------------------------------------------

// With few rows each number of a weight is used only a few times, so packing would take longer than the product.
// Instead, squares of the weight are transposed in registers and multiplied there. Together with packed_weights.h this
// saves 35 to 65 % of the time of a generated token.

constexpr int FEW_VECTORS = 2;  // vectors of columns at a time

// c for ROWS rows and FEW_VECTORS·WIDTH columns from `column` on, over all terms.
template <int ROWS>
void multiply_columns(const Product& p, int64_t column) {
  constexpr int COLUMNS = FEW_VECTORS * WIDTH;
  constexpr int64_t TERMS_AHEAD = 128;
  const int64_t ahead = p.K < TERMS_AHEAD ? COLUMNS * p.b.column : TERMS_AHEAD;
  const real* from[COLUMNS];  // columns beyond the last one repeat it; their sums are not stored
  for (int n = 0; n < COLUMNS; ++n) from[n] = p.b.data + std::min(column + n, p.N - 1) * p.b.column;
  const int columns = static_cast<int>(std::min<int64_t>(COLUMNS, p.N - column));
  const auto factor = [&](int row, int64_t k) { return broadcast(p.a.data[row * p.a.row + k * p.a.column]); };
  for (int64_t begin = 0; begin < p.K; begin += CHUNK) {
    const int64_t end = std::min(begin + CHUNK, p.K);
    alignas(VECTOR_BYTES) Vector sum[ROWS][FEW_VECTORS] = {};
    int64_t k = begin;
    for (; k + WIDTH <= end; k += WIDTH)
#pragma GCC unroll 4
      for (int v = 0; v < FEW_VECTORS; ++v) {
        alignas(VECTOR_BYTES) Vector terms[WIDTH];
#pragma GCC unroll 16
        for (int l = 0; l < WIDTH; ++l) {
          __builtin_prefetch(from[v * WIDTH + l] + k + ahead);
          terms[l] = load(from[v * WIDTH + l] + k);
        }
        transpose(terms);
#pragma GCC unroll 4
        for (int row = 0; row < ROWS; ++row)
#pragma GCC unroll 16
          for (int l = 0; l < WIDTH; ++l) sum[row][v] = fma(factor(row, k + l), terms[l], sum[row][v]);
      }
    for (; k < end; ++k)
      for (int v = 0; v < FEW_VECTORS; ++v) {
        Vector term = {};
        for (int l = 0; l < WIDTH; ++l) term[l] = from[v * WIDTH + l][k];
        for (int row = 0; row < ROWS; ++row) sum[row][v] = fma(factor(row, k), term, sum[row][v]);
      }
    const real* const bias = p.bias && end == p.K ? p.bias + column : nullptr;
    store_sums({p.c + column, p.c_row, begin > 0 || p.into == Into::ADD, bias}, columns, sum);
  }
}

// ---- Blocks ---------------------------------------------------------------------------------------------------------

// At most this many rows of b stay in L1 without packing, whatever the distance between them.
constexpr int64_t IN_PLACE_ROWS = 64;

// Adds the terms k … k+depth−1 of one strip to the rows row_begin … row_end−1 of c. a_tiles: those rows of a, packed,
// or null. sums (tiles, TILE_ROWS, strip width): the partial sums between the pieces of a chunk. Only columns below p.N
// are stored. prefetch(t): what tile t prefetches.
template <class F>
void multiply_strip(const Product& p, int64_t row_begin, int64_t row_end, const Strip& strip, int64_t k, int64_t depth,
                    Rows b, const real* a_tiles, F prefetch, real* sums = nullptr) {
  const bool last = k + depth == p.K;
  const bool begins = k % CHUNK == 0, ends = last || (k + depth) % CHUNK == 0;
  const int columns = static_cast<int>(std::min<int64_t>(strip.columns, p.N - strip.column));
  const int vectors = static_cast<int>(vectors_of(columns));  // fewer than the strip's if p.N ends within the strip
  for (int64_t row = row_begin; row < row_end; row += TILE_ROWS) {
    const int rows = static_cast<int>(std::min<int64_t>(TILE_ROWS, row_end - row));
    const View a = a_tiles ? View{a_tiles + (row - row_begin) * depth, 1, TILE_ROWS} : p.a.from(row, k);
    Target to{p.c + row * p.c_row + strip.column, p.c_row, k >= CHUNK || p.into == Into::ADD,
              last && p.bias ? p.bias + strip.column : nullptr};
    if (!begins) to.before = sums + (row - row_begin) * strip.width();
    if (!ends) to.after = sums + (row - row_begin) * strip.width();
    constexpr bool PREFETCH = !std::is_same_v<F, NoPrefetch>;
    const Prefetch next = prefetch((row - row_begin) / TILE_ROWS);
    if (a.column == 1)
      multiply_tile_of<true, PREFETCH>(rows, vectors, to, columns, a, b, depth, next);
    else
      multiply_tile_of<false, PREFETCH>(rows, vectors, to, columns, a, b, depth, next);
  }
}

// What the tiles of a weight's gradient prefetch while they multiply strip s of the piece that begins at k: the next
// strip of b (after the last strip, the first one of the next piece) and, if a tile prefetches from two addresses, a
// part of the next piece's rows of a. Both consist of columns of cache lines, PIECE lines high. GROUP tiles prefetch
// one column of each.
class NextPiece {
 public:
  NextPiece(const Product& p, int64_t row_begin, int64_t row_end, int64_t s, int64_t strip_begin, int64_t strip_end,
            int64_t k) {
    const bool another = s + 1 < strip_end, more = k + 2 * PIECE <= p.K;
    if (p.b.column == 1 && (another || more)) {
      b_ = p.b.from(another ? k : k + PIECE, strip_of(p.N, another ? s + 1 : strip_begin).column);
      b_columns_ = (TILE_COLUMNS + LINE - 1) / LINE;
    }
    if (!more) return;
    const int64_t columns = (row_end - row_begin + LINE - 1) / LINE, strips = strip_end - strip_begin;
    const int64_t first = columns * (s - strip_begin) / strips;
    a_ = p.a.from(row_begin + first * LINE, k + PIECE);
    a_columns_ = columns * (s + 1 - strip_begin) / strips - first;
  }

  Prefetch operator()(int64_t tile) const {
    const int64_t column = tile / GROUP, k = tile % GROUP * (PIECE / GROUP);
    constexpr int64_t SIZE = sizeof(real);
    Prefetch next;
    if (column < b_columns_) next.first = b_.data + k * b_.row + column * LINE, next.first_step = b_.row * SIZE;
    if (column < a_columns_) next.second = a_.data + column * LINE + k * a_.column, next.second_step = a_.column * SIZE;
    return next;
  }

 private:
  View a_{}, b_{};
  int64_t a_columns_ = 0, b_columns_ = 0;
};

constexpr int64_t MOST_ROWS = 192;  // rows of a weight's gradient that one task packs
static_assert(MOST_ROWS % TILE_ROWS == 0, "whole tiles");
constexpr int64_t MOST_STRIPS = VECTOR_BYTES == 64 ? 8 : 16;  // strips that one task multiplies them with

int64_t strips_size(int64_t rows, int64_t strips) {
  return PIECE * TILE_COLUMNS + packed_rows_size(rows, PIECE + strips * TILE_COLUMNS);
}

// c for the rows row_begin … row_end−1 of a transposed a and the strips strip_begin … strip_end−1 of b. scratch:
// strips_size() numbers. row_sums: as in product_of_transposed().
void multiply_strips(const Product& p, int64_t row_begin, int64_t row_end, int64_t strip_begin, int64_t strip_end,
                     real* scratch, real* row_sums) {
  const int64_t rows = row_end - row_begin, column = strip_of(p.N, strip_begin).column;
  real *const b_packed = scratch, *const a_packed = b_packed + PIECE * TILE_COLUMNS,
              *const sums = a_packed + packed_rows_size(rows, PIECE);
  real chunk_sums[MOST_ROWS];  // Σ_k a_ik over this chunk
  for (int64_t k = 0; k < p.K; k += PIECE) {
    const int64_t depth = std::min(PIECE, p.K - k);
    if (k % CHUNK == 0) std::fill_n(chunk_sums, rows, real(0));
    pack_rows(a_packed, p.a.from(row_begin, k), rows, depth, row_sums ? chunk_sums : nullptr);
    if (row_sums && (k + depth == p.K || (k + depth) % CHUNK == 0))
      for (int64_t i = 0; i < rows; ++i) row_sums[row_begin + i] += chunk_sums[i];
    for (int64_t s = strip_begin; s < strip_end; ++s) {
      const Strip strip = strip_of(p.N, s);
      pack_strip(b_packed, p.b.from(k, strip.column), depth, strip);
      multiply_strip(p, row_begin, row_end, strip, k, depth, {b_packed, strip.width()}, a_packed,
                     NextPiece(p, row_begin, row_end, s, strip_begin, strip_end, k),
                     sums + packed_rows_size(rows, strip.column - column));
    }
  }
}

// Packs all K rows of one strip, chunk after chunk. `packed` is the start of the first strip; a strip has K·width
// numbers.
void pack_whole_strip(real* packed, View b, int64_t K, const Strip& strip) {
  packed += K * strip.column;
  for (int64_t k = 0; k < K; k += CHUNK)
    pack_strip(packed + k * strip.width(), b.from(k, strip.column), std::min(CHUNK, K - k), strip);
}

template <class F = NoPrefetch>
void multiply_whole_strip(const Product& p, int64_t row_begin, int64_t row_end, const Packed& b, int64_t first,
                          const Strip& strip, const real* a_tiles = nullptr, F prefetch = {}) {
  const int64_t step = b.row > 0 ? b.row : strip.width();
  const real* rows = b.data + (b.row > 0 ? 1 : b.K) * strip.column + first * step;
  for (int64_t k = 0; k < p.K; k += CHUNK)
    multiply_strip(p, row_begin, row_end, strip, k, std::min(CHUNK, p.K - k), {rows + k * step, step}, a_tiles,
                   prefetch);
}

constexpr int64_t BLOCK_TILES = 8;  // tiles whose rows of a stay in L2 for all strips of a task
constexpr int64_t BLOCK_ROWS = BLOCK_TILES * TILE_ROWS;
constexpr int64_t TASKS = 32;             // tasks per thread, if there are enough strips
constexpr int64_t MOST_PACKED = 1 << 20;  // limits the memory of a packed b: a larger one is packed part by part

// c for one block of rows from `row` on and the strips begin … end−1 of b. Prefetches the block of rows from `next` on
// into L2; next ≥ p.M: nothing is prefetched.
void multiply_block(const Product& p, int64_t row, const Packed& b, int64_t begin, int64_t end, int64_t next) {
  const bool prefetch = next + BLOCK_ROWS <= p.M && p.K <= CHUNK && p.a.row == p.K;
  const int64_t strips = end - begin, part = (TILE_ROWS * p.K + PLACES * strips - 1) / (PLACES * strips);
  const int64_t step = (part * GROUP + p.K - 1) / p.K * static_cast<int64_t>(sizeof(real));
  for (int64_t s = begin; s < end; ++s) {
    multiply_whole_strip(p, row, std::min(row + BLOCK_ROWS, p.M), b, 0, strip_of(p.N, s), nullptr, [&](int64_t tile) {
      if (!prefetch) return Prefetch();
      const real* first = p.a.data + next * p.a.row + ((s - begin) * BLOCK_TILES + tile) * PLACES * part;
      return Prefetch{first, first + part, step, step};
    });
  }
}

}  // namespace

const int64_t PACKED_SIZE = CHUNK * TILE_COLUMNS;

void multiply(const Product& p, real* packed) {
  for (int64_t k = 0; k < p.K; k += CHUNK) {
    const int64_t depth = std::min(CHUNK, p.K - k);
    for (int64_t s = 0; s < strips_of(p.N); ++s) {
      const Strip strip = strip_of(p.N, s);
      pack_strip(packed, p.b.from(k, strip.column), depth, strip);
      multiply_strip(p, 0, p.M, strip, k, depth, {packed, strip.width()}, nullptr, NoPrefetch());
    }
  }
}

void multiply_few(const Product& p) {
  with_constant<MOST_FEW>(p.M, [&](auto rows) {
    for (int64_t column = 0; column < p.N; column += FEW_VECTORS * WIDTH) multiply_columns<rows>(p, column);
  });
}

int64_t packed_size(int64_t K, int64_t columns) { return K * vectors_of(columns) * WIDTH; }

Packed pack(real* to, View b, int64_t K, int64_t columns, int64_t rows) {
  if (b.column == 1 && columns % WIDTH == 0 && (K <= IN_PLACE_ROWS || rows <= MOST_FEW))
    return {b.data, K, columns, b.row};
  for (int64_t s = 0; s < strips_of(columns); ++s) pack_whole_strip(to, b, K, strip_of(columns, s));
  return {to, K, columns};
}

void multiply(const Product& p, const Packed& b, int64_t first) {
  for (int64_t s = 0; s < strips_of(b.columns); ++s) {
    const Strip strip = strip_of(b.columns, s);
    if (strip.column < p.N) multiply_whole_strip(p, 0, p.M, b, first, strip);
  }
}

int64_t packed_rows_size(int64_t M, int64_t K) { return (M + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS * K; }

void multiply_transposed(const Product& p, const Packed& b, real* a_packed) {
  pack_rows(a_packed, p.a, p.M, p.K);
  for (int64_t s = 0; s < strips_of(b.columns); ++s)
    multiply_whole_strip(p, 0, p.M, b, 0, strip_of(b.columns, s), a_packed);
}

namespace {

int64_t work_of(const Product& p) { return p.M * p.N * p.K; }

}  // namespace

// The gradient of a weight has few outputs and many terms. A task packs both its rows of a and its strips of b, so
// large tasks pack less often; but there must be at least two tasks for each thread.
void Cpu::product_of_transposed(const Product& p, real* row_sums) {
  int64_t rows = MOST_ROWS, width = MOST_STRIPS;
  const int64_t strips = strips_of(p.N);
  const auto tasks = [&] { return ((p.M + rows - 1) / rows) * ((strips + width - 1) / width); };
  while (tasks() < 2 * threads_.count && rows * width > 6 * TILE_ROWS)
    (rows >= width * TILE_COLUMNS || width == 1 ? rows : width) /= 2;
  reserve_scratch(strips_size(rows, width));
  const int64_t groups = (strips + width - 1) / width;
  parallel(
      threads_, tasks(), 1, work_of(p),
      [&](int64_t task, int64_t, int thread) {
        const int64_t row = task / groups * rows, strip = task % groups * width;
        multiply_strips(p, row, std::min(row + rows, p.M), strip, std::min(strip + width, strips), scratch(thread),
                        strip == 0 ? row_sums : nullptr);
      },
      "product");
}

Packed Cpu::pack_all(real* to, const Product& p) {
  parallel(
      threads_, strips_of(p.N), 1, packed_size(p.K, p.N) * PASS,
      [&](int64_t s, int64_t, int) { pack_whole_strip(to, p.b, p.K, strip_of(p.N, s)); }, "pack");
  return {to, p.K, p.N};
}

// If there are enough blocks for all threads, a task multiplies its block with all strips, so its rows are read from
// memory once.
void Cpu::product_of_packed(const Product& p, const Packed& b) {
  const int64_t blocks = (p.M + BLOCK_ROWS - 1) / BLOCK_ROWS, strips = strips_of(p.N);
  const int64_t groups = std::min(strips, (TASKS * threads_.count + blocks - 1) / blocks);  // groups of strips
  parallel(
      threads_, blocks * groups, 1, work_of(p),
      [&](int64_t task, int64_t, int) {
        const int64_t group = task % groups, next = (task + 1) / groups;
        multiply_block(p, task / groups * BLOCK_ROWS, b, strips * group / groups, strips * (group + 1) / groups,
                       next > task / groups ? next * BLOCK_ROWS : p.M);
      },
      "product");
}

// A held weight is packed at its first product and kept packed. With few rows b is not packed. Otherwise b is packed
// for this product: all of it, or if it is large some columns at a time.
void Cpu::product(const Product& p) {
  if (Tensor* const packed = weights_.find(p)) {
    if (packed->data()) return product_of_packed(p, {packed->data(), p.K, p.N});
    packed->resize(*this, {packed_size(p.K, p.N)});
    return product_of_packed(p, pack_all(packed->data(), p));
  }
  if (p.M >= 1 && p.M <= MOST_FEW && p.b.row == 1) {
    return with_constant<MOST_FEW>(p.M, [&](auto rows) {
      parallel(
          threads_, vectors_of(p.N), FEW_VECTORS, work_of(p),
          [&](int64_t vector, int64_t, int) { multiply_columns<rows>(p, vector * WIDTH); }, "product");
    });
  }
  const int64_t columns = std::max(MOST_PACKED / p.K / TILE_COLUMNS, int64_t{1}) * TILE_COLUMNS;
  for (int64_t column = 0; column < p.N; column += columns) {
    Product part = p;
    part.c += column;
    part.b = p.b.from(0, column);
    part.N = std::min(columns, p.N - column);
    if (p.bias) part.bias += column;
    const int64_t size = packed_size(p.K, part.N);
    if (packed_.size() < size) packed_.resize(*this, {size});
    product_of_packed(part, pack_all(packed_.data(), part));
  }
}

}  // namespace petroglyph
