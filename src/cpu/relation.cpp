// The pairwise relation of the Causal Relation Network: z (B,Q,H) from keys p (B,T,H) and queries q (B,Q,H). The
// derivation is in models/causal_rn.cpp, the loops that define it in reference/relation.cpp. For one head:
//   forward     z_jc = 1/j Σ_i ψ(s_ij d),   d = p_ic + q_jc
//   backward    for each query j, each key i that j sees and each channel c:  g = dz_jc ψ'(s_ij d) / j
//               along_ij += g d     dp_ic += s_ij g     dq_jc += s_ij g
//   then        w_ij = s_ij³ along_ij / width
//               dp_i −= p_i Σ_j w_ij + Σ_j w_ij q_j     dq_j −= q_j Σ_i w_ij + Σ_i w_ij p_i
// and dp and dq are centered. s³ overflows if the standard deviation 1/s is below 1.4e-13.
//
// Nearly all the time is spent in one formula for each pair and channel. Forward, sum += exp(inv_std·(p + q)) is an
// addition, a multiplication and ten instructions of exp2, of which the last also adds to the sum (gain: 6 %).
// Backward, one sweep recomputes the exponential and adds to three sums with one fma each.
//
// Four vectors are interleaved (cpu/several.h). Forward they are channels of one query, whose sums stay in registers
// for all keys. Backward they are two vectors of each of two queries, which share the loads and stores of the key. A
// backward task is one head of one sample: then the sums over i and over j both have their order, and p, q and the
// gradients stay in the cache.

#include <algorithm>
#include <type_traits>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/loops.h"
#include "cpu/product.h"
#include "cpu/several.h"
#include "cpu/simd.h"
#include "math/activation.h"

namespace petroglyph {

namespace {

using numerics::fma;

// The number of interleaved vectors. Eight would need more than 32 registers in the backward pass: g++ gains 4 %,
// clang++ takes twice as long.
constexpr int VECTORS = 4;

// COUNT channels; COUNT is a power of two
template <int COUNT>
using Channels = Several<std::min(COUNT, VECTOR_WIDTH), std::max(1, COUNT / VECTOR_WIDTH)>;

// f of each number
template <class F, int WIDTH, int SIZE>
[[gnu::always_inline]] inline Several<WIDTH, SIZE> one_by_one(F f, Several<WIDTH, SIZE> a, Several<WIDTH, SIZE> b,
                                                              Several<WIDTH, SIZE> c) {
  alignas(64) real x[WIDTH * SIZE], y[WIDTH * SIZE], z[WIDTH * SIZE];
  a.store(x);
  b.store(y);
  c.store(z);
#pragma omp simd
  for (int l = 0; l < WIDTH * SIZE; ++l) x[l] = f(x[l], y[l], z[l]);
  return Several<WIDTH, SIZE>::load(x);
}

// Whether the formulas of ψ accept Several. None does in the double build.
template <class Psi>
constexpr bool OF_SEVERAL = std::is_same<Psi, ExpInRange>::value && sizeof(real) == sizeof(float);

// sum + ψ(factor·d)
template <class Psi, int WIDTH, int SIZE>
[[gnu::always_inline]] inline Several<WIDTH, SIZE> add_values(Several<WIDTH, SIZE> sum, Several<WIDTH, SIZE> factor,
                                                              Several<WIDTH, SIZE> d) {
  if constexpr (OF_SEVERAL<Psi>)
    return add_value<Psi>(sum, factor, d);
  else
    return one_by_one([](real s, real f, real x) { return add_value<Psi>(s, f, x); }, sum, factor, d);
}

// ψ'(factor·d)
template <class Psi, int WIDTH, int SIZE>
[[gnu::always_inline]] inline Several<WIDTH, SIZE> slopes(Several<WIDTH, SIZE> factor, Several<WIDTH, SIZE> d) {
  if constexpr (OF_SEVERAL<Psi>)
    return Psi::slope(factor, d);
  else
    return one_by_one([](real f, real x, real) { return Psi::slope(f, x); }, factor, d, d);
}

constexpr int64_t QUERIES = 128;  // queries of one task

// One head of one sample: the offsets of its rows in the arrays.
struct Head {
  const RelationShape& shape;
  int64_t sample, index;  // head index
  int width;
  int64_t keys, queries, pairs;  // offsets of its first channel in (B,capacity,H), in (B,Q,H), and in (B,heads,Q,T)

