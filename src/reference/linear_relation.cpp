// The relation in linear time, channel by channel. The derivation is in models/linear_causal_rn.cpp.

#include <vector>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::exp_nonpositive;
using numerics::fma;

namespace {

constexpr int64_t CHUNK_OF_RELATION = LinearRelationShape::CHUNK;

// A sum of exponentials, s·exp(m). Before its first term p a sum is (p, 0); one position by itself is (p, 1).
struct ExpSum {
  real m, s;
};

ExpSum operator+(ExpSum a, ExpSum b) {
  const real above = b.m - a.m, e = exp_nonpositive(-numerics::abs(above));
  return above > 0 ? ExpSum{b.m, fma(a.s, e, b.s)} : ExpSum{a.m, fma(b.s, e, a.s)};
}

// The sum of one channel: `m` is followed by `s` after H numbers.
ExpSum load(const real* m, int64_t H) { return {m[0], m[H]}; }
void store(real* m, int64_t H, ExpSum sum) { m[0] = sum.m, m[H] = sum.s; }

// exp(exponent − shift)
real shifted_exp(real exponent, const real* shift) {
  return shift ? exp_nonpositive(exponent - *shift) : numerics::exp(exponent);
}

}  // namespace

// A whole sequence is decoding from the first position. all, own, earlier: the sums of all positions so far, of the
// unfinished chunk and of the chunks before it.
void Reference::linear_relation(real* z, real* shift, real* sums, real* state, const real* p, const real* q,
                                const LinearRelationShape& s) {
  const int64_t T = s.positions, H = s.hidden;
  std::vector<ExpSum> seen(static_cast<size_t>(T * H));  // what position j sees
  std::vector<real> fresh(static_cast<size_t>(6 * H));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t c = 0; c < H; ++c) {
      real* const past = (state ? state + b * 6 * H : fresh.data()) + c;
      ExpSum all = load(past, H), own = load(past + 2 * H, H), earlier = load(past + 4 * H, H);
      for (int64_t j = 0; j < T; ++j) {
        const int64_t position = s.before + j, chunk = position / CHUNK_OF_RELATION;
        const real key = p[(b * T + j) * H + c];
        if (position == 0) all = {key, 0};
        seen[j * H + c] = all = all + ExpSum{key, 1};
        if (chunk > 0) own = (position % CHUNK_OF_RELATION == 0 ? ExpSum{key, 0} : own) + ExpSum{key, 1};
        if ((position + 1) % CHUNK_OF_RELATION != 0 && (!sums || j + 1 < T)) continue;
        earlier = all = chunk > 0 ? earlier + own : all;  // the end of a chunk
        if (sums) store(sums + (b * s.chunks() + chunk) * 2 * H + c, H, earlier);
      }
      store(past, H, all), store(past + 2 * H, H, own), store(past + 4 * H, H, earlier);
      for (int64_t j = 0; !s.causal && j < T; ++j) seen[j * H + c] = earlier;
    }
    for (int64_t j = 0; j < T; ++j) {
      const int64_t row = b * T + j;
      const real mean = 1 / static_cast<real>(s.visible(static_cast<int>(j)));
      const auto exponent = [&](int64_t c) { return q[row * H + c] + seen[j * H + c].m; };
      if (shift) shift[row] = lane_largest(H, exponent) + 0;
      for (int64_t c = 0; c < H; ++c)
        z[row * H + c] = shifted_exp(exponent(c), shift ? shift + row : nullptr) * seen[j * H + c].s * mean;
    }
  }
}

// later is scratch that these loops do not need.
void Reference::linear_relation_backward(real* dp, real* dq, real* /*later*/, const real* dz, const real* shift,
                                         const real* sums, const real* p, const real* q, const LinearRelationShape& s) {
  const int64_t T = s.positions, H = s.hidden, K = s.chunks();
  std::vector<real> m(static_cast<size_t>(T)), g(m.size());  // m before position j is added
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t c = 0; c < H; ++c) {
      const auto at = [&](int64_t j) { return (b * T + j) * H + c; };
      const auto up_to = [&](int64_t chunk) { return load(sums + (b * K + chunk) * 2 * H + c, H); };
      ExpSum seen = up_to(K - 1);
      for (int64_t j = 0; j < T; ++j) {
        if (s.causal && j % CHUNK_OF_RELATION == 0)
          seen = j > 0 ? up_to(j / CHUNK_OF_RELATION - 1) : ExpSum{p[at(0)], 0};
        m[j] = seen.m;
        if (s.causal) seen = seen + ExpSum{p[at(j)], 1};
        const real e = shifted_exp(q[at(j)] + seen.m, shift ? shift + b * T + j : nullptr);
        g[j] = dz[at(j)] * e * (1 / static_cast<real>(s.visible(static_cast<int>(j))));
        dq[at(j)] = g[j] * seen.s;
      }
      if (!s.causal) {
        real total = 0;
        for (int k = 0; k < K; ++k) {
          real own = 0;
          for (int64_t j = s.begin(k); j < s.end(k); ++j) own += g[j];
          total += own;
        }
        for (int64_t j = 0; j < T; ++j) dp[at(j)] = total * exp_nonpositive(p[at(j)] - seen.m);
        continue;
      }
      // a: A; own: the same of the chunk alone; later: A at the end of the chunk
      real a = 0, own = 0, later = 0;
      for (int64_t j = T - 1; j >= 0; --j) {
        const real above = p[at(j)] - m[j], e = exp_nonpositive(-numerics::abs(above));
        a += g[j], own += g[j];
        dp[at(j)] = above > 0 ? a : a * e;
        if (above > 0) a *= e, own *= e;  // position j has raised m
        if (j == 0 || j % CHUNK_OF_RELATION != 0) continue;
        const int64_t k = j / CHUNK_OF_RELATION;
        later = a = fma(later, exp_nonpositive(up_to(k - 1).m - up_to(k).m), own);
        own = 0;
      }
    }
}

}  // namespace petroglyph
