// Elementwise functions: the GPU version of cpu/pointwise.cpp. A thread computes one element, or four if f costs about
// as much as its memory traffic. Predicted, not yet measured: GELU of 63 million numbers 0.21 → 0.13 ms.

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"
#include "math/pointwise.h"

namespace petroglyph {

namespace {

constexpr int THREADS = 256;

template <class F>
__global__ void apply(float* y, const float* x, int64_t n) {
  for_elements<THREADS>(
      n, [&](int64_t i) { return x[i]; }, [&](int64_t i, float at) { y[i] = F::value(at); });
}

// dx may alias dy.
template <class F>
__global__ void apply_backward(float* dx, float* y, const float* dy, const float* x, int64_t n) {
  for_elements<THREADS>(
      n, [&](int64_t i) { return make_float2(x[i], dy[i]); },
      [&](int64_t i, float2 at) {
        if (y) y[i] = F::value(at.x);
        dx[i] = at.y * F::slope(at.x);
      });
}

__global__ void scale_all(float* y, const float* x, float factor, int64_t n) {
  const int64_t i = element_of_thread<THREADS>();
  if (i < n) y[i] = factor * x[i];
}

__global__ void add_row_to_all(float* y, const float* x, int64_t x_step, const float* row, int64_t elements, int D) {
  const int64_t i = element_of_thread<THREADS>();
  if (i < elements) y[i] = x[i / D * x_step + i % D] + row[i % D];
}

__global__ void add_all(float* y, int64_t y_step, const float* a, const float* b, int64_t elements, int D) {
  const int64_t i = element_of_thread<THREADS>();
  if (i < elements) y[i / D * y_step + i % D] = a[i] + b[i];
}

}  // namespace

void Gpu::pointwise(real* y, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    LAUNCH(apply<decltype(function)>, blocks_for(n, FOUR * THREADS), THREADS, 0, stream_, y, x, n);
  });
}

void Gpu::pointwise_backward(real* dx, real* y, const real* dy, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    LAUNCH(apply_backward<decltype(function)>, blocks_for(n, FOUR * THREADS), THREADS, 0, stream_, dx, y, dy, x, n);
  });
}

void Gpu::scale(real* y, const real* x, real factor, int64_t n) {
  LAUNCH(scale_all, blocks_for(n, THREADS), THREADS, 0, stream_, y, x, factor, n);
}

void Gpu::add_row(real* y, const real* x, int64_t x_step, const real* row, int64_t N, int D) {
  LAUNCH(add_row_to_all, blocks_for(N * D, THREADS), THREADS, 0, stream_, y, x, x_step, row, N * D, D);
}

void Gpu::add(real* y, int64_t y_step, const real* a, const real* b, int64_t N, int D) {
  LAUNCH(add_all, blocks_for(N * D, THREADS), THREADS, 0, stream_, y, y_step, a, b, N * D, D);
}

}  // namespace petroglyph
