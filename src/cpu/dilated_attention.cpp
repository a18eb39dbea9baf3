// Sliding dilated attention: y (B,Q,H) from q (B,Q,H), k and v (B,T,H); each query attends to C keys. The formulas are
// in the catalogue, the loops that define them in reference/dilated_attention.cpp.
//
// Forward, one query at a time. Backward, first one query at a time (dq), then one key at a time (dk, dv): each number
// is written by one thread.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/loops.h"

namespace petroglyph {

using numerics::fma;

namespace {

constexpr int64_t ROWS = 32;  // queries, keys or rows of one task

// Calls f with n as a compile-time constant if it is a usual number of channels or keys, otherwise as an int. Gain:
// with 8 heads of 8 channels and two keys 0.5 µs instead of 1.7 µs for each position, forward and backward; the
// products of that layer take 2 µs.
template <class F>
auto with_count(int n, F f) {
  switch (n) {
    case 2: return f(std::integral_constant<int, 2>());
    case 4: return f(std::integral_constant<int, 4>());
    case 8: return f(std::integral_constant<int, 8>());
    case 16: return f(std::integral_constant<int, 16>());
    case 32: return f(std::integral_constant<int, 32>());
    case 64: return f(std::integral_constant<int, 64>());
    default: return f(n);
  }
}

template <class Count, class Add>
real sum_of(Count n, Add add) {
  if constexpr (std::is_same_v<Count, int>) {
    return n > 4 ? sum_lanes(n, add) : sum_few_lanes<4>([&](real sum, int i) { return i < n ? add(sum, i) : sum; });
  } else if constexpr (Count::value < LANES) {
    return sum_few_lanes<Count::value>(add);
  } else {
    return sum_lanes(Count::value, add);
  }
}

// A dot product after the folds of 16, 8 and 4: quad (4)
template <class Count>
void dot_to_quad(real* quad, const real* a, const real* b, Count n) {
  alignas(64) real lane[LANES] = {};
  if constexpr (std::is_same_v<Count, int>) {
    for (int c = 0; c + LANES <= n; c += LANES)
#pragma omp simd
      for (int l = 0; l < LANES; ++l) lane[l] = fma(a[c + l], b[c + l], lane[l]);
    for (int c = n / LANES * LANES, l = 0; c + l < n; ++l) lane[l] = fma(a[c + l], b[c + l], lane[l]);
    fold_to_quad(quad, lane);
  } else {
    constexpr int N = std::min(Count::value, LANES);
    for (int c = 0; c < n; c += N)
      for (int l = 0; l < N; ++l) lane[l] = fma(a[c + l], b[c + l], lane[l]);
    for (int l = 0; l < N && N < LANES; ++l) lane[l] += real(0);  // see sum_few_lanes
    if constexpr (N == LANES) fold_once<16>(lane, lane);
    if constexpr (N >= 16) fold_once<8>(lane, lane);
    if constexpr (N >= 8) fold_once<4>(lane, lane);
    for (int l = 0; l < 4; ++l) quad[l] = lane[l];
  }
}

constexpr int HEADS = 16;  // heads whose dot products are folded together

// to[h·step] = the dot product of head h's channels of a and b
void head_dots(real* to, int step, const real* a, const real* b, const DilatedShape& s) {
  with_count(s.head_width, [&](auto n) {
    alignas(64) real quads[4 * HEADS], sums[HEADS];
    for (int first = 0; first < s.heads; first += HEADS) {
      const int count = std::min(HEADS, s.heads - first);
      for (int h = 0; h < count; ++h, a += n, b += n) dot_to_quad(quads + 4 * h, a, b, n);
      fold_quads(sums, quads, count);
      for (int h = 0; h < count; ++h) to[(first + h) * step] = sums[h];
    }
  });
}

// The addresses of one query's keys and values, and their number.
class Query {
 public:
  Query(const DilatedInput& in, const DilatedShape& shape, int64_t row)
      : in_(in),
        shape_(shape),
        index_(row % shape.queries),
        sample_(row / shape.queries * shape.capacity),
        inside_(shape.inside(index_)) {}

  int attended() const { return in_.k_before ? shape_.chunk : inside_; }
  const real* key(int i) const { return i < inside_ ? in_.k + place(i) : in_.k_before; }
  const real* value(int i) const { return i < inside_ ? in_.v + place(i) : in_.v_before; }

 private:
  int64_t place(int i) const { return (sample_ + shape_.key(index_, i)) * shape_.key_step; }

