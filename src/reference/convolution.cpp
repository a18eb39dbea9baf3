// The causal convolution along time, each channel by itself.

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

// v of channel c at position t. x (T,C), past (K−1,C) or null: of one sample
real convolve(const real* x, const real* past, const real* weight, real bias, int64_t t, int64_t c, int64_t C,
              int64_t K) {
  real v = bias;
  for (int64_t k = 0; k < K; ++k) {
    const int64_t from = t - (K - 1) + k;
    v = fma(weight[c * K + k], from >= 0 ? x[from * C + c] : past ? past[(from + K - 1) * C + c] : 0, v);
  }
  return v;
}

}  // namespace

void Reference::causal_convolution(real* y, real* past, const real* x, const real* weight, const real* bias, int B,
                                   int T, int C, int K) {
  for (int64_t b = 0; b < B; ++b) {
    const real* in = x + b * T * C;
    real* before = past ? past + b * (K - 1) * C : nullptr;
    for (int64_t t = 0; t < T; ++t)
      for (int64_t c = 0; c < C; ++c) {
        const real v = convolve(in, before, weight, bias[c], t, c, C, K);
        y[(b * T + t) * C + c] = v * numerics::sigmoid(v);
      }
    for (int64_t k = 0; past && k < K - 1; ++k)
      for (int64_t c = 0; c < C; ++c) {
        const int64_t from = T - (K - 1) + k;
        before[k * C + c] = from >= 0 ? in[from * C + c] : before[(from + K - 1) * C + c];
      }
  }
}

void Reference::causal_convolution_backward(real* dx, real* dweight, real* dbias, real* dy, const real* x,
                                            const real* weight, const real* bias, int B, int T, int C, int K) {
  const int64_t N = int64_t{B} * T;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < C; ++c) {
      const real v = convolve(x + n / T * T * C, nullptr, weight, bias[c], n % T, c, C, K), s = numerics::sigmoid(v);
      dy[n * C + c] *= fma(v * s, 1 - s, s);
    }
  const real* dv = dy;
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < C; ++c) {
      real sum = 0;
      for (int64_t k = 0; k < K; ++k)
        if (n % T + K - 1 - k < T) sum = fma(weight[c * K + k], dv[(n + K - 1 - k) * C + c], sum);
      dx[n * C + c] = sum;
    }
  for (int64_t c = 0; c < C; ++c)
    for (int64_t k = 0; k < K; ++k)
      dweight[c * K + k] = chain_sum(dweight[c * K + k], N, [&](real sum, int64_t n) {
        return n % T + k < K - 1 ? sum : fma(dv[n * C + c], x[(n - (K - 1) + k) * C + c], sum);
      });
  add_row_backward(dbias, dv, N, C);
}

}  // namespace petroglyph
