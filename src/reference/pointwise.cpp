// Operations on every number by itself.

#include "math/pointwise.h"
#include "reference/reference.h"

namespace petroglyph {

void Reference::scale(real* y, const real* x, real factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}

void Reference::add_row(real* y, const real* x, int64_t x_step, const real* row, int64_t N, int D) {
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < D; ++c) y[n * D + c] = x[n * x_step + c] + row[c];
}

void Reference::add(real* y, int64_t y_step, const real* a, const real* b, int64_t N, int D) {
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < D; ++c) y[n * y_step + c] = a[n * D + c] + b[n * D + c];
}

void Reference::pointwise(real* y, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    for (int64_t i = 0; i < n; ++i) y[i] = function.value(x[i]);
  });
}

void Reference::pointwise_backward(real* dx, real* y, const real* dy, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    for (int64_t i = 0; i < n; ++i) {
      if (y) y[i] = function.value(x[i]);
      dx[i] = dy[i] * function.slope(x[i]);
    }
  });
}

}  // namespace petroglyph
