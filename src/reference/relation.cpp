// The pairwise relation, pair by pair. The derivation is in models/causal_rn.cpp.

#include <algorithm>
#include <vector>

#include "math/activation.h"
#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

// One head h of one sample b. Rows of its channels in p (B,capacity,H) and q (B,Q,H), and its pairs in (B,heads,Q,T).
struct RelationHead {
  const RelationShape& s;
  int64_t b, h, width = s.head_width();

  int64_t key(int64_t i) const { return (b * s.capacity + i) * s.hidden + h * width; }
  int64_t query(int64_t j) const { return (b * s.queries + j) * s.hidden + h * width; }
  int64_t pair(int64_t j, int64_t i) const { return ((b * s.heads + h) * s.queries + j) * s.keys + i; }
  int64_t visible(int64_t j) const { return s.visible(static_cast<int>(j)); }
};

// |p + q|²
real square_of_sum(const real* p, const real* q, int64_t width) {
  const real squares = lane_dot(p, p, width) + lane_dot(q, q, width);
  const real indirect = fma(real(2), chain_dot(0, q, p, width), squares);
  if (!(indirect < CANCELLATION * squares)) return indirect;
  return lane_sum(width, [&](real sum, int64_t c) { return fma(p[c] + q[c], p[c] + q[c], sum); });
}

}  // namespace

void Reference::relation_inv_std(real* inv_std, const real* p, const real* q, const RelationShape& s) {
  const int64_t width = s.head_width();
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t j = 0; j < s.queries; ++j)
        for (int64_t i = 0; i < s.keys; ++i) {
          const RelationHead head{s, b, h};
          real variance = 0;
          if (i < head.visible(j))
            variance = square_of_sum(p + head.key(i), q + head.query(j), width) / static_cast<real>(width);
          inv_std[head.pair(j, i)] = variance > 0 ? 1 / numerics::sqrt(variance) : 0;
        }
}

void Reference::relation_shift(real* shift, const real* p, const real* q, const RelationShape& s) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t j = 0; j < s.queries; ++j) {
      const real *keys = p + b * s.capacity * s.hidden, *query = q + (b * s.queries + j) * s.hidden;
      real& top = shift[b * s.queries + j];
      for (int64_t c = 0; c < s.hidden; ++c) {
        real largest = keys[c];
        for (int64_t i = 1; i < s.visible(static_cast<int>(j)); ++i)
          largest = numerics::max(keys[i * s.hidden + c], largest);
        top = c == 0 ? largest + query[c] : numerics::max(largest + query[c], top);
      }
    }
}

void Reference::relation(real* z, const real* inv_std, const real* shift, const real* p, const real* q,
                         const RelationShape& s) {
  with_activation(s.activation, inv_std != nullptr, s.head_width(), [&](auto psi) {
    using Psi = decltype(psi);
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t j = 0; j < s.queries; ++j)
        for (int64_t c = 0; c < s.hidden; ++c) {
          const RelationHead head{s, b, c / s.head_width()};
          const int64_t at = (b * s.queries + j) * s.hidden + c;
          const real query = q[at] - (shift ? shift[b * s.queries + j] : 0);
          real sum = 0;
          for (int64_t i = 0; i < head.visible(j); ++i) {
            const real factor = Psi::factor(inv_std ? inv_std[head.pair(j, i)] : 1);
            sum = add_value<Psi>(sum, factor, p[(b * s.capacity + i) * s.hidden + c] + query);
          }
          z[at] = sum * (1 / static_cast<real>(head.visible(j)));
        }
  });
}

namespace {

// dx = center(dx) − x Σ_k w_k − Σ_k w_k other_k over k = first … end−1. dx, x (width); other_k: rows `step` apart
void through_norm(real* dx, const real* x, int64_t width, Line w, const real* other, int64_t step, int64_t first,
                  int64_t end) {
  const real mean = lane_sum(dx, width) / static_cast<real>(width);
  real weights = 0;
  for (int64_t k = first; k < end; ++k) weights += w[k];
  for (int64_t c = 0; c < width; ++c)
    dx[c] = fma(-weights, x[c], dx[c] - mean) - chain_dot(0, w, {other + c, step}, first, end);
}

}  // namespace

void Reference::relation_backward(real* dp, real* dq, real* weight, real* dz, const real* inv_std, const real* shift,
                                  const real* p, const real* q, const RelationShape& s) {
  const int64_t H = s.hidden, T = s.keys, width = s.head_width();
  std::fill_n(dp, s.batch * T * H, real(0));
  std::fill_n(dq, s.batch * T * H, real(0));
  for (int64_t n = 0; n < s.batch * T; ++n)
    for (int64_t c = 0; c < H; ++c) dz[n * H + c] *= 1 / static_cast<real>(s.visible(static_cast<int>(n % T)));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) {
      const RelationHead head{s, b, h};
      with_activation(s.activation, inv_std != nullptr, width, [&](auto psi) {
        using Psi = decltype(psi);
        for (int64_t j = 0; j < T; ++j)
          for (int64_t i = 0; i < head.visible(j); ++i) {
            const int64_t key = head.key(i), query = head.query(j), pair = head.pair(j, i);
            const real scale = inv_std ? inv_std[pair] : 1, off = shift ? shift[b * T + j] : 0;
            const auto d = [&](int64_t c) { return p[key + c] + (q[query + c] - off); };
            const auto g = [&](int64_t c) { return dz[query + c] * Psi::slope(Psi::factor(scale), d(c)); };
            for (int64_t c = 0; c < width; ++c) {
              dp[key + c] = fma(scale, g(c), dp[key + c]);
              dq[query + c] = fma(scale, g(c), dq[query + c]);
            }
            if (!inv_std) continue;
            const real along = lane_sum(width, [&](real sum, int64_t c) { return fma(g(c), d(c), sum); });
            weight[pair] = scale * scale * scale * (along / static_cast<real>(width));
          }
      });
      for (int64_t t = 0; inv_std && t < T; ++t) {
        const int64_t key = head.key(t), query = head.query(t), keys = head.key(0), queries = head.query(0);
        through_norm(dp + key, p + key, width, {weight + head.pair(0, t), T}, q + queries, H, s.causal ? t : 0, T);
        through_norm(dq + query, q + query, width, weight + head.pair(t, 0), p + keys, H, 0, head.visible(t));
      }
    }
}

}  // namespace petroglyph
