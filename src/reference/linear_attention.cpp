// Attention without a softmax, position by position. The derivation is in models/linear_transformer.cpp.

#include <algorithm>
#include <vector>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

constexpr int64_t CHUNK_OF_ATTENTION = LinearAttentionShape::CHUNK;

// Rows of d numbers, one for each position, `step` apart.
template <class Real>
struct PositionRows {
  Real* first;
  int64_t step;
  Real* operator[](int64_t t) const { return first + t * step; }
};

// One head of one sample: its rows in qkv and dqkv (part 0: q, 1: k, 2: v), its rows in y and dy, and its states.
struct LinearHead {
  const LinearAttentionShape& s;
  int64_t b, h, d = s.head_width, number = b * s.heads + h;

  template <class Real>
  PositionRows<Real> input(Real* qkv, int part) const {
    return {qkv + (b * s.positions * 3 + part) * s.width() + h * d, 3 * s.width()};
  }
  template <class Real>
  PositionRows<Real> output(Real* y) const {
    return {y + b * s.positions * s.width() + h * d, s.width()};
  }
};

template <class F>
void for_linear_heads(const LinearAttentionShape& s, F f) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h) f(LinearHead{s, b, h});
}

void map_features(const PositionRows<real>& x, const LinearAttentionShape& s) {
  for (int64_t t = 0; s.feature_map == FeatureMap::ELU_PLUS_ONE && t < s.positions; ++t)
    for (int64_t c = 0; c < s.head_width; ++c)
      x[t][c] = x[t][c] > 0 ? x[t][c] + 1 : numerics::exp_nonpositive(numerics::min(real(0), x[t][c]));
}

// Adds the positions first … end−1 of a chunk to the state, S (d,d) and z (d): S += Σ x_t ⊗ w_t, z += Σ c_t x_t, or
// z += Σ x_t where c is null.
void add_chunk(real* state, const PositionRows<const real>& x, const PositionRows<const real>& w, const real* c,
               int64_t first, int64_t end, const LinearAttentionShape& s) {
  const int64_t d = s.head_width;
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j)
      state[i * d + j] = chain_dot(state[i * d + j], {x[first] + i, x.step}, {w[first] + j, w.step}, end - first);
    real sum = 0;
    for (int64_t t = first; t < end; ++t) sum = c ? fma(c[t], x[t][i], sum) : sum + x[t][i];
    if (s.normalized) state[d * d + i] += sum;
  }
}

// One position: y (d) from its q, from the `seen` keys and values of its chunk and, where there is one, the state
// before the chunk. Returns inv_sum.
real attend(real* y, const real* q, const PositionRows<const real>& k, const PositionRows<const real>& v, int64_t seen,
            const real* state, const LinearAttentionShape& s) {
  const int64_t d = s.head_width;
  std::vector<real> weights;  // q·k_n
  for (int64_t n = 0; n < seen; ++n) weights.push_back(chain_dot(0, {q}, {k[n]}, d));
  real inv_sum = 1;
  if (s.normalized) {
    real sum = 0;
    if (state) sum = lane_dot({state + d * d}, {q}, d);
    sum += lane_sum({weights.data()}, seen);
    inv_sum = 1 / sum;
  }
  for (int64_t c = 0; c < d; ++c) {
    real sum = 0;
    if (state) sum = chain_dot(0, {q}, {state + c, d}, d);
    sum = chain_dot(sum, {weights.data()}, {v[0] + c, v.step}, seen);
    y[c] = sum * inv_sum;
  }
  return inv_sum;
}

}  // namespace

// A whole causal sequence is decoding from the first position; the states after its chunks are what the backward pass
// reads. `past` is the state of decoding: S and z, and then k (CHUNK,d) and v (CHUNK,d) of the unfinished chunk.
void Reference::linear_attention(real* y, real* inv_sum, real* states, real* state, real* qkv,
                                 const LinearAttentionShape& s) {
  const int64_t d = s.head_width, size = s.state_size();
  for_linear_heads(s, [&](const LinearHead& head) {
    std::vector<real> fresh(static_cast<size_t>(s.decoder_state_size()));
    real* const past = state ? state + head.number * s.decoder_state_size() : fresh.data();
    const PositionRows<real> k{past + size, d}, v{k[CHUNK_OF_ATTENTION], d};
    for (int part = 0; part < 2; ++part) map_features(head.input(qkv, part), s);
    const auto read = [&](int64_t t, const real* before, int64_t seen) {
      const real inverse =
          attend(head.output(y)[t], head.input(qkv, 0)[t], {k.first, d}, {v.first, d}, seen, before, s);
      if (inv_sum) inv_sum[head.number * s.positions + t] = inverse;
    };
    for (int64_t t = 0; t < s.positions; ++t) {
      const int64_t position = s.before + t, place = position % CHUNK_OF_ATTENTION;
      const bool first_chunk = position < CHUNK_OF_ATTENTION, last = states && t + 1 == s.positions;
      std::copy_n(head.input(qkv, 1)[t], d, k[place]);
      std::copy_n(head.input(qkv, 2)[t], d, v[place]);
      if (s.causal) read(t, first_chunk ? nullptr : past, place + 1);
      if (place + 1 < CHUNK_OF_ATTENTION && !last) continue;
      if (first_chunk) std::fill_n(past, size, real(0));
      add_chunk(past, {k.first, d}, {v.first, d}, nullptr, 0, place + 1, s);
      if (states && !(s.causal && last))
        std::copy_n(past, size,
                    states + (head.number * s.states() + (s.causal ? position / CHUNK_OF_ATTENTION : 0)) * size);
    }
    for (int64_t t = 0; !s.causal && t < s.positions; ++t) read(t, past, 0);
  });
}

