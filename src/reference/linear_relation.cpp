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

// The sums of one row (2,H): m of every channel, then s.
struct ExpSums {
  real* m;
  int64_t H;

  ExpSum get(int64_t c) const { return {m[c], m[H + c]}; }
  void set(int64_t c, ExpSum sum) const { m[c] = sum.m, m[H + c] = sum.s; }
};

// z_j (H) and shift_j, from the sums of the positions that j sees
void relate(real* z, real* shift, ExpSums sums, const real* q, int visible) {
  const real mean = 1 / static_cast<real>(visible);
  if (shift) *shift = lane_largest(sums.H, [&](int64_t c) { return q[c] + sums.m[c]; }) + 0;
  for (int64_t c = 0; c < sums.H; ++c) {
    const ExpSum sum = sums.get(c);
    z[c] = (shift ? exp_nonpositive(q[c] + sum.m - *shift) : numerics::exp(q[c] + sum.m)) * sum.s * mean;
  }
}

}  // namespace

// A whole sequence is decoding from the first position. all, own, earlier: the sums of all positions so far, of the
// unfinished chunk and of the chunks before it.
void Reference::linear_relation(real* z, real* shift, real* sums, real* state, const real* p, const real* q,
                                const LinearRelationShape& s) {
  const int64_t H = s.hidden;
  std::vector<real> fresh(static_cast<size_t>(6 * H));
  for (int64_t b = 0; b < s.batch; ++b) {
    real* const past = state ? state + b * 6 * H : fresh.data();
    const ExpSums all{past, H}, own{past + 2 * H, H}, earlier{past + 4 * H, H};
    const auto relate_row = [&](int64_t j, ExpSums seen) {
      const int64_t row = b * s.positions + j;
      relate(z + row * H, shift ? shift + row : nullptr, seen, q + row * H, s.visible(static_cast<int>(j)));
    };
    for (int64_t j = 0; j < s.positions; ++j) {
      const int64_t position = s.before + j, place = position % CHUNK_OF_RELATION;
      const bool first_chunk = position < CHUNK_OF_RELATION;
      for (int64_t c = 0; c < H; ++c) {
        const real key = p[(b * s.positions + j) * H + c];
        all.set(c, (position == 0 ? ExpSum{key, 0} : all.get(c)) + ExpSum{key, 1});
        if (!first_chunk) own.set(c, (place == 0 ? ExpSum{key, 0} : own.get(c)) + ExpSum{key, 1});
      }
      if (s.causal) relate_row(j, all);
      if (place + 1 < CHUNK_OF_RELATION && (!sums || j + 1 < s.positions)) continue;
      for (int64_t c = 0; c < H; ++c) {  // the end of a chunk
        earlier.set(c, first_chunk ? all.get(c) : earlier.get(c) + own.get(c));
        all.set(c, earlier.get(c));
        if (sums) ExpSums{sums + (b * s.chunks() + position / CHUNK_OF_RELATION) * 2 * H, H}.set(c, earlier.get(c));
      }
    }
    for (int64_t j = 0; !s.causal && j < s.positions; ++j) relate_row(j, earlier);
  }
}

namespace {

// One channel c of one sample b.
struct RelationChannel {
  const LinearRelationShape& s;
  int64_t b, c;

  int64_t at(int64_t j) const { return (b * s.positions + j) * s.hidden + c; }  // of p, q, z
  ExpSum sum(const real* sums, int64_t chunk) const {
    const real* m = sums + (b * s.chunks() + chunk) * 2 * s.hidden + c;
    return {m[0], m[s.hidden]};
  }
};

// g_j, where `seen` is what z_j was made of
real gradient_of_sum(const RelationChannel& channel, int64_t j, ExpSum seen, const real* dz, const real* shift,
                     const real* q) {
  const real exponent = q[channel.at(j)] + seen.m;
  const real e =
      shift ? exp_nonpositive(exponent - shift[channel.b * channel.s.positions + j]) : numerics::exp(exponent);
  return dz[channel.at(j)] * e * (1 / static_cast<real>(channel.s.visible(static_cast<int>(j))));
}

// Chunk k: dq; dp from a, the sum over the later chunks at the m of the chunk's end. Returns the chunk's own sum at the
// m before it.
real causal_chunk(real* dp, real* dq, const RelationChannel& channel, int64_t k, real a, const real* dz,
                  const real* shift, const real* sums, const real* p, const real* q) {
  const int64_t begin = channel.s.begin(static_cast<int>(k)), end = channel.s.end(static_cast<int>(k));
  ExpSum seen = k > 0 ? channel.sum(sums, k - 1) : ExpSum{p[channel.at(0)], 0};
  std::vector<real> g, m = {seen.m};  // m: before each position, and behind the last
  for (int64_t j = begin; j < end; ++j) {
    seen = seen + ExpSum{p[channel.at(j)], 1};
    m.push_back(seen.m);
    g.push_back(gradient_of_sum(channel, j, seen, dz, shift, q));
    dq[channel.at(j)] = g.back() * seen.s;
  }
  real own = 0;
  for (int64_t j = end - 1; j >= begin; --j) {
    const real above = p[channel.at(j)] - m[j - begin], e = exp_nonpositive(-numerics::abs(above));
    a += g[j - begin];
    own += g[j - begin];
    dp[channel.at(j)] = above > 0 ? a : a * e;
    if (above > 0) a *= e, own *= e;  // position j has raised m
  }
  return own;
}

void all_positions(real* dp, real* dq, real* later, const RelationChannel& channel, const real* dz, const real* shift,
                   const real* sums, const real* p, const real* q) {
  const LinearRelationShape& s = channel.s;
  const ExpSum seen = channel.sum(sums, s.chunks() - 1);
  real& total = later[channel.b * s.chunks() * s.hidden + channel.c];
  total = 0;
  for (int k = 0; k < s.chunks(); ++k) {
    real own = 0;
    for (int64_t j = s.begin(k); j < s.end(k); ++j) {
      const real g = gradient_of_sum(channel, j, seen, dz, shift, q);
      dq[channel.at(j)] = g * seen.s;
      own += g;
    }
    total = k > 0 ? total + own : own;
  }
  for (int64_t j = 0; j < s.positions; ++j) dp[channel.at(j)] = total * exp_nonpositive(p[channel.at(j)] - seen.m);
}

}  // namespace

void Reference::linear_relation_backward(real* dp, real* dq, real* later, const real* dz, const real* shift,
                                         const real* sums, const real* p, const real* q, const LinearRelationShape& s) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t c = 0; c < s.hidden; ++c) {
      const RelationChannel channel{s, b, c};
      if (!s.causal) {
        all_positions(dp, dq, later, channel, dz, shift, sums, p, q);
        continue;
      }
      real a = 0;
      for (int64_t k = s.chunks() - 1; k >= 0; --k) {
        const real own = causal_chunk(dp, dq, channel, k, a, dz, shift, sums, p, q);
        if (k > 0) a = fma(a, exp_nonpositive(channel.sum(sums, k - 1).m - channel.sum(sums, k).m), own);
      }
    }
}

}  // namespace petroglyph
