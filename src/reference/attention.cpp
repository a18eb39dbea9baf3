// Softmax attention, one query after the other.

#include <algorithm>
#include <vector>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

// One head h of one sample b: where its rows of head_width channels begin.
struct AttentionHead {
  const AttentionInput& in;
  const AttentionShape& s;
  int64_t b, h;

  int64_t query(int64_t t) const { return (b * s.queries + t) * s.query_step + h * s.head_width; }  // in q
  int64_t key(int64_t n) const { return s.key_offset(b, h) + n * s.key_step; }                      // in k and v
  int64_t output(int64_t t) const { return (b * s.queries + t) * s.width() + h * s.head_width; }    // in y
  int64_t row(int64_t t) const { return (b * s.heads + h) * s.queries + t; }                        // in top, inv_sum
  // The number of the distance of key n from query t, and where its row of `positions` begins.
  int64_t distance(int64_t t, int64_t n) const { return s.keys - s.queries + t - n + s.nearest(); }
  int64_t position(int64_t distance) const { return distance * s.width() + h * s.head_width; }

  // score_tn · log₂e
  real score(int64_t t, int64_t n) const {
    const real scale = LOG2_E / numerics::sqrt(static_cast<real>(s.head_width));
    real product = chain_dot(0, in.q + query(t), in.k + key(n), s.head_width);
    if (in.positions)
      product += chain_dot(0, in.q_position + query(t), in.positions + position(distance(t, n)), s.head_width);
    return in.bias ? fma(product, scale, LOG2_E * in.bias[distance(t, n) * s.heads + h]) : product * scale;
  }
  // e_tn
  real exponential(int64_t t, int64_t n, real top) const {
    return numerics::exp2_in_range(numerics::max(real(-126), score(t, n) - top));
  }
};

}  // namespace

void Reference::attention(real* y, real* top, real* inv_sum, const AttentionInput& in, const AttentionShape& s) {
  std::vector<real> e(static_cast<size_t>(s.keys));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int t = 0; t < s.queries; ++t) {
        const AttentionHead head{in, s, b, h};
        const int64_t row = head.row(t), visible = s.visible(t);
        top[row] = lane_largest(visible, [&](int64_t n) { return head.score(t, n); });
        for (int64_t n = 0; n < visible; ++n) e[n] = head.exponential(t, n, top[row]);
        inv_sum[row] = 1 / lane_sum(e.data(), visible);
        for (int64_t c = 0; c < s.head_width; ++c)
          y[head.output(t) + c] = inv_sum[row] * chain_dot(0, e.data(), {in.v + head.key(0) + c, s.key_step}, visible);
      }
}

void Reference::attention_backward(const AttentionGradient& out, const real* dy, const real* y, const real* top,
                                   const real* inv_sum, const AttentionInput& in, const AttentionShape& s) {
  const int64_t T = s.keys, d = s.head_width, distances = s.distances();
  const real factor = 1 / numerics::sqrt(static_cast<real>(d));
  const int64_t part = in.positions ? distances * s.width() : out.dbias ? T * s.heads : 0;  // one sample's of `partial`
  std::fill_n(out.partial, s.batch * part, real(0));
  std::vector<real> a(static_cast<size_t>(T * T)), ds(a.size());   // (T,T): by query and key
  std::vector<real> ds_apart(static_cast<size_t>(T * distances));  // (T,distances): ds by query and distance
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) {
      const AttentionHead head{in, s, b, h};
      for (int64_t t = 0; t < T; ++t) {
        const real *g = dy + head.output(t), along = lane_dot(g, y + head.output(t), d);
        for (int64_t n = 0; n < s.visible(static_cast<int>(t)); ++n) {
          const int64_t pair = t * T + n, distance = head.distance(t, n);
          a[pair] = head.exponential(t, n, top[head.row(t)]) * inv_sum[head.row(t)];
          ds[pair] = a[pair] * (chain_dot(0, g, in.v + head.key(n), d) - along);
          ds_apart[t * distances + distance] = ds[pair];
          if (out.dbias) out.partial[b * part + distance * s.heads + h] += ds[pair];
        }
      }
      for (int64_t t = 0; t < T; ++t)
        for (int64_t c = 0; c < d; ++c) {
          const int64_t first = s.causal ? t : 0, visible = s.visible(static_cast<int>(t));
          const int64_t farthest = head.distance(t, 0);
          const Line q{in.q + head.query(0) + c, s.query_step}, k{in.k + head.key(0) + c, s.key_step};
          out.dv[head.key(t) + c] = chain_dot(0, {&a[t], T}, {dy + head.output(0) + c, s.width()}, first, T);
          out.dk[head.key(t) + c] = factor * chain_dot(0, {&ds[t], T}, q, first, T);
          out.dq[head.query(t) + c] = factor * chain_dot(0, &ds[t * T], k, 0, visible);
          if (in.positions)
            out.dq_position[head.query(t) + c] =
                factor * chain_dot(0, &ds_apart[t * distances], {in.positions + head.position(0) + c, s.width()},
                                   farthest + 1 - visible, farthest + 1);
        }
      for (int64_t distance = 0; in.positions && distance < distances; ++distance)
        for (int64_t c = 0; c < d; ++c) {
          const int64_t apart = distance - s.nearest(), first = std::max<int64_t>(apart, 0),
                        end = std::min(T, T + apart);
          const Line q{in.q_position + head.query(0) + c, s.query_step};
          out.partial[b * part + head.position(distance) + c] =
              factor * chain_dot(0, {&ds_apart[distance], distances}, q, first, end);
        }
    }
  for (int64_t i = 0; i < part; ++i) {
    real sum = 0;
    for (int64_t b = 0; b < s.batch; ++b) sum += out.partial[b * part + i];
    if (out.dbias) out.dbias[i] += sum;
    if (in.positions) out.dpositions[i] = sum;
  }
}

// ---- Position biases ------------------------------------------------------------------------------------------------

void Reference::kerple_bias(real* bias, const real* r1, const real* r2, int T, int heads) {
  for (int64_t n = 0; n < T; ++n)
    for (int64_t h = 0; h < heads; ++h) bias[n * heads + h] = -r1[h] * numerics::log1p(r2[h] * static_cast<real>(n));
}

void Reference::kerple_bias_backward(real* dr1, real* dr2, const real* dbias, const real* r1, const real* r2, int T,
                                     int heads) {
  for (int64_t h = 0; h < heads; ++h) {
    dr1[h] -= lane_sum(T, [&](real sum, int64_t n) {
      return fma(dbias[n * heads + h], numerics::log1p(r2[h] * static_cast<real>(n)), sum);
    });
    dr2[h] -= r1[h] * lane_sum(T, [&](real sum, int64_t n) {
                const real distance = static_cast<real>(n);
                return fma(dbias[n * heads + h], distance / fma(r2[h], distance, real(1)), sum);
              });
  }
}

}  // namespace petroglyph
