// The causal convolution along time. A thread has one channel of one position: neighbours in a warp have neighbouring
// channels, and the K rows that they read come from the cache after the first.

#include "gpu/columns.cuh"
#include "gpu/gpu.h"

namespace petroglyph {

namespace {

using numerics::fma;

constexpr int THREADS = 256;

struct Filter {
  const float *weight, *bias;  // (C,K), (C)
  int64_t rows;                // B·T
  int T, C, K;

  // v at row n, channel c: one chain over ascending k from the bias. past (B,K−1,C) or null
  __device__ float convolve(const float* x, const float* past, int64_t n, int c) const {
    const int64_t b = n / T, t = n % T;
    float v = bias[c];
    for (int k = 0; k < K; ++k) {
      const int64_t from = t - (K - 1) + k;
      const float* row = from >= 0 ? x + (b * T + from) * C : past ? past + (b * (K - 1) + from + K - 1) * C : nullptr;
      v = fma(weight[static_cast<int64_t>(c) * K + k], row ? row[c] : 0.0f, v);
    }
    return v;
  }
};

__global__ void convolve_rows(float* y, const float* x, const float* past, Filter filter) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= filter.rows * filter.C) return;
  const float v = filter.convolve(x, past, i / filter.C, static_cast<int>(i % filter.C));
  y[i] = v * numerics::sigmoid(v);
}

// past (B,K−1,C) = the last K − 1 of itself and x. A thread has a channel of a sample and goes upward, so that what is
// still to be moved is not overwritten.
__global__ void move_past(float* past, const float* x, Filter filter) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= filter.rows / filter.T * filter.C) return;
  const int64_t b = i / filter.C, c = i % filter.C;
  float* own = past + b * (filter.K - 1) * filter.C + c;
  for (int k = 0; k < filter.K - 1; ++k) {
    const int from = filter.T - (filter.K - 1) + k;
    own[static_cast<int64_t>(k) * filter.C] =
        from >= 0 ? x[(b * filter.T + from) * filter.C + c] : own[static_cast<int64_t>(from + filter.K - 1) * filter.C];
  }
}

// dy becomes dv.
__global__ void through_silu(float* dy, const float* x, Filter filter) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= filter.rows * filter.C) return;
  const float v = filter.convolve(x, nullptr, i / filter.C, static_cast<int>(i % filter.C));
  const float s = numerics::sigmoid(v);
  dy[i] *= fma(v * s, 1 - s, s);
}

__global__ void input_gradient(float* dx, const float* dv, Filter filter) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= filter.rows * filter.C) return;
  const int64_t n = i / filter.C, c = i % filter.C;
  const int t = static_cast<int>(n % filter.T);
  float sum = 0;
  for (int k = max(filter.K - filter.T + t, 0); k < filter.K; ++k)
    sum = fma(filter.weight[c * filter.K + k], dv[(n + filter.K - 1 - k) * filter.C + c], sum);
  dx[i] = sum;
}

// Column c·K + k of the rows of dv ∘ (x, k taps back)
struct AddTap {
  const float *dv, *x;
  int T, C, K;

  __device__ float operator()(float sum, int64_t n, int column) const {
    const int c = column / K, back = K - 1 - column % K;
    return n % T >= back ? fma(dv[n * C + c], x[(n - back) * C + c], sum) : sum;
  }
};

}  // namespace

void Gpu::causal_convolution(real* y, real* past, const real* x, const real* weight, const real* bias, int B, int T,
                             int C, int K) {
  const Filter filter{weight, bias, static_cast<int64_t>(B) * T, T, C, K};
  LAUNCH(convolve_rows, blocks_for(filter.rows * C, THREADS), THREADS, 0, stream_, y, x, past, filter);
  if (past && K > 1)
    LAUNCH(move_past, blocks_for(static_cast<int64_t>(B) * C, THREADS), THREADS, 0, stream_, past, x, filter);
}

void Gpu::causal_convolution_backward(real* dx, real* dweight, real* dbias, real* dy, const real* x, const real* weight,
                                      const real* bias, int B, int T, int C, int K) {
  const Filter filter{weight, bias, static_cast<int64_t>(B) * T, T, C, K};
  const unsigned blocks = blocks_for(filter.rows * C, THREADS);
  LAUNCH(through_silu, blocks, THREADS, 0, stream_, dy, x, filter);
  LAUNCH(input_gradient, blocks, THREADS, 0, stream_, dx, dy, filter);
  columns::sum(dweight, scratch(columns::chunks_of(filter.rows) * C * K), AddTap{dy, x, T, C, K}, filter.rows, C * K,
               stream_);
  add_row_backward(dbias, dy, filter.rows, C);
}

}  // namespace petroglyph