  Head(const RelationShape& s, int64_t number)
      : shape(s),
        sample(number / s.heads),
        index(number % s.heads),
        width(s.head_width()),
        keys(sample * s.capacity * s.hidden + index * width),
        queries(sample * s.queries * s.hidden + index * width),
        pairs(number * s.queries * s.keys) {}
};

// Replaces row_i = p_i·q by |p_i + q|² = |p_i|² + |q|² + 2 p_i·q, or, if that would cancel, by Σ (p_i + q)².
// squares_i = |p_i|², query_square = |q|²
void finish_variances(real* row, const real* squares, real query_square, const real* p, const real* q, int visible,
                      const Head& head) {
  int cancelled = 0;
  for (int i = 0; i < visible; ++i) {
    const real square_sum = squares[i] + query_square;
    row[i] = fma(real(2), row[i], square_sum);
    cancelled |= row[i] < CANCELLATION * square_sum;
  }
  if (!cancelled) return;
  for (int i = 0; i < visible; ++i) {
    if (!(row[i] < CANCELLATION * (squares[i] + query_square))) continue;
    const real* key = p + static_cast<int64_t>(i) * head.shape.hidden;
    row[i] = sum_lanes(head.width, [&](real sum, int64_t c) {
      const real d = key[c] + q[c];
      return fma(d, d, sum);
    });
  }
}

int64_t work_of(const RelationShape& shape) {
  return static_cast<int64_t>(shape.batch) * shape.queries * shape.keys * shape.hidden * 8;
}

}  // namespace

void Cpu::relation_inv_std(real* inv_std, const real* p, const real* q, const RelationShape& shape) {
  reserve_scratch(PACKED_SIZE + shape.capacity);  // capacity, because the number of keys grows in decoding
  const int64_t blocks = (shape.queries + QUERIES - 1) / QUERIES;
  parallel(threads_, int64_t{1} * shape.batch * shape.heads * blocks, 1, work_of(shape),
           [&](int64_t task, int64_t, int thread) {
             const Head head(shape, task / blocks);
             const int first = static_cast<int>(task % blocks * QUERIES);
             const int last = std::min(first + static_cast<int>(QUERIES), shape.queries) - 1;
             const int keys = shape.visible(last);
             const real *keys_p = p + head.keys, *queries_q = q + head.queries;
             real* rows = inv_std + head.pairs;
             real* squares = scratch(thread) + PACKED_SIZE;
             for (int i = 0; i < keys; ++i) {
               const real* key = keys_p + static_cast<int64_t>(i) * shape.hidden;
               squares[i] = dot(key, key, head.width);
             }
             real* const to = rows + static_cast<int64_t>(first) * shape.keys;
             const View some_q{queries_q + static_cast<int64_t>(first) * shape.hidden, shape.hidden, 1},
                 all_p{keys_p, 1, shape.hidden};
             const Product dots{to, shape.keys, some_q, all_p, last - first + 1, keys, head.width, Into::WRITE};
             dots.M <= MOST_FEW ? multiply_few(dots) : multiply(dots, scratch(thread));
             for (int j = first; j <= last; ++j) {
               const int visible = shape.visible(j);
               real* row = rows + static_cast<int64_t>(j) * shape.keys;
               const real* query = queries_q + static_cast<int64_t>(j) * shape.hidden;
               finish_variances(row, squares, dot(query, query, head.width), keys_p, query, visible, head);
               const real width = static_cast<real>(head.width);
               for (int i = 0; i < visible; ++i) {
                 const real variance = row[i] / width;
                 row[i] = variance > 0 ? 1 / numerics::sqrt(variance) : 0;
               }
               std::fill(row + visible, row + shape.keys, real(0));
             }
           });
}

void Cpu::relation_shift(real* shift, const real* p, const real* q, const RelationShape& shape) {
  const int H = shape.hidden;
  reserve_scratch(H);
  parallel(threads_, shape.batch, 1, int64_t{1} * shape.batch * shape.keys * H * PASS,
           [&](int64_t b, int64_t, int thread) {
             real* largest = scratch(thread);  // (H) over the keys so far
             const real* keys = p + b * shape.capacity * H;
             std::copy_n(keys, H, largest);
             int seen = 1;
             for (int j = 0; j < shape.queries; ++j) {
               for (; seen < shape.visible(j); ++seen)
                 for (int c = 0; c < H; ++c)
                   largest[c] = numerics::max(keys[static_cast<int64_t>(seen) * H + c], largest[c]);
               const real* query = q + (b * shape.queries + j) * H;
               real top = largest[0] + query[0];
               for (int c = 1; c < H; ++c) top = numerics::max(largest[c] + query[c], top);
               shift[b * shape.queries + j] = top;
             }
           });
}

namespace {

// shifted (width) = q − shift: the shift of the exponent is subtracted once for each query, not once for each pair.
void shifted_query(real* shifted, const real* q, const real* shift, int64_t row, int width) {
  const real off = shift ? shift[row] : 0;
  for (int c = 0; c < width; ++c) shifted[c] = q[c] - off;
}

// Some channels of z = 1/n Σ_i ψ(…) for one query. Their sums stay in registers for all keys.
template <class Psi, class Channels>
void relate_channels(real* z, const real* factor, const real* p, const real* q, int visible, int64_t stride) {
  const Channels query = Channels::load(q);
  Channels sum = 0;
  for (int i = 0; i < visible; ++i)
    sum = add_values<Psi>(sum, Channels(factor[i]), Channels::load(p + i * stride) + query);
  (sum * (1 / static_cast<real>(visible))).store(z);
}

// The channels of one head from c on, COUNT at a time; the rest COUNT/2 at a time, and so on.
template <class Psi, int COUNT>
void relate_query(real* z, const real* factor, const real* p, const real* q, int visible, const Head& head, int c = 0) {
  for (; c + COUNT <= head.width; c += COUNT)
    relate_channels<Psi, Channels<COUNT>>(z + c, factor, p + c, q + c, visible, head.shape.hidden);
  if constexpr (COUNT > 1) relate_query<Psi, COUNT / 2>(z, factor, p, q, visible, head, c);
}

}  // namespace

void Cpu::relation(real* z, const real* inv_std, const real* shift, const real* p, const real* q,
                   const RelationShape& shape) {
  reserve_scratch(shape.head_width() + shape.capacity);
  const int64_t rows = static_cast<int64_t>(shape.batch) * shape.heads * shape.queries;
  with_activation(shape.activation, inv_std != nullptr, shape.head_width(), [&](auto psi) {
    using Psi = decltype(psi);
    parallel_rows(
        threads_, rows, 4, work_of(shape),
        [&](int64_t row, int thread) {
          const Head head(shape, row / shape.queries);
          const int j = static_cast<int>(row % shape.queries);
          const int64_t at = head.queries + static_cast<int64_t>(j) * shape.hidden;
          real *query = scratch(thread), *factor = query + head.width;
          for (int i = 0; i < shape.visible(j); ++i)
            factor[i] = Psi::factor(inv_std ? inv_std[row * shape.keys + i] : 1);
          shifted_query(query, q + at, shift, head.sample * shape.queries + j, head.width);
          relate_query<Psi, VECTORS * VECTOR_WIDTH>(z + at, factor, p + head.keys, query, shape.visible(j), head);
        },
        "relation");
  });
}

namespace {

// The pairs of one key and TOGETHER queries, whose rows are `stride` apart: add() adds their gradients to dp and dq.
// The fold of lane is Σ_c g d, which is needed only with the inner norm.
template <class Psi, bool NORMALIZED, int TOGETHER>
struct Pairs {
  real *dp, *dq;
  const real *dz, *p, *q;  // q (TOGETHER,width)
  int width;
  int64_t stride;
  real scale[TOGETHER], factor[TOGETHER];
  alignas(64) real lane[TOGETHER][LANES];

