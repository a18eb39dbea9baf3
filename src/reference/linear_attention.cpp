// Attention without a softmax, position by position. The derivation is in models/linear_transformer.cpp.

#include <algorithm>
#include <vector>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

constexpr int64_t CHUNK_OF_ATTENTION = LinearAttentionShape::CHUNK;

// Rows of numbers, one for each position, `step` apart.
template <class Real>
struct PositionRows {
  Real* first;
  int64_t step;
  Real* operator[](int64_t t) const { return first + t * step; }
  Line column(int64_t c) const { return {first + c, step}; }
  PositionRows from(int64_t t) const { return {first + t * step, step}; }
};

// One head's rows of q, k and v (part 0, 1, 2) in qkv and dqkv, and in y and dy.
template <class Real>
PositionRows<Real> input_rows(Real* qkv, int part, int64_t b, int64_t h, const LinearAttentionShape& s) {
  return {qkv + (b * s.positions * 3 + part) * s.width() + h * s.head_width, 3 * s.width()};
}
template <class Real>
PositionRows<Real> output_rows(Real* y, int64_t b, int64_t h, const LinearAttentionShape& s) {
  return {y + b * s.positions * s.width() + h * s.head_width, s.width()};
}

// Adds a chunk of `length` positions to the state, S (d,d) and z (d): S += Σ x_t ⊗ w_t, z += Σ c_t x_t, or z += Σ x_t
// where c is null.
template <class X, class W>
void add_chunk(real* state, X x, W w, const real* c, int64_t length, const LinearAttentionShape& s) {
  const int64_t d = s.head_width;
  for (int64_t i = 0; i < d; ++i) {
    for (int64_t j = 0; j < d; ++j) state[i * d + j] = chain_dot(state[i * d + j], x.column(i), w.column(j), length);
    real sum = 0;
    for (int64_t t = 0; t < length; ++t) sum = c ? fma(c[t], x[t][i], sum) : sum + x[t][i];
    if (s.normalized) state[d * d + i] += sum;
  }
}

}  // namespace

// A whole causal sequence is decoding from the first position; the states after its chunks are what the backward pass
// reads. `past` is the state of decoding: S and z, and then k (CHUNK,d) and v (CHUNK,d) of the unfinished chunk.
void Reference::linear_attention(real* y, real* inv_sum, real* states, real* state, real* qkv,
                                 const LinearAttentionShape& s) {
  const int64_t d = s.head_width, size = s.state_size(), T = s.positions, width = s.width();
  for (int64_t n = 0; s.feature_map == FeatureMap::ELU_PLUS_ONE && n < s.batch * T; ++n)
    for (real* x = qkv + n * 3 * width; x < qkv + (n * 3 + 2) * width; ++x)
      *x = *x > 0 ? *x + 1 : numerics::exp_nonpositive(numerics::min(real(0), *x));
  for (int64_t number = 0; number < int64_t{s.batch} * s.heads; ++number) {
    const int64_t b = number / s.heads, h = number % s.heads;
    std::vector<real> fresh(static_cast<size_t>(s.decoder_state_size())), weights(CHUNK_OF_ATTENTION);
    real* const past = state ? state + number * s.decoder_state_size() : fresh.data();
    const PositionRows<real> k{past + size, d}, v{k[CHUNK_OF_ATTENTION], d};
    // Position t, which sees `seen` positions of its chunk and, unless null, the state
    const auto attend = [&](int64_t t, const real* S, int64_t seen) {
      const real* q = input_rows(qkv, 0, b, h, s)[t];
      for (int64_t n = 0; n < seen; ++n) weights[n] = chain_dot(0, q, k[n], d);
      real sum = S && s.normalized ? lane_dot(S + d * d, q, d) : 0;
      sum += lane_sum(weights.data(), seen);
      const real inverse = s.normalized ? 1 / sum : 1;
      for (int64_t c = 0; c < d; ++c) {
        const real earlier = S ? chain_dot(0, q, {S + c, d}, d) : 0;
        output_rows(y, b, h, s)[t][c] = chain_dot(earlier, weights.data(), v.column(c), seen) * inverse;
      }
      if (inv_sum) inv_sum[number * T + t] = inverse;
    };
    for (int64_t t = 0; t < T; ++t) {
      const int64_t chunk = (s.before + t) / CHUNK_OF_ATTENTION, place = (s.before + t) % CHUNK_OF_ATTENTION;
      const bool last = states && t + 1 == T;
      std::copy_n(input_rows(qkv, 1, b, h, s)[t], d, k[place]);
      std::copy_n(input_rows(qkv, 2, b, h, s)[t], d, v[place]);
      if (s.causal) attend(t, chunk > 0 ? past : nullptr, place + 1);
      if (place + 1 < CHUNK_OF_ATTENTION && !last) continue;
      if (chunk == 0) std::fill_n(past, size, real(0));
      add_chunk(past, k, v, nullptr, place + 1, s);
      if (states && !(s.causal && last))
        std::copy_n(past, size, states + (number * s.states() + (s.causal ? chunk : 0)) * size);
    }
    for (int64_t t = 0; !s.causal && t < T; ++t) attend(t, past, 0);
  }
}