namespace {

// One head of the backward pass: rows of d numbers, and c, or null where not normalized.
struct LinearGradient {
  PositionRows<real> dq, dk, dv;
  PositionRows<const real> q, k, v, g;
  const real* c;
};

// The positions first … end−1 of a chunk, with the state before it and that of the chunks after it, or null. Not
// causal: of all positions, and nothing within the chunk.
void chunk_gradients(const LinearGradient& x, int64_t first, int64_t end, const real* before, const real* after,
                     const LinearAttentionShape& s) {
  const int64_t d = s.head_width;
  const int64_t length = end - first;
  const auto pair = [&](int64_t t, int64_t n) { return static_cast<size_t>((t - first) * length + n - first); };
  std::vector<real> weights, da;  // of the pairs (t,n) within the chunk: q_t·k_n, and its gradient
  if (s.causal) {
    weights.resize(static_cast<size_t>(length * length));
    da.resize(weights.size());
    for (int64_t t = first; t < end; ++t)
      for (int64_t n = first; n <= t; ++n) {
        weights[pair(t, n)] = chain_dot(0, {x.q[t]}, {x.k[n]}, d);
        da[pair(t, n)] = chain_dot(0, {x.g[t]}, {x.v[n]}, d) + (x.c ? x.c[t] : 0);
      }
  }
  for (int64_t t = first; t < end; ++t)
    for (int64_t i = 0; i < d; ++i) {
      real dq = 0, dk = 0, dv = 0;
      if (before) {
        dq = chain_dot(0, {x.g[t]}, {before + i * d}, d);
        if (x.c) dq = fma(x.c[t], before[d * d + i], dq);
      }
      if (after) {
        dk = chain_dot(0, {x.v[t]}, {after + i * d}, d);
        if (x.c) dk += after[d * d + i];
        dv = chain_dot(0, {x.k[t]}, {after + i, d}, d);
      }
      if (s.causal) {  // the pairs within the chunk
        dq = chain_dot(dq, {&da[pair(t, first)]}, {x.k[first] + i, x.k.step}, t + 1 - first);
        dk = chain_dot(dk, {&da[pair(t, t)], length}, {x.q[t] + i, x.q.step}, end - t);
        dv = chain_dot(dv, {&weights[pair(t, t)], length}, {x.g[t] + i, x.g.step}, end - t);
      }
      const bool elu = s.feature_map == FeatureMap::ELU_PLUS_ONE;
      x.dq[t][i] = dq * (elu ? numerics::min(real(1), x.q[t][i]) : 1);
      x.dk[t][i] = dk * (elu ? numerics::min(real(1), x.k[t][i]) : 1);
      x.dv[t][i] = dv;
    }
}

}  // namespace

// `after` (d,d) and (d) adds up L and h, chunk by chunk, where the forward pass has S and z.
void Reference::linear_attention_backward(real* dqkv, real* /*later*/, real* dy, const real* y, real* inv_sum,
                                          const real* states, const real* qkv, const LinearAttentionShape& s) {
  const int64_t d = s.head_width, size = s.state_size(), chunks = s.chunks();
  for_linear_heads(s, [&](const LinearHead& head) {
    const PositionRows<real> g = head.output(dy);
    real* const c = s.normalized ? inv_sum + head.number * s.positions : nullptr;
    for (int64_t t = 0; c && t < s.positions; ++t) {
      for (int64_t i = 0; i < d; ++i) g[t][i] *= c[t];
      c[t] = -lane_dot({g[t]}, {head.output(y)[t]}, d);
    }
    const LinearGradient x{head.input(dqkv, 0), head.input(dqkv, 1), head.input(dqkv, 2), head.input(qkv, 0),
                           head.input(qkv, 1),  head.input(qkv, 2),  {g.first, g.step},   c};
    const real* const own_states = states + head.number * s.states() * size;
    std::vector<real> after(static_cast<size_t>(size));
    for (int n = 0; n < chunks; ++n) {
      const int chunk = s.causal ? static_cast<int>(chunks) - 1 - n : n;
      if (s.causal)
        chunk_gradients(x, s.begin(chunk), s.end(chunk), chunk > 0 ? own_states + (chunk - 1) * size : nullptr,
                        n > 0 ? after.data() : nullptr, s);
      add_chunk(after.data(), x.q, x.g, c, s.begin(chunk), s.end(chunk), s);
    }
    if (!s.causal) chunk_gradients(x, 0, s.positions, own_states, after.data(), s);
  });
}

}  // namespace petroglyph
