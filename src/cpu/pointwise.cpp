// Functions of single numbers (math/pointwise.h), scaling and addition. The loops that define them are in
// reference/pointwise.cpp.

#include "math/pointwise.h"
#include "cpu/cpu.h"
#include "cpu/loops.h"

namespace petroglyph {

void Cpu::pointwise(real* y, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    parallel_elements(
        threads_, n, n * FUNCTION, [&](int64_t i) { y[i] = decltype(function)::value(x[i]); }, "pointwise");
  });
}

namespace {

// dx = dy ∘ f'(x) and y = f(x), in one loop, so that Φ or the sigmoid is computed once. A function of its own, because
// g++ does not vectorise this loop in a lambda that captures the pointers: GELU then takes 13 times as long.
template <class F>
void backward_with_output(real* dx, real* y, const real* dy, const real* x, int64_t n) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const real slope = F::slope(x[i]);
    y[i] = F::value(x[i]);
    dx[i] = dy[i] * slope;
  }
}

}  // namespace

void Cpu::pointwise_backward(real* dx, real* y, const real* dy, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    using F = decltype(function);
    if (!y) {
      const auto gradient = [&](int64_t i) { dx[i] = dy[i] * F::slope(x[i]); };
      return parallel_elements(threads_, n, n * FUNCTION, gradient, "pointwise_backward");
    }
    parallel(
        threads_, n, 8192, n * FUNCTION,
        [&](int64_t begin, int64_t end, int) {
          backward_with_output<F>(dx + begin, y + begin, dy + begin, x + begin, end - begin);
        },
        "pointwise_backward");
  });
}

void Cpu::scale(real* y, const real* x, real factor, int64_t n) {
  parallel_elements(threads_, n, n * PASS, [&](int64_t i) { y[i] = factor * x[i]; });
}

void Cpu::add_row(real* y, const real* x, int64_t x_step, const real* row, int64_t N, int D) {
  parallel_rows(threads_, N, 64, N * D * PASS, [&](int64_t n, int) {
    for (int c = 0; c < D; ++c) y[n * D + c] = x[n * x_step + c] + row[c];
  });
}

void Cpu::add(real* y, int64_t y_step, const real* a, const real* b, int64_t N, int D) {
  parallel_rows(threads_, N, 64, N * D * PASS, [&](int64_t n, int) {
    for (int c = 0; c < D; ++c) y[n * y_step + c] = a[n * D + c] + b[n * D + c];
  });
}

}  // namespace petroglyph