  [[gnu::always_inline]] void add() {
    constexpr int COUNT = std::min(VECTORS / TOGETHER * VECTOR_WIDTH, LANES);
    const int64_t whole = width / LANES * LANES;
    for (int c = 0; c < LANES; c += COUNT) add_channels<COUNT, true>(c, whole);
    if (whole < width) add_rest<LANES / 2>(whole);
  }

 private:
  // The last channels from c on, fewer than 2·COUNT
  template <int COUNT>
  [[gnu::always_inline]] void add_rest(int64_t c) {
    if (c + COUNT <= width) {
      add_channels<COUNT, false>(c, c + 1);
      c += COUNT;
    }
    if constexpr (COUNT > 1) add_rest<COUNT / 2>(c);
  }

  // COUNT channels from c on, and those before `end` that belong to the same lanes. FIRST: the lanes start from zero.
  template <int COUNT, bool FIRST>
  [[gnu::always_inline]] void add_channels(int64_t c, int64_t end) {
    using Query = Channels<COUNT>;
    constexpr int N = Query::REGISTERS;
    using All = typename Query::template Of<TOGETHER * N>;
    const auto rows = [](const real* x, int64_t step) __attribute__((always_inline)) {
      return All::template join<N>([&](int a) __attribute__((always_inline)) { return Query::load(x + a * step); });
    };
    const All factors = All::template join<N>([&](int a) __attribute__((always_inline)) { return Query(factor[a]); });
    real* const first_lane = lane[0] + c % LANES;
    Query along[TOGETHER];
    for (int a = 0; a < TOGETHER; ++a) along[a] = FIRST || !NORMALIZED ? Query(0) : Query::load(first_lane + a * LANES);
    for (; c < end; c += LANES) {
      const All d = rows(p + c, 0) + rows(q + c, width);
      const All g = rows(dz + c, stride) * slopes<Psi>(factors, d);
      Query dkey = Query::load(dp + c);
#pragma GCC unroll 2
      for (int a = 0; a < TOGETHER; ++a) {
        const Query passed = g.template part<N>(a * N), dquery = Query::load(dq + a * stride + c);
        if (NORMALIZED) {
          along[a] = fma(passed, d.template part<N>(a * N), along[a]);
          dkey = fma(Query(scale[a]), passed, dkey);
          fma(Query(scale[a]), passed, dquery).store(dq + a * stride + c);
        } else {
          dkey = dkey + passed;
          (dquery + passed).store(dq + a * stride + c);
        }
      }
      dkey.store(dp + c);
    }
    if (NORMALIZED)
      for (int a = 0; a < TOGETHER; ++a) along[a].store(first_lane + a * LANES);
  }
};

// All pairs of one head: dp and dq = their sums of inv_std·g; weight = w, with zeros for keys that a query does not
// see.
template <class Psi, bool NORMALIZED>
struct PairSweep {
  const Head& head;
  real *dp, *dq, *weight;
  const real *dz, *inv_std, *shift, *p, *q;
  real *shifted, *quads;  // scratch: (2,width) and (2,T,4)

