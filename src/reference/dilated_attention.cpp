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
  int64_t row, j = row % s.queries;

  int64_t attended() const { return in.k_before ? s.chunk : s.inside(j); }
  // The row (width) of key i among `rows`, which lie as k does; or what stands before the sequence.
  template <class Real>
  Real* at_key(Real* rows, Real* before, int64_t i) const {
    return i < s.inside(j) ? rows + (row / s.queries * s.capacity + s.key(j, i)) * s.key_step : before;
  }
};

}  // namespace

void Reference::dilated_attention(real* y, real* weights, const DilatedInput& in, const DilatedShape& s) {
  const int64_t d = s.head_width, C = s.chunk;
  const real scale = LOG2_E / numerics::sqrt(static_cast<real>(d));
  std::fill_n(weights, s.queries_of_all() * s.heads * C, real(0));
  for (int64_t row = 0; row < s.queries_of_all(); ++row)
    for (int64_t h = 0; h < s.heads; ++h) {
      const DilatedQuery query{in, s, row};
      const int64_t attended = query.attended();
      real* a = weights + (row * s.heads + h) * C;
      for (int64_t i = 0; i < attended; ++i)
        a[i] = fma(lane_dot(in.q + row * s.query_step + h * d, query.at_key(in.k, in.k_before, i) + h * d, d), scale,
                   LOG2_E * in.relative[h * C + i]);
      const real top = lane_largest(attended, [&](int64_t i) { return a[i]; });
      for (int64_t i = 0; i < attended; ++i) a[i] = numerics::exp2_in_range(numerics::max(real(-126), a[i] - top));
      const real inv_sum = 1 / lane_sum(a, attended);
      for (int64_t i = 0; i < attended; ++i) a[i] *= inv_sum;
      for (int64_t c = h * d; c < (h + 1) * d; ++c) {
        real sum = 0;
        for (int64_t i = 0; i < attended; ++i) sum = fma(a[i], query.at_key(in.v, in.v_before, i)[c], sum);
        y[row * s.width() + c] = sum;
      }
    }
}

// A later query sees a key as an older one. So over ascending queries each key's sums take its pairs by ascending i.
void Reference::dilated_attention_backward(const DilatedGradient& out, const real* dy, const real* weights,
                                           const DilatedInput& in, const DilatedShape& s) {
  const int64_t d = s.head_width, width = s.width(), keys = int64_t{s.batch} * s.keys;
  const real factor = 1 / numerics::sqrt(static_cast<real>(d));
  for (int64_t n = 0; n < keys; ++n)
    for (int64_t c = 0; c < width; ++c) out.dk[n * s.key_step + c] = out.dv[n * s.key_step + c] = 0;
  for (int64_t c = 0; in.k_before && c < width; ++c) out.dk_before[c] = out.dv_before[c] = 0;
  std::fill_n(out.dscores, s.queries_of_all() * s.heads * s.chunk, real(0));
  for (int64_t row = 0; row < s.queries_of_all(); ++row)
    for (int64_t h = 0; h < s.heads; ++h) {
      const DilatedQuery query{in, s, row};
      const int64_t attended = query.attended(), scores = (row * s.heads + h) * s.chunk;
      const real *a = weights + scores, *g = dy + row * width, *q = in.q + row * s.query_step;
      real* ds = out.dscores + scores;
      for (int64_t i = 0; i < attended; ++i) ds[i] = lane_dot(g + h * d, query.at_key(in.v, in.v_before, i) + h * d, d);
      const real mean = lane_dot(a, ds, attended);
      for (int64_t i = 0; i < attended; ++i) ds[i] = a[i] * (ds[i] - mean);
      for (int64_t c = h * d; c < (h + 1) * d; ++c) {
        real dq = 0;
        for (int64_t i = 0; i < attended; ++i) {
          real &dk = query.at_key(out.dk, out.dk_before, i)[c], &dv = query.at_key(out.dv, out.dv_before, i)[c];
          dq = fma(ds[i], query.at_key(in.k, in.k_before, i)[c], dq);
          dk = fma(ds[i], q[c], dk);
          dv = fma(a[i], g[c], dv);
        }
        out.dq[row * s.query_step + c] = dq * factor;
      }
    }
  for (int64_t n = 0; n < keys; ++n)
    for (int64_t c = 0; c < width; ++c) out.dk[n * s.key_step + c] *= factor;
  for (int64_t c = 0; in.k_before && c < width; ++c) out.dk_before[c] *= factor;
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