// Chunk by chunk from the last one; `after` adds up L and h where the forward pass has S and z.
void Reference::linear_attention_backward(real* dqkv, real* /*later*/, real* dy, const real* y, real* inv_sum,
                                          const real* states, const real* qkv, const LinearAttentionShape& s) {
  const int64_t d = s.head_width, size = s.state_size(), chunks = s.chunks();
  const auto slope = [&](real phi) {
    return s.feature_map == FeatureMap::ELU_PLUS_ONE ? numerics::min(real(1), phi) : 1;
  };
  for (int64_t number = 0; number < int64_t{s.batch} * s.heads; ++number) {
    const int64_t b = number / s.heads, h = number % s.heads;
    const auto Q = input_rows(qkv, 0, b, h, s), K = input_rows(qkv, 1, b, h, s), V = input_rows(qkv, 2, b, h, s);
    const PositionRows<real> G = output_rows(dy, b, h, s);
    real* const C = s.normalized ? inv_sum + number * s.positions : nullptr;
    for (int64_t t = 0; C && t < s.positions; ++t) {
      for (int64_t i = 0; i < d; ++i) G[t][i] *= C[t];
      C[t] = -lane_dot(G[t], output_rows(y, b, h, s)[t], d);
    }
    std::vector<real> after(static_cast<size_t>(size));
    std::vector<real> a, da;  // of the pairs (t,n) of a chunk: q_t·k_n, and its gradient g_t·v_n + c_t
    // `length` positions from `first` on; S: the state before them, or null; L: that of the positions after, or null
    const auto gradients = [&](int64_t first, int64_t length, const real* S, const real* L) {
      const auto q = Q.from(first), k = K.from(first), v = V.from(first);
      const auto g = G.from(first), dq = input_rows(dqkv, 0, b, h, s).from(first),
                 dk = input_rows(dqkv, 1, b, h, s).from(first), dv = input_rows(dqkv, 2, b, h, s).from(first);
      const real* c = C ? C + first : nullptr;
      const int64_t pairs = s.causal ? length : 0;
      a.resize(static_cast<size_t>(pairs * pairs)), da.resize(a.size());
      for (int64_t t = 0; t < pairs; ++t)
        for (int64_t n = 0; n <= t; ++n) {
          a[t * pairs + n] = chain_dot(0, q[t], k[n], d);
          da[t * pairs + n] = chain_dot(0, g[t], v[n], d) + (c ? c[t] : 0);
        }
      for (int64_t t = 0; t < length; ++t)
        for (int64_t i = 0; i < d; ++i) {
          real to_q = S ? chain_dot(0, g[t], S + i * d, d) : 0, to_k = L ? chain_dot(0, v[t], L + i * d, d) : 0;
          if (S && c) to_q = fma(c[t], S[d * d + i], to_q);
          if (L && c) to_k += L[d * d + i];
          const real to_v = L ? chain_dot(0, k[t], {L + i, d}, d) : 0;
          const int64_t seen = std::min(t + 1, pairs);
          dq[t][i] = slope(q[t][i]) * chain_dot(to_q, da.data() + t * pairs, k.column(i), 0, seen);
          dk[t][i] = slope(k[t][i]) * chain_dot(to_k, {da.data() + t, pairs}, q.column(i), t, pairs);
          dv[t][i] = chain_dot(to_v, {a.data() + t, pairs}, g.column(i), t, pairs);
        }
    };
    const real* const own_states = states + number * s.states() * size;
    for (int n = 0; n < chunks; ++n) {
      const int chunk = s.causal ? static_cast<int>(chunks) - 1 - n : n;
      const int64_t first = s.begin(chunk), length = s.end(chunk) - first;
      if (s.causal)
        gradients(first, length, chunk > 0 ? own_states + (chunk - 1) * size : nullptr, n > 0 ? after.data() : nullptr);
      add_chunk(after.data(), Q.from(first), G.from(first), C ? C + first : nullptr, length, s);
    }
    if (!s.causal) gradients(0, s.positions, own_states, after.data());
  }
}

}  // namespace petroglyph
