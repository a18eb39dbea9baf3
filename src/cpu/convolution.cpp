// The causal convolution along time of each channel, then SiLU: y (B,T,C) = v σ(v), v_tc = bias_c + Σ_k weight_ck
// x_(t−K+1+k)c. The loops that define it are in reference/convolution.cpp.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/loops.h"
#include "cpu/several.h"

namespace petroglyph {

namespace {

using numerics::fma;

constexpr int64_t ROWS = 32;     // positions of one task
constexpr int64_t COLUMNS = 64;  // channels of one task

// taps (K,C) = weightᵀ, so that the channels of a tap are contiguous
void transpose(real* taps, const real* weight, int C, int K) {
  for (int k = 0; k < K; ++k)
    for (int c = 0; c < C; ++c) taps[static_cast<int64_t>(k) * C + c] = weight[static_cast<int64_t>(c) * K + k];
}

// y (C) = start + Σ_k taps_k ∘ row(k): for each channel a chain of fma over ascending k from `first` on. The sums stay
// in registers until they are complete.
template <class RowOf>
[[gnu::always_inline]] inline void convolve(real* y, const real* start, const real* taps, RowOf row, int64_t first,
                                            int64_t K, int C) {
  using Sums = Several<VECTOR_WIDTH, 4>;
  constexpr int WIDTH = 4 * VECTOR_WIDTH;
  int c = 0;
  for (; c + WIDTH <= C; c += WIDTH) {
    Sums sums = Sums::load(start + c);
    for (int64_t k = first; k < K; ++k) sums = fma(Sums::load(taps + k * C + c), Sums::load(row(k) + c), sums);
    sums.store(y + c);
  }
  for (; c < C; ++c) {
    real sum = start[c];
    for (int64_t k = first; k < K; ++k) sum = fma(taps[k * C + c], row(k)[c], sum);
    y[c] = sum;
  }
}

// v (C) at position t of one sample, from the sample's x (T,C) and past (K−1,C). zeros (C): if past is null
void convolve_past(real* v, const real* taps, const real* bias, const real* x, const real* past, const real* zeros,
                   int64_t t, int C, int64_t K) {
  convolve(
      v, bias, taps,
      [=](int64_t k) {
        const int64_t from = t - (K - 1) + k;
        return from >= 0 ? x + from * C : past ? past + (from + K - 1) * C : zeros;
      },
      0, K, C);
}

// past (K−1,C) of one sample = the last K − 1 rows of (past, x), x (T,C)
void move_past(real* past, const real* x, int64_t T, int C, int K) {
  for (int64_t k = 0; k < K - 1; ++k) {
    const int64_t from = T - (K - 1) + k;  // ascending k, so that no row is overwritten before it is moved
    std::copy_n(from >= 0 ? x + from * C : past + (from + K - 1) * C, C, past + k * C);
  }
}

}  // namespace

void Cpu::causal_convolution(real* y, real* past, const real* x, const real* weight, const real* bias, int B, int T,
                             int C, int K) {
  reserve_scratch(static_cast<int64_t>(K + 1) * C);
  real *taps = scratch(0), *zeros = taps + static_cast<int64_t>(K) * C;
  transpose(taps, weight, C, K);
  std::fill_n(zeros, C, real(0));
  parallel(threads_, static_cast<int64_t>(B) * T, ROWS, int64_t{1} * B * T * C * FUNCTION,
           [&](int64_t begin, int64_t end, int) {
             for (int64_t n = begin; n < end; ++n) {
               const int64_t b = n / T;
               real* row = y + n * C;
               convolve_past(row, taps, bias, x + b * T * C, past ? past + b * (K - 1) * C : nullptr, zeros, n % T, C,
                             K);
#pragma omp simd
               for (int c = 0; c < C; ++c) row[c] *= numerics::sigmoid(row[c]);
             }
           });
  if (!past) return;
  parallel(threads_, B, 1, int64_t{1} * B * K * C * PASS,
           [&](int64_t b, int64_t, int) { move_past(past + b * (K - 1) * C, x + b * T * C, T, C, K); });
}

namespace {

// For the channels begin … end−1 and one chunk of rows first … last−1: sums (K,COLUMNS) += Σ dv x, bias_sums (COLUMNS)
// += Σ dv
void sum_taps(real* sums, real* bias_sums, const real* dv, const real* x, int64_t first, int64_t last, int T, int C,
              int K, int64_t begin, int64_t end) {
  for (int64_t n = first; n < last; ++n) {
    const int64_t t = n % T;
    const real* d = dv + n * C;
    for (int64_t c = begin; c < end; ++c) bias_sums[c - begin] += d[c];
    for (int64_t k = std::max<int64_t>(K - 1 - t, 0); k < K; ++k) {
      const real* row = x + (n - (K - 1) + k) * C;
      for (int64_t c = begin; c < end; ++c)
        sums[k * COLUMNS + c - begin] = fma(d[c], row[c], sums[k * COLUMNS + c - begin]);
    }
  }
}

}  // namespace

void Cpu::causal_convolution_backward(real* dx, real* dweight, real* dbias, real* dy, const real* x, const real* weight,
                                      const real* bias, int B, int T, int C, int K) {
  const int64_t N = static_cast<int64_t>(B) * T, taps_size = static_cast<int64_t>(K) * C;
  reserve_scratch(std::max<int64_t>(taps_size + 2 * C, taps_size + (K + 1) * COLUMNS));
  real *taps = scratch(0), *zeros = taps + taps_size;  // scratch(thread) + taps_size … is each thread's own buffer
  transpose(taps, weight, C, K);
  std::fill_n(zeros, C, real(0));
  parallel_rows(threads_, N, ROWS, N * C * FUNCTION, [&](int64_t n, int thread) {
    real *v = scratch(thread) + taps_size + C, *row = dy + n * C;
    convolve_past(v, taps, bias, x + n / T * T * C, nullptr, zeros, n % T, C, K);
#pragma omp simd
    for (int c = 0; c < C; ++c) {
      const real s = numerics::sigmoid(v[c]);
      row[c] *= fma(v[c] * s, 1 - s, s);
    }
  });
  const real* dv = dy;
  parallel_rows(threads_, N, ROWS, N * C * FUNCTION, [&](int64_t n, int) {
    const int64_t first = std::max<int64_t>(K - T + n % T, 0);  // skips positions after the last one
    const auto row = [=](int64_t k) { return dv + (n + K - 1 - k) * C; };
    convolve(dx + n * C, zeros, taps, row, first, K, C);
  });
  parallel(threads_, C, COLUMNS, N * C * FUNCTION, [&](int64_t begin, int64_t end, int thread) {
    real *sums = scratch(thread) + taps_size, *bias_sums = sums + K * COLUMNS;
    for (int64_t chunk = 0; chunk < N; chunk += CHUNK) {
      std::fill_n(sums, (K + 1) * COLUMNS, real(0));
      sum_taps(sums, bias_sums, dv, x, chunk, std::min(chunk + CHUNK, N), T, C, K, begin, end);
      for (int64_t c = begin; c < end; ++c) {
        for (int64_t k = 0; k < K; ++k) dweight[c * K + k] += sums[k * COLUMNS + c - begin];
        dbias[c] += bias_sums[c - begin];
      }
    }
  });
}

}  // namespace petroglyph
