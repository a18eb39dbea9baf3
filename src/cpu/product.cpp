// The blocked matrix product. Every output is one chain of fused multiply-adds over ascending k, cut every CHUNK terms,
// whatever the blocking: the blocks divide outputs among registers and threads, never the terms of one output.
//
// A tile of TILE_ROWS rows and up to TILE_VECTORS vectors of outputs lives in registers while k runs. Each k takes one row
// of b, already packed side by side with its neighbours, and one number of a for each row of the tile, broadcast. At 8×48
// on AVX-512 that is 24 independent chains (two fma units with a latency of 4 need 8), 3 loads and 8 broadcasts for 24
// fmas, so that the loads stay behind the arithmetic.
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
// Rows of a come from memory once for all strips of a block. Nothing in a tile's loop waits for them: each few terms it asks
// for a little of the block that this thread is expected to take next, which lies in the L2 cache by then. It must be a little:
// a core waits for ten to sixteen lines at a time, and who asks for more holds up those that the tile needs now.
//
// Packing is what keeps the tile fed. The columns of b that a tile takes (a strip) become contiguous, by copies or, where b
// is a weight used as Wᵀ, by transposing squares in registers: number by number it cost a fifth of the time. Where a is
// transposed (the dyᵀ of a weight's gradient) its next k lies a whole row away, which halves the speed until a block of it
// is packed as well.

#include "cpu/product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "cpu/cpu.h"
#include "cpu/parallel.h"
#include "cpu/simd.h"

namespace petroglyph {

namespace {

constexpr int WIDTH = VECTOR_WIDTH;
constexpr int TILE_COLUMNS = TILE_VECTORS * WIDTH;
constexpr int64_t LINE = 64 / sizeof(real);  // of the caches

// The columns of b that one tile takes. A matrix is cut into strips as even as whole vectors allow: 64 columns are two strips
// of 32, which keep more chains in flight than 48 and 16 would.
struct Strip {
  int64_t column;
  int columns, vectors;