  void run() {
    const int64_t H = head.shape.hidden, T = head.shape.keys;
    for (int64_t t = 0; t < T; ++t) {
      std::fill_n(dp + t * H, head.width, real(0));
      std::fill_n(dq + t * H, head.width, real(0));
    }
    int64_t j = 0;
    if constexpr (Psi::TOGETHER == 2) {
      for (; j + 2 <= T; j += 2) {
        const int64_t seen = head.shape.visible(static_cast<int>(j));
        shift_query(j, 0);
        shift_query(j + 1, 1);
        keys<2>(j, 0, seen, 0);
        keys<1>(j + 1, seen, head.shape.visible(static_cast<int>(j + 1)), 1);
      }
    }
    for (; j < T; ++j) {
      shift_query(j, 0);
      keys<1>(j, 0, head.shape.visible(static_cast<int>(j)), 0);
    }
    if (NORMALIZED)
      for (int64_t j = 0; j < T; ++j)
        std::fill(weight + j * T + head.shape.visible(static_cast<int>(j)), weight + (j + 1) * T, real(0));
  }

  void shift_query(int64_t j, int slot) {
    const int64_t T = head.shape.keys;
    shifted_query(shifted + slot * head.width, q + j * head.shape.hidden, shift, head.sample * T + j, head.width);
  }
  // The keys first … last−1 with TOGETHER queries from j on; query j is in `slot` of shifted.
  template <int TOGETHER>
  void keys(int64_t j, int64_t first, int64_t last, int slot) {
    const int64_t H = head.shape.hidden, T = head.shape.keys;
    for (int64_t i = first; i < last; ++i) {
      Pairs<Psi, NORMALIZED, TOGETHER> pairs;
      pairs.dp = dp + i * H;
      pairs.dq = dq + j * H;
      pairs.dz = dz + j * H;
      pairs.p = p + i * H;
      pairs.q = shifted + slot * head.width;
      pairs.width = head.width;
      pairs.stride = H;
      for (int a = 0; a < TOGETHER; ++a) {
        pairs.scale[a] = NORMALIZED ? inv_std[(j + a) * T + i] : 1;
        pairs.factor[a] = Psi::factor(pairs.scale[a]);
      }
      pairs.add();
      for (int a = 0; NORMALIZED && a < TOGETHER; ++a) fold_to_quad(quads + 4 * (a * T + i), pairs.lane[a]);
    }
    for (int a = 0; NORMALIZED && a < TOGETHER; ++a)
      weigh(weight + (j + a) * T + first, quads + 4 * (a * T + first), inv_std + (j + a) * T + first, last - first);
  }

