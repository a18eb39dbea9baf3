// Softmax attention, one query after the other.

#include <vector>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

// One head h of one sample b: its rows of q, k, v and of what lies as they do, each of head_width channels.
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

  real dot(const real* x, const real* y) const { return chain_dot(0, {x}, {y}, s.head_width); }
  // score_tn · log₂e
  real score(int64_t t, int64_t n) const {
    const real scale = LOG2_E / numerics::sqrt(static_cast<real>(s.head_width));
    real product = dot(in.q + query(t), in.k + key(n));
    if (in.positions) product += dot(in.q_position + query(t), in.positions + position(distance(t, n)));
    return in.bias ? fma(product, scale, LOG2_E * in.bias[distance(t, n) * s.heads + h]) : product * scale;
  }
  // e_tn
  real exponential(int64_t t, int64_t n, real top) const {
    return numerics::exp2_in_range(numerics::max(real(-126), score(t, n) - top));
  }
};

// Calls f(head) for every head of every sample.
template <class F>
void for_heads(const AttentionInput& in, const AttentionShape& s, F f) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) f(AttentionHead{in, s, b, h});
}

}  // namespace

void Reference::attention(real* y, real* top, real* inv_sum, const AttentionInput& in, const AttentionShape& s) {
  std::vector<real> e(static_cast<size_t>(s.keys));
  for_heads(in, s, [&](const AttentionHead& head) {
    for (int t = 0; t < s.queries; ++t) {
      const int64_t row = head.row(t), visible = s.visible(t);
      top[row] = lane_largest(visible, [&](int64_t n) { return head.score(t, n); });
      for (int64_t n = 0; n < visible; ++n) e[n] = head.exponential(t, n, top[row]);
      inv_sum[row] = 1 / lane_sum({e.data()}, visible);
      for (int64_t c = 0; c < s.head_width; ++c)
        y[head.output(t) + c] = inv_sum[row] * chain_dot(0, {e.data()}, {in.v + head.key(0) + c, s.key_step}, visible);
    }
  });
}

namespace {

// The gradients of one head, from the weights a (T,T) and the gradients of the scores ds (T,T).
void add_up_head(const AttentionGradient& out, const AttentionHead& head, const real* a, const real* ds,
                 const real* dy) {
  const AttentionShape& s = head.s;
  const AttentionInput& in = head.in;
  const int64_t T = s.keys;
  const real factor = 1 / numerics::sqrt(static_cast<real>(s.head_width));
  for (int64_t t = 0; t < T; ++t)
    for (int64_t c = 0; c < s.head_width; ++c) {
      const int64_t first = s.causal ? t : 0, visible = s.visible(static_cast<int>(t));
      out.dv[head.key(t) + c] = chain_dot(0, {a + t, T}, {dy + head.output(0) + c, s.width()}, first, T);
      out.dk[head.key(t) + c] = factor * chain_dot(0, {ds + t, T}, {in.q + head.query(0) + c, s.query_step}, first, T);
      out.dq[head.query(t) + c] = factor * chain_dot(0, {ds + t * T}, {in.k + head.key(0) + c, s.key_step}, visible);
      if (!in.positions) continue;
      const int64_t farthest = head.distance(t, 0);  // of key 0; key n is n nearer
      out.dq_position[head.query(t) + c] =
          factor * chain_sum(0, farthest + 1 - visible, farthest + 1, [&](real sum, int64_t distance) {
            return fma(ds[t * T + farthest - distance], in.positions[head.position(distance) + c], sum);
          });
    }
}

// One sample's and head's part of dbias or dpositions at one distance, in out.partial. The queries that see a key at
// this distance are first … end−1.
void add_up_distance(const AttentionGradient& out, const AttentionHead& head, const real* ds, int64_t distance) {
  const AttentionShape& s = head.s;
  const AttentionInput& in = head.in;
  const int64_t T = s.keys, apart = distance - s.nearest(), first = std::max<int64_t>(apart, 0),
                end = std::min(T, T + apart);
  if (out.dbias) {
    real& sum = out.partial[(head.b * T + distance) * s.heads + head.h];
    sum = 0;
    for (int64_t t = first; t < end; ++t) sum += ds[t * T + t - apart];
  }
  if (!in.positions) return;
  const real factor = 1 / numerics::sqrt(static_cast<real>(s.head_width));
  for (int64_t c = 0; c < s.head_width; ++c)
    out.partial[head.b * s.distances() * s.width() + head.position(distance) + c] =
        factor * chain_sum(0, first, end, [&](real sum, int64_t t) {
          return fma(ds[t * T + t - apart], in.q_position[head.query(t) + c], sum);
        });
}

}  // namespace

void Reference::attention_backward(const AttentionGradient& out, const real* dy, const real* y, const real* top,
                                   const real* inv_sum, const AttentionInput& in, const AttentionShape& s) {
  const int64_t T = s.keys;
  std::vector<real> a(static_cast<size_t>(T * T)), ds(a.size());
  for_heads(in, s, [&](const AttentionHead& head) {
    for (int64_t t = 0; t < T; ++t) {
      const real *g = dy + head.output(t), *out_t = y + head.output(t);
      const real along = lane_dot({g}, {out_t}, s.head_width);
      for (int64_t n = 0; n < s.visible(static_cast<int>(t)); ++n) {
        a[t * T + n] = head.exponential(t, n, top[head.row(t)]) * inv_sum[head.row(t)];
        ds[t * T + n] = a[t * T + n] * (head.dot(g, in.v + head.key(n)) - along);
      }
    }
    add_up_head(out, head, a.data(), ds.data(), dy);
    if (out.dbias || in.positions)
      for (int64_t distance = 0; distance < s.distances(); ++distance) add_up_distance(out, head, ds.data(), distance);
  });
  const int64_t size = in.positions ? int64_t{s.distances()} * s.width() : T * s.heads;
  for (int64_t i = 0; (out.dbias || in.positions) && i < size; ++i) {
    real sum = 0;
    for (int64_t b = 0; b < s.batch; ++b) sum += out.partial[b * size + i];
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