  int width() const { return vectors * WIDTH; }
};

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
#else  // g++ has the other only from version 12 on
  typedef std::conditional_t<sizeof(real) == 4, int32_t, int64_t> Mask __attribute__((vector_size(VECTOR_BYTES)));
  const Vector low = __builtin_shuffle(a, b, Mask{(L / 2 + L % 2 * WIDTH)...});
  const Vector high = __builtin_shuffle(a, b, Mask{(WIDTH / 2 + L / 2 + L % 2 * WIDTH)...});
#endif
  a = low;
  b = high;
}

// A square of WIDTH × WIDTH numbers: interleaving row i with row i + WIDTH/2 moves the highest bit of the row's index to the
// lowest place, and log2(WIDTH) times that exchanges the bits of row and column.
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

// packed (K, VECTORS·WIDTH) = whole vectors of rows that are contiguous in b
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

// Squares along k, as many as fit; returns the terms that are done.
int64_t transpose_squares(real* packed, View b, int64_t K, const Strip& strip) {
  const int64_t done = K / WIDTH * WIDTH;
  for (int n = 0; n < strip.width(); n += WIDTH)
    for (int64_t k = 0; k < done; k += WIDTH) {  // along the columns of b, as they lie in memory
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

// packed (K, width) = the strip's columns of b, with zeros beside the last one
void pack_strip(real* packed, View b, int64_t K, const Strip& strip) {
  const int width = strip.width();
  if (b.column == 1 && strip.columns == width) {
    if (strip.vectors == 1) return copy_vectors<1>(packed, b, K);
    if (strip.vectors == 2) return copy_vectors<2>(packed, b, K);
    return copy_vectors<3>(packed, b, K);
  }
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

// packed (tiles, K, TILE_ROWS): the rows of a transposed a, tile after tile; sums (M) += Σ_k a_ik, if wanted, while they pass
void pack_rows(real* packed, View a, int64_t M, int64_t K, real* sums = nullptr) {
  const int64_t whole = M / TILE_ROWS * TILE_ROWS;
  constexpr int64_t STRIP = VECTOR_BYTES == 64 ? 64 : 16;  // terms that stay in L1 until every tile has its part
  for (int64_t strip = 0; strip < K; strip += STRIP) {
    if (sums) add_terms(sums, a.from(0, strip), M, std::min(STRIP, K - strip));
    for (int64_t tile = 0; tile < whole; tile += TILE_ROWS)
      for (int64_t k = strip; k < std::min(strip + STRIP, K); ++k) {
        const real* from = a.data + k * a.column + tile;
        // rows a page apart: the processor does not foresee them
        if (tile % LINE < TILE_ROWS && k + STRIP < K) __builtin_prefetch(from + STRIP * a.column, 0, 2);
        std::memcpy(packed + tile * K + k * TILE_ROWS, from, TILE_ROWS * sizeof(real));
      }
  }
  for (int64_t k = 0; k < K; ++k)
    for (int64_t i = whole; i < M; ++i) packed[whole * K + k * TILE_ROWS + i - whole] = a.data[k * a.column + i];
}

// A weight's gradient takes a chunk in pieces of at most so many terms, and its chains go on where they stopped: then a strip
// stays in L1 (16 or 24 KB) and the packed rows of a task in L2, and while a piece is multiplied the next one is fetched.
constexpr int64_t PIECE = VECTOR_BYTES == 64 ? 128 : 256;
static_assert(CHUNK % PIECE == 0, "no piece lies in two chunks");

// ---- One tile -------------------------------------------------------------------------------------------------------

// Where a tile's sums go: c = start + sums, and after the last chunk + bias.
struct Target {
  real* c;
  int64_t row;
  bool add;                      // what c holds is the start, not zero
  const real* bias;              // or null
  const real* before = nullptr;  // (ROWS,VECTORS·WIDTH), the sums of this chunk's pieces before; null: there are none
  real* after = nullptr;         // as wide, for the pieces that come; null: the chunk ends here
};

// The first columns of a tile whose last vector is not whole; its rows of sums lie `step` numbers apart. One function for all kinds
// of tiles: a copy in each made this file's code 1.5 times as large with g++, 2.4 times with clang++, and nothing faster.
__attribute__((noinline)) void store_part(const Target& to, int rows, int columns, const real* sums, int step) {
  const Target copy = to;  // stores to c cannot change it
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

// Always inlined, these three: a tile's sums lie in registers only while no function is given their address. clang++ called the
// last one, and so loaded and stored each sum with each term, at a third of the speed.

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
  const Target copy = to;  // stores to c cannot change it
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

// VECTORS vectors of b for each k, `step` numbers apart: packed, or in place.
struct Rows {
  const real* data;
  int64_t step;
};

// What a tile fetches for later, to the L2 cache: a line with each GROUP terms, and how many bytes further on the next time. The
// two places are one where a term takes so few cycles that counting terms would take more than fetching gives.
struct Later {
  const void *first = nullptr, *second = nullptr;
  int64_t first_step = 0, second_step = 0;
};
constexpr int64_t GROUP = VECTOR_BYTES == 64 ? 4 : 1;
constexpr int64_t PLACES = GROUP > 1 ? 2 : 1;

struct NothingLater {
  Later operator()(int64_t) const { return {}; }
};

// Hides from the compiler where a pointer comes from. It would form all addresses of a tile from one pointer, by offsets that
// do not all have registers: that cost 7 %. And it would keep in registers what a loop reads once in a while.
template <class T>
inline const T* opaque(const T* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

// Lines for later, and of the tile's own place in c a row at a time.
template <int ROWS, int VECTORS>
inline __attribute__((always_inline)) void fetch(const Later* later, const Target* to, int64_t group) {
  if (later->first) __builtin_prefetch(static_cast<const char*>(later->first) + group * later->first_step, 0, 2);
  if (later->second) __builtin_prefetch(static_cast<const char*>(later->second) + group * later->second_step, 0, 2);
  const real* const row = to->c + std::min<int64_t>(group, ROWS - 1) * to->row;
#pragma GCC unroll 3
  for (int v = 0; v < VECTORS; ++v) __builtin_prefetch(row + v * WIDTH, 0, 2);
}

// Σ_k a_ik b_k over k < K. ALONG_K: a.column is 1; otherwise a.row is. GROUPS: terms are counted, to fetch
// with each GROUP of them.
template <int ROWS, int VECTORS, bool ALONG_K, bool GROUPS>
void multiply_tile(const Target& to, int columns, View a, Rows b, int64_t K, const Later& later) {
  if (!GROUPS)
    for (int i = 0; i < ROWS; ++i)
      for (int v = 0; v < VECTORS; ++v) __builtin_prefetch(to.c + i * to.row + v * WIDTH, 1);
  constexpr int EACH = 3;  // rows of a pointer: none, one and two distances from it
  constexpr int POINTERS = (ROWS + EACH - 1) / EACH;
  const int64_t row = ALONG_K ? a.row : 1, step = ALONG_K ? 1 : a.column;
  const real* x[POINTERS];
  for (int n = 0; n < POINTERS; ++n) x[n] = opaque(a.data + n * EACH * row);
  const char* line = static_cast<const char*>(later.first ? later.first : b.data);  // with each term
  // Behind a reference clang++ forgets that Vector asks for no alignment.
  alignas(VECTOR_BYTES) Vector sum[ROWS][VECTORS] = {};
  constexpr bool PIECES = !ALONG_K;  // asking each tile would cost the others 4 %
  if (PIECES && to.before) load_sums(to.before, sum);
  const real *from = b.data, *const end = from + K * b.step;
  for (int64_t k = 0; from != end; from += b.step, ++k) {
    if constexpr (GROUP == 1) {
      __builtin_prefetch(line, 0, 2);
      line += later.first_step;
    }
    if (GROUPS && k % GROUP == 0) fetch<ROWS, VECTORS>(opaque(&later), opaque(&to), k / GROUP);
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

template <int VECTORS, bool ALONG_K, bool FETCH>
void multiply_rows(int rows, const Target& to, int columns, View a, Rows b, int64_t K, const Later& later) {
  constexpr bool GROUPS = FETCH && GROUP > 1;
  if (GROUPS && rows == TILE_ROWS)
    return multiply_tile<TILE_ROWS, VECTORS, ALONG_K, GROUPS>(to, columns, a, b, K, later);
  switch (rows) {
    case 8: return multiply_tile<8, VECTORS, ALONG_K, false>(to, columns, a, b, K, later);
    case 7: return multiply_tile<7, VECTORS, ALONG_K, false>(to, columns, a, b, K, later);
    case 6: return multiply_tile<6, VECTORS, ALONG_K, false>(to, columns, a, b, K, later);
    case 5: return multiply_tile<5, VECTORS, ALONG_K, false>(to, columns, a, b, K, later);
    case 4: return multiply_tile<4, VECTORS, ALONG_K, false>(to, columns, a, b, K, later);
    case 3: return multiply_tile<3, VECTORS, ALONG_K, false>(to, columns, a, b, K, later);
    case 2: return multiply_tile<2, VECTORS, ALONG_K, false>(to, columns, a, b, K, later);
    default: return multiply_tile<1, VECTORS, ALONG_K, false>(to, columns, a, b, K, later);
  }
}

template <bool ALONG_K, bool FETCH>
void multiply_strip_tile(int rows, int vectors, const Target& to, int columns, View a, Rows b, int64_t K,
                         const Later& later) {
  switch (vectors) {
    case 3: return multiply_rows<3, ALONG_K, FETCH>(rows, to, columns, a, b, K, later);
    case 2: return multiply_rows<2, ALONG_K, FETCH>(rows, to, columns, a, b, K, later);
    default: return multiply_rows<1, ALONG_K, FETCH>(rows, to, columns, a, b, K, later);
  }
}

// ---- A row or a few -------------------------------------------------------------------------------------------------

// Each number of a weight is used once for each row of a, so that packing it for one product would cost more than multiplying.
// Squares of it are transposed in registers and used there.

constexpr int FEW_VECTORS = 2;  // of columns at a time

// All terms of ROWS rows and the FEW_VECTORS·WIDTH columns from `column` on.
template <int ROWS>
void multiply_columns(const Product& p, int64_t column) {
  constexpr int COLUMNS = FEW_VECTORS * WIDTH;
  constexpr int64_t TERMS_AHEAD = 128;
  const int64_t ahead = p.K < TERMS_AHEAD ? COLUMNS * p.b.column : TERMS_AHEAD;
  const real* from[COLUMNS];  // beyond the last column the last one again, whose sums are not stored
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

// Calls f(ROWS) with the number of rows as a type's.
template <class F>
void with_rows(int64_t rows, F f) {
  switch (rows) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 3: return f(std::integral_constant<int, 3>());
    default: return f(std::integral_constant<int, MOST_FEW>());
  }
}

// ---- Blocks ---------------------------------------------------------------------------------------------------------

// Rows of b that lie at most so far apart are multiplied in place where they are used for a few tiles only: packing them
// costs more than it gives. Narrow strips of rows whose distance divides by large powers of two share few of L1's sets.
constexpr int64_t IN_PLACE_STEP = VECTOR_BYTES == 64 ? 512 : 0;

// So few rows stay in L1 until all products have had them, however far apart they lie.
constexpr int64_t IN_PLACE_ROWS = 64;

// Terms k … k+depth−1 of one strip, for the rows row_begin … row_end−1. a_tiles: those rows packed, or null; sums: where those of
// pieces of a chunk lie in between, (tiles, TILE_ROWS, the strip's width). Of the strip only the columns below p.N are stored.
// later(t): what tile t fetches.
template <class F>
void multiply_strip(const Product& p, int64_t row_begin, int64_t row_end, const Strip& strip, int64_t k, int64_t depth,
                    Rows b, const real* a_tiles, F later, real* sums = nullptr) {
  const bool last = k + depth == p.K;
  const bool begins = k % CHUNK == 0, ends = last || (k + depth) % CHUNK == 0;
  const int columns = static_cast<int>(std::min<int64_t>(strip.columns, p.N - strip.column));
  const int vectors = static_cast<int>(vectors_of(columns));  // fewer than the strip's where p takes fewer columns
  for (int64_t row = row_begin; row < row_end; row += TILE_ROWS) {
    const int rows = static_cast<int>(std::min<int64_t>(TILE_ROWS, row_end - row));
    const View a = a_tiles ? View{a_tiles + (row - row_begin) * depth, 1, TILE_ROWS} : p.a.from(row, k);
    Target to{p.c + row * p.c_row + strip.column, p.c_row, k >= CHUNK || p.into == Into::ADD,
              last && p.bias ? p.bias + strip.column : nullptr};
    if (!begins) to.before = sums + (row - row_begin) * strip.width();
    if (!ends) to.after = sums + (row - row_begin) * strip.width();
    constexpr bool FETCH = !std::is_same_v<F, NothingLater>;
    const Later fetched = later((row - row_begin) / TILE_ROWS);
    if (a.column == 1)
      multiply_strip_tile<true, FETCH>(rows, vectors, to, columns, a, b, depth, fetched);
    else
      multiply_strip_tile<false, FETCH>(rows, vectors, to, columns, a, b, depth, fetched);
  }
}

// What a weight's gradient fetches while it takes a strip of some piece: the next strip of b, or the first of the next piece, and
// where a tile fetches from two PLACES, a part of the next piece's rows of a. Both are columns of lines, PIECE high, and GROUP
// tiles fetch one of each.
class PieceAfter {
 public:
  PieceAfter(const Product& p, int64_t row_begin, int64_t row_end, int64_t s, int64_t strip_begin, int64_t strip_end,
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

  Later operator()(int64_t tile) const {
    const int64_t column = tile / GROUP, k = tile % GROUP * (PIECE / GROUP);
    constexpr int64_t SIZE = sizeof(real);
    Later later;
    if (column < b_columns_) later.first = b_.data + k * b_.row + column * LINE, later.first_step = b_.row * SIZE;
    if (column < a_columns_)
      later.second = a_.data + column * LINE + k * a_.column, later.second_step = a_.column * SIZE;
    return later;
  }

 private:
  View a_{}, b_{};
  int64_t a_columns_ = 0, b_columns_ = 0;
};

constexpr int64_t MOST_ROWS = 192;  // of a weight's gradient that a task packs
static_assert(MOST_ROWS % TILE_ROWS == 0, "whole tiles");
constexpr int64_t MOST_STRIPS = VECTOR_BYTES == 64 ? 8 : 16;  // that it multiplies them with

int64_t strips_size(int64_t rows, int64_t strips) {
  return PIECE * TILE_COLUMNS + packed_rows_size(rows, PIECE + strips * TILE_COLUMNS);
}

// Some rows of a transposed a with the strips strip_begin … strip_end−1. room: of strips_size; row_sums: as in
// product_of_transposed.
void multiply_strips(const Product& p, int64_t row_begin, int64_t row_end, int64_t strip_begin, int64_t strip_end,
                     real* room, real* row_sums) {
  const int64_t rows = row_end - row_begin, column = strip_of(p.N, strip_begin).column;
  real *const b_packed = room, *const a_packed = b_packed + PIECE * TILE_COLUMNS,
              *const sums = a_packed + packed_rows_size(rows, PIECE);
  real of_rows[MOST_ROWS];  // of this chunk
  for (int64_t k = 0; k < p.K; k += PIECE) {
    const int64_t depth = std::min(PIECE, p.K - k);
    if (k % CHUNK == 0) std::fill_n(of_rows, rows, real(0));
    pack_rows(a_packed, p.a.from(row_begin, k), rows, depth, row_sums ? of_rows : nullptr);
    if (row_sums && (k + depth == p.K || (k + depth) % CHUNK == 0))
      for (int64_t i = 0; i < rows; ++i) row_sums[row_begin + i] += of_rows[i];
    for (int64_t s = strip_begin; s < strip_end; ++s) {
      const Strip strip = strip_of(p.N, s);
      const View b = p.b.from(k, strip.column);
      const bool in_place = b.column == 1 && b.row <= IN_PLACE_STEP && strip.columns == strip.width();
      if (!in_place) pack_strip(b_packed, b, depth, strip);
      multiply_strip(p, row_begin, row_end, strip, k, depth,
                     in_place ? Rows{b.data, b.row} : Rows{b_packed, strip.width()}, a_packed,
                     PieceAfter(p, row_begin, row_end, s, strip_begin, strip_end, k),
                     sums + packed_rows_size(rows, strip.column - column));
    }
  }
}

// One strip of b packed for all of K lies K·width numbers after the strips before it, chunk after chunk.
void pack_whole_strip(real* packed, View b, int64_t K, const Strip& strip) {
  packed += K * strip.column;
  for (int64_t k = 0; k < K; k += CHUNK)
    pack_strip(packed + k * strip.width(), b.from(k, strip.column), std::min(CHUNK, K - k), strip);
}

template <class F = NothingLater>
void multiply_whole_strip(const Product& p, int64_t row_begin, int64_t row_end, const Packed& b, int64_t first,
                          const Strip& strip, const real* a_tiles = nullptr, F later = {}) {
  const int64_t step = b.row > 0 ? b.row : strip.width();
  const real* rows = b.data + (b.row > 0 ? 1 : b.K) * strip.column + first * step;
  for (int64_t k = 0; k < p.K; k += CHUNK)
    multiply_strip(p, row_begin, row_end, strip, k, std::min(CHUNK, p.K - k), {rows + k * step, step}, a_tiles, later);
}

constexpr int64_t BLOCK_TILES = 8;  // of a task: their rows stay in L2 for all its strips
constexpr int64_t BLOCK_ROWS = BLOCK_TILES * TILE_ROWS;
constexpr int64_t TASKS = 32;             // wanted for each thread, if there are so many strips
constexpr int64_t MOST_PACKED = 1 << 20;  // numbers of b that are packed at a time

// A block of rows with the strips begin … end−1 of b; meanwhile the thread fetches the rows from `next` on, if any, to its L2.
void multiply_block(const Product& p, int64_t row, const Packed& b, int64_t begin, int64_t end, int64_t next) {
  const bool fetch = next + BLOCK_ROWS <= p.M && p.K <= CHUNK && p.a.row == p.K;
  const int64_t strips = end - begin, part = (TILE_ROWS * p.K + PLACES * strips - 1) / (PLACES * strips);
  const int64_t step = (part * GROUP + p.K - 1) / p.K * static_cast<int64_t>(sizeof(real));
  for (int64_t s = begin; s < end; ++s) {
    multiply_whole_strip(p, row, std::min(row + BLOCK_ROWS, p.M), b, 0, strip_of(p.N, s), nullptr, [&](int64_t tile) {
      if (!fetch) return Later();
      const real* first = p.a.data + next * p.a.row + ((s - begin) * BLOCK_TILES + tile) * PLACES * part;
      return Later{first, first + part, step, step};
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
      multiply_strip(p, 0, p.M, strip, k, depth, {packed, strip.width()}, nullptr, NothingLater());
    }
  }
}

void multiply_few(const Product& p) {
  with_rows(p.M, [&](auto rows) {
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

// The gradient of a weight: few outputs, many terms. A task packs its rows of a as well as its strips of b, so that it wants
// many of both, while there must be tasks for all threads.
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

// A task takes all strips if there are enough tasks, so that its rows come from memory once.
void Cpu::product_of_packed(const Product& p, const Packed& b) {
  const int64_t blocks = (p.M + BLOCK_ROWS - 1) / BLOCK_ROWS, strips = strips_of(p.N);
  const int64_t groups = std::min(strips, (TASKS * threads_.count + blocks - 1) / blocks);  // of strips
  parallel(
      threads_, blocks * groups, 1, work_of(p),
      [&](int64_t task, int64_t, int) {
        const int64_t group = task % groups, next = (task + 1) / groups;
        multiply_block(p, task / groups * BLOCK_ROWS, b, strips * group / groups, strips * (group + 1) / groups,
                       next > task / groups ? next * BLOCK_ROWS : p.M);
      },
      "product");
}

// A held weight is packed at its first product. Otherwise many rows share b, which is packed for them, some columns after the
// other where it is large.
void Cpu::product(const Product& p) {
  if (Tensor* const packed = weights_.find(p)) {
    if (packed->data()) return product_of_packed(p, {packed->data(), p.K, p.N});
    packed->resize(*this, {packed_size(p.K, p.N)});
    return product_of_packed(p, pack_all(packed->data(), p));
  }
  if (p.M >= 1 && p.M <= MOST_FEW && p.b.row == 1) {
    return with_rows(p.M, [&](auto rows) {
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
