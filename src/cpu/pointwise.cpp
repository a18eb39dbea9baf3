// Functions of single numbers (math/pointwise.h), scaling and addition. The loops that define them are in
// reference/pointwise.cpp.

#include "math/pointwise.h"
#include "cpu/cpu.h"
#include "cpu/parallel.h"

namespace petroglyph {

void Cpu::pointwise(real* y, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    parallel_elements(
        threads_, n, n * FUNCTION, [&](int64_t i) { y[i] = decltype(function)::value(x[i]); }, "pointwise");
  });
}

void Cpu::pointwise_backward(real* dx, real* y, const real* dy, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    using F = decltype(function);
    if (!y) {
      const auto gradient = [&](int64_t i) { dx[i] = dy[i] * F::slope(x[i]); };
      return parallel_elements(threads_, n, n * FUNCTION, gradient, "pointwise_backward");
    }
    const auto gradient_and_value = [&](int64_t i) {  // one loop, so that Φ or the sigmoid is computed once
      const real slope = F::slope(x[i]);
      y[i] = F::value(x[i]);
      dx[i] = dy[i] * slope;
    };
    parallel_elements(threads_, n, n * FUNCTION, gradient_and_value, "pointwise_backward");
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