  const DilatedInput& in_;
  const DilatedShape& shape_;
  int64_t index_, sample_;
  int inside_;
};

// Replaces weights (heads,C), scores · log₂e, by the softmax over the first n of each head.
template <class Count>
void softmax(real* weights, Count n, const DilatedShape& s) {
  for (int h = 0; h < s.heads; ++h) {
    real* score = weights + h * s.chunk;
    real top = score[0];
    for (int i = 1; i < n; ++i) top = numerics::max(score[i], top);
    for (int i = 0; i < n; ++i) score[i] -= top;
    for (int i = n; i < s.chunk; ++i) score[i] = 0;
  }
#pragma omp simd
  for (int i = 0; i < s.heads * s.chunk; ++i)
    weights[i] = numerics::exp2_in_range(numerics::max(real(-126), weights[i]));
  for (int h = 0; h < s.heads; ++h) {
    real* weight = weights + h * s.chunk;
    const real inv_sum = 1 / sum_of(n, [&](real sum, int64_t i) { return sum + weight[i]; });
    for (int i = 0; i < n; ++i) weight[i] *= inv_sum;
    for (int i = n; i < s.chunk; ++i) weight[i] = 0;
  }
}

// y += factor_h x for each head h; the factors are `step` numbers apart
void add_scaled(real* y, const real* factor, int step, const real* x, const DilatedShape& s) {
  with_count(s.head_width, [&](auto n) {
    for (int h = 0; h < s.heads; ++h, y += n, x += n) {
      const real f = factor[h * step];
#pragma omp simd
      for (int c = 0; c < n; ++c) y[c] = fma(f, x[c], y[c]);
    }
  });
}

// Up to so many rows are summed head by head, with sums in registers; more rows one after another, with sums in memory.
// Gain: 3 % of a step of the dilated RegularGPT.
constexpr int FEW = 8;

// y = Σ_i factor(i)[h·C] x(i) over ascending i < count for each head h
template <class Factor, class Row>
void weighted_sum(real* y, int count, Factor factor, Row x, const DilatedShape& s) {
  with_count(count > FEW ? 0 : s.head_width, [&](auto n) {
    if constexpr (std::is_same_v<decltype(n), int>) {
      std::fill_n(y, s.width(), real(0));
      for (int i = 0; i < count; ++i) add_scaled(y, factor(i), s.chunk, x(i), s);
    } else {
      for (int h = 0; h < s.heads; ++h) {
        alignas(64) real sum[n] = {};
        for (int i = 0; i < count; ++i) {
          const real f = factor(i)[h * s.chunk], *const row = x(i) + h * n;
          for (int c = 0; c < n; ++c) sum[c] = fma(f, row[c], sum[c]);
        }
        std::copy_n(sum, int(n), y + h * n);
      }
    }
  });
}

void attend(real* y, real* weights, const real* q, const Query& query, const DilatedInput& in, const DilatedShape& s) {
  const real scale = LOG2_E / numerics::sqrt(static_cast<real>(s.head_width));
  const int attended = query.attended();
  for (int i = 0; i < attended; ++i) {
    head_dots(weights + i, s.chunk, q, query.key(i), s);
    for (int score = i; score < s.heads * s.chunk; score += s.chunk)
      weights[score] = fma(weights[score], scale, LOG2_E * in.relative[score]);
  }
  with_count(attended, [&](auto n) { softmax(weights, n, s); });
  weighted_sum(
      y, attended, [&](int i) { return weights + i; }, [&](int i) { return query.value(i); }, s);
}

// ds and dq of one query
void query_gradients(real* ds, real* dq, const real* dy, const real* weights, const Query& query,
                     const DilatedShape& s) {
  const int attended = query.attended();
  for (int i = 0; i < attended; ++i) head_dots(ds + i, s.chunk, dy, query.value(i), s);
  with_count(attended, [&](auto n) {
    for (int h = 0; h < s.heads; ++h) {
      real* d = ds + h * s.chunk;
      const real* a = weights + h * s.chunk;
      const real mean = sum_of(n, [&](real sum, int64_t i) { return fma(a[i], d[i], sum); });
      for (int i = 0; i < n; ++i) d[i] = a[i] * (d[i] - mean);
      for (int i = n; i < s.chunk; ++i) d[i] = 0;
    }
  });
  weighted_sum(
      dq, attended, [&](int i) { return ds + i; }, [&](int i) { return query.key(i); }, s);
}

void scale_by_root(real* x, const DilatedShape& s) {
  const real factor = 1 / numerics::sqrt(static_cast<real>(s.head_width));
  for (int c = 0; c < s.width(); ++c) x[c] *= factor;
}

// A query that sees a key: its row in (B·Q), and the offset of the pair's score in head 0.
struct Seen {
  int64_t row, score;
};

// dk and dv of key n. seen (C): a buffer
void key_gradients(const DilatedGradient& out, const real* dy, const real* weights, const DilatedInput& in,
                   const DilatedShape& s, int64_t n, Seen* seen) {
  int count = 0;
  for (int i = 0; i < s.chunk; ++i) {
    const int64_t query = s.query(n % s.keys, i), row = n / s.keys * s.queries + query;
    if (query >= 0) seen[count++] = {row, row * s.heads * s.chunk + i};
  }
  real* const dk = out.dk + n * s.key_step;
  weighted_sum(
      dk, count, [&](int i) { return out.dscores + seen[i].score; },
      [&](int i) { return in.q + seen[i].row * s.query_step; }, s);
  scale_by_root(dk, s);
  weighted_sum(
      out.dv + n * s.key_step, count, [&](int i) { return weights + seen[i].score; },
      [&](int i) { return dy + seen[i].row * s.width(); }, s);
}

// The gradients of the key and value that stand for positions before the sequence.
void before_gradients(const DilatedGradient& out, const real* dy, const real* weights, const DilatedInput& in,
                      const DilatedShape& s) {
  std::fill_n(out.dk_before, s.width(), real(0));
  std::fill_n(out.dv_before, s.width(), real(0));
  for (int b = 0; b < s.batch; ++b)
    for (int j = 0; j < s.queries && s.inside(j) < s.chunk; ++j) {
      const int64_t row = static_cast<int64_t>(b) * s.queries + j, scores = row * s.heads * s.chunk;
      for (int i = s.inside(j); i < s.chunk; ++i) {
        add_scaled(out.dk_before, out.dscores + scores + i, s.chunk, in.q + row * s.query_step, s);
        add_scaled(out.dv_before, weights + scores + i, s.chunk, dy + row * s.width(), s);
      }
    }
  scale_by_root(out.dk_before, s);
}

int64_t work_of(const DilatedShape& shape, int64_t rows) { return rows * shape.chunk * shape.width() * 4; }

}  // namespace

void Cpu::dilated_attention(real* y, real* weights, const DilatedInput& in, const DilatedShape& shape) {
  const int64_t rows = shape.queries_of_all();
  parallel_rows(threads_, rows, ROWS, work_of(shape, rows), [&](int64_t row, int) {
    attend(y + row * shape.width(), weights + row * shape.heads * shape.chunk, in.q + row * shape.query_step,
           Query(in, shape, row), in, shape);
  });
}

void Cpu::dilated_attention_backward(const DilatedGradient& out, const real* dy, const real* weights,
                                     const DilatedInput& in, const DilatedShape& shape) {
  const int width = shape.width();
  const int64_t scores = static_cast<int64_t>(shape.heads) * shape.chunk;
  const int64_t queries = shape.queries_of_all(), keys = static_cast<int64_t>(shape.batch) * shape.keys;
  parallel_rows(threads_, queries, ROWS, work_of(shape, queries), [&](int64_t row, int) {
    real* dq = out.dq + row * shape.query_step;
    query_gradients(out.dscores + row * scores, dq, dy + row * width, weights + row * scores, Query(in, shape, row),
                    shape);
    scale_by_root(dq, shape);
  });
  std::vector<Seen> seen(static_cast<size_t>(threads_.count) * shape.chunk);
  parallel_rows(threads_, keys, ROWS, work_of(shape, keys), [&](int64_t n, int thread) {
    key_gradients(out, dy, weights, in, shape, n, &seen[static_cast<size_t>(thread) * shape.chunk]);
  });
  if (in.k_before) before_gradients(out, dy, weights, in, shape);
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

void Cpu::take_rows(real* y, const real* x, int B, int T, int first, int step, int count, int D) {
  parallel_rows(
      threads_, static_cast<int64_t>(B) * count, ROWS, int64_t{1} * B * count * D * PASS,
      [&](int64_t row, int) { std::copy_n(x + (row / count * T + first + row % count * step) * D, D, y + row * D); });
}

void Cpu::add_to_rows(real* x, const real* y, int B, int T, int first, int step, int count, int D) {
  parallel_rows(threads_, static_cast<int64_t>(B) * count, ROWS, int64_t{1} * B * count * D * PASS,
                [&](int64_t row, int) {
                  real* to = x + (row / count * T + first + row % count * step) * D;
                  for (int c = 0; c < D; ++c) to[c] += y[row * D + c];
                });
}

}  // namespace petroglyph