  // w = s³ · Σ_c g d / width for n keys, s = inv_std
  void weigh(real* w, const real* first_quads, const real* s, int64_t n) {
    fold_quads(w, first_quads, n);
    const real width = static_cast<real>(head.width);
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) w[i] = s[i] * s[i] * s[i] * (w[i] / width);
  }
};

// Rows first … last: dx = center(dx) − x Σ_k w_k − Σ_k w_k other_k for k_first ≤ k ≤ k_last. w: a view (T,T), for each
// row its weights along k
void through_norm(real* dx, const real* x, const real* other, View w, int first, int last, int k_first, int k_last,
                  const Head& head, real* scratch) {
  const int64_t H = head.shape.hidden;
  const int rows = last - first + 1;
  real *packed = scratch, *mixed = scratch + PACKED_SIZE;
  Into into = Into::WRITE;
  for (int64_t k = k_first; k <= k_last; into = Into::ADD) {  // cut where the chain over 0 … T−1 is cut
    const int64_t next = std::min<int64_t>((k / CHUNK + 1) * CHUNK, k_last + 1);
    multiply({mixed, head.width, w.from(first, k), {other + k * H, H, 1}, rows, head.width, next - k, into}, packed);
    k = next;
  }
  for (int r = 0; r < rows; ++r) {
    real* row = dx + (first + r) * H;
    const real* own = x + (first + r) * H;
    real weights = 0;
    for (int64_t k = k_first; k <= k_last; ++k) weights += w.data[(first + r) * w.row + k * w.column];
    const real mean = sum_row(row, head.width) / static_cast<real>(head.width);
    for (int c = 0; c < head.width; ++c) row[c] = fma(-weights, own[c], row[c] - mean) - mixed[r * head.width + c];
  }
}

}  // namespace

void Cpu::relation_backward(real* dp, real* dq, real* weight, real* dz, const real* inv_std, const real* shift,
                            const real* p, const real* q, const RelationShape& shape) {
  const int64_t H = shape.hidden, T = shape.keys;
  parallel_rows(threads_, shape.batch * T, 16, shape.batch * T * H * PASS, [&](int64_t row, int) {
    const real mean = 1 / static_cast<real>(shape.visible(static_cast<int>(row % T)));
    for (int64_t c = 0; c < H; ++c) dz[row * H + c] *= mean;
  });
  constexpr int ROWS = 64;  // rows of one product with the weights
  reserve_scratch(std::max(PACKED_SIZE + int64_t(ROWS) * shape.head_width(), 2 * shape.head_width() + 8 * T));
  with_activation(shape.activation, inv_std != nullptr, shape.head_width(), [&](auto psi) {
    using Psi = decltype(psi);
    parallel(
        threads_, static_cast<int64_t>(shape.batch) * shape.heads, 1, 2 * work_of(shape),
        [&](int64_t number, int64_t, int thread) {
          const Head head(shape, number);
          real *head_dp = dp + head.keys, *head_dq = dq + head.queries;
          const real *head_p = p + head.keys, *head_q = q + head.queries;
          const real* head_dz = dz + head.queries;
          real *const shifted = scratch(thread), *const quads = shifted + 2 * head.width;
          if (!inv_std) {
            if constexpr (!std::is_same<Psi, ExpInRange>::value)  // ExpInRange requires normalized heads
              PairSweep<Psi, false>{head,  head_dp, head_dq, nullptr, head_dz, nullptr,
                                    shift, head_p,  head_q,  shifted, quads}
                  .run();
            return;
          }
          real* w = weight + head.pairs;
          const real* s = inv_std + head.pairs;
          PairSweep<Psi, true>{head, head_dp, head_dq, w, head_dz, s, shift, head_p, head_q, shifted, quads}.run();
          const int keys = shape.keys;
          for (int first = 0; first < keys; first += ROWS) {
            const int last = std::min(first + ROWS, keys) - 1;
            through_norm(head_dp, head_p, head_q, {w, 1, T}, first, last, shape.causal ? first : 0, keys - 1, head,
                         scratch(thread));
            through_norm(head_dq, head_q, head_p, {w, T, 1}, first, last, 0, shape.causal ? last : keys - 1, head,
                         scratch(thread));
          }
        },
        "relation_backward");
  });
}

}  // namespace petroglyph
