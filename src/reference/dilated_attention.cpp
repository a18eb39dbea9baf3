// Sliding dilated attention, one query after the other.

#include <algorithm>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

// One query: the row (b,j) of all samples' queries. Its keys i = 0 … attended−1 are counted from the newest to the
// oldest.
struct DilatedQuery {
  const DilatedInput& in;
  const DilatedShape& s;
  int64_t row;

  int64_t query() const { return row % s.queries; }
  int64_t attended() const { return in.k_before ? s.chunk : s.inside(query()); }
  // Key i and its value (width): rows of k and v, or what stands before the sequence.
  const real* key(int64_t i) const { return inside(i) ? in.k + place(i) : in.k_before; }
  const real* value(int64_t i) const { return inside(i) ? in.v + place(i) : in.v_before; }

 private:
  bool inside(int64_t i) const { return i < s.inside(query()); }
  int64_t place(int64_t i) const { return (row / s.queries * s.capacity + s.key(query(), i)) * s.key_step; }
};

}  // namespace

void Reference::dilated_attention(real* y, real* weights, const DilatedInput& in, const DilatedShape& s) {
  const int64_t d = s.head_width, C = s.chunk;
  const real scale = LOG2_E / numerics::sqrt(static_cast<real>(d));
  for (int64_t row = 0; row < s.queries_of_all(); ++row)
    for (int64_t h = 0; h < s.heads; ++h) {
      const DilatedQuery query{in, s, row};
      const int64_t attended = query.attended();
      real* a = weights + (row * s.heads + h) * C;
      std::fill_n(a, C, real(0));
      for (int64_t i = 0; i < attended; ++i)
        a[i] = fma(lane_dot({in.q + row * s.query_step + h * d}, {query.key(i) + h * d}, d), scale,
                   LOG2_E * in.relative[h * C + i]);
      const real top = lane_largest(attended, [&](int64_t i) { return a[i]; });
      for (int64_t i = 0; i < attended; ++i) a[i] = numerics::exp2_in_range(numerics::max(real(-126), a[i] - top));
      const real inv_sum = 1 / lane_sum({a}, attended);
      for (int64_t i = 0; i < attended; ++i) a[i] *= inv_sum;
      for (int64_t c = h * d; c < (h + 1) * d; ++c) {
        real sum = 0;
        for (int64_t i = 0; i < attended; ++i) sum = fma(a[i], query.value(i)[c], sum);
        y[row * s.width() + c] = sum;
      }
    }
}

namespace {

// ds and dq of one query and head
void pass_to_query(const DilatedGradient& out, const real* dy, const real* weights, const DilatedQuery& query,
                   int64_t h) {
  const DilatedShape& s = query.s;
  const int64_t d = s.head_width, scores = (query.row * s.heads + h) * s.chunk, attended = query.attended();
  const real* a = weights + scores;
  real* ds = out.dscores + scores;
  std::fill_n(ds, s.chunk, real(0));
  for (int64_t i = 0; i < attended; ++i)
    ds[i] = lane_dot({dy + query.row * s.width() + h * d}, {query.value(i) + h * d}, d);
  const real mean = lane_dot({a}, {ds}, attended);
  for (int64_t i = 0; i < attended; ++i) ds[i] = a[i] * (ds[i] - mean);
  for (int64_t c = h * d; c < (h + 1) * d; ++c) {
    real sum = 0;
    for (int64_t i = 0; i < attended; ++i) sum = fma(ds[i], query.key(i)[c], sum);
    out.dq[query.row * s.query_step + c] = sum * (1 / numerics::sqrt(static_cast<real>(d)));
  }
}

}  // namespace

void Reference::dilated_attention_backward(const DilatedGradient& out, const real* dy, const real* weights,
                                           const DilatedInput& in, const DilatedShape& s) {
  const int64_t d = s.head_width;
  const real factor = 1 / numerics::sqrt(static_cast<real>(d));
  for (int64_t row = 0; row < s.queries_of_all(); ++row)
    for (int64_t h = 0; h < s.heads; ++h) pass_to_query(out, dy, weights, {in, s, row}, h);

  // Channel c of dk and dv, of its head's pairs: each adds its ds q_j to dk, and its a dy_j to dv.
  real dk = 0, dv = 0;
  const auto add_pair = [&](int64_t row, int64_t i, int64_t c) {
    const int64_t score = (row * s.heads + c / d) * s.chunk + i;
    dk = fma(out.dscores[score], in.q[row * s.query_step + c], dk);
    dv = fma(weights[score], dy[row * s.width() + c], dv);
  };
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t n = 0; n < s.keys; ++n)
      for (int64_t c = 0; c < s.width(); ++c) {
        dk = dv = 0;
        for (int64_t i = 0; i < s.chunk; ++i)
          if (s.query(n, i) >= 0) add_pair(b * s.queries + s.query(n, i), i, c);
        out.dk[(b * s.keys + n) * s.key_step + c] = dk * factor;
        out.dv[(b * s.keys + n) * s.key_step + c] = dv;
      }
  for (int64_t c = 0; in.k_before && c < s.width(); ++c) {
    dk = dv = 0;
    for (int64_t row = 0; row < s.queries_of_all(); ++row)
      for (int64_t i = s.inside(row % s.queries); i < s.chunk; ++i) add_pair(row, i, c);
    out.dk_before[c] = dk * factor;
    out.dv_before[c] = dv;
  }
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

void Reference::take_rows(real* y, const real* x, int B, int T, int first, int step, int count, int D) {
  for (int64_t b = 0; b < B; ++b)
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < D; ++c) y[(b * count + j) * D + c] = x[(b * T + first + j * step) * D + c];
}

void Reference::add_to_rows(real* x, const real* y, int B, int T, int first, int step, int count, int D) {
  for (int64_t b = 0; b < B; ++b)
    for (int64_t j = 0; j < count; ++j)
      for (int64_t c = 0; c < D; ++c) x[(b * T + first + j * step) * D + c] += y[(b * count + j) * D + c];
}

}  // namespace petroglyph
