// What is done to every number by itself.

#include "cpu/cpu.h"
#include "cpu/parallel.h"

namespace petroglyph {

using numerics::fma;

namespace {

constexpr int64_t GRAIN = 8192;  // numbers of one task

// f and f'
struct Relu {
  static real value(real x) { return numerics::max(x, real(0)); }
  static real slope(real x) { return x > 0 ? real(1) : real(0); }
};

struct Gelu {
  static real cdf(real x) { return real(0.5) * (1 + numerics::erf(x * real(0.70710678118654752))); }
  static real value(real x) { return x * cdf(x); }
  static real slope(real x) {
    const real density = real(0.39894228040143268) * numerics::exp(real(-0.5) * x * x);
    return fma(x, density, cdf(x));
  }
};

// (1 + tanh u) / 2 is sigmoid(2u): one exponential, and no digits lost where tanh is near −1. With 2u = x (a + b x²):
// f' = s + x s(1−s) (a + 3b x²)
struct GeluTanh {
  static constexpr real A = real(1.5957691216057308), B = real(0.071354816272600414);  // 2√(2/π), times 0.044715
  static real value(real x) { return x * numerics::sigmoid(x * fma(B, x * x, A)); }
  static real slope(real x) {
    const real s = numerics::sigmoid(x * fma(B, x * x, A));
    return fma(x * (s * (1 - s)), fma(3 * B, x * x, A), s);
  }
};

// Calls g with the function's struct as its argument.
template <class G>
void with_pointwise(Pointwise f, G g) {
  switch (f) {
    case Pointwise::RELU: return g(Relu());
    case Pointwise::GELU: return g(Gelu());
    case Pointwise::GELU_TANH: return g(GeluTanh());
  }
}

}  // namespace

void Cpu::pointwise(real* y, const real* x, Pointwise f, int64_t n) {
  with_pointwise(f, [&](auto function) {
    parallel(
        threads_, n, GRAIN,
        [&](int64_t begin, int64_t end, int) {
#pragma omp simd
          for (int64_t i = begin; i < end; ++i) y[i] = decltype(function)::value(x[i]);
        },
        "pointwise");
  });
}

namespace {

// dx = dy ∘ f'(x) and y = f(x), in one loop, which forms Φ or the sigmoid once
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
    parallel(
        threads_, n, GRAIN,
        [&](int64_t begin, int64_t end, int) {
          if (y) return backward_with_output<F>(dx + begin, y + begin, dy + begin, x + begin, end - begin);
#pragma omp simd
          for (int64_t i = begin; i < end; ++i) dx[i] = dy[i] * F::slope(x[i]);
        },
        "pointwise_backward");
  });
}

void Cpu::scale(real* y, const real* x, real factor, int64_t n) {
  parallel(threads_, n, GRAIN, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) y[i] = factor * x[i];
  });
}

void Cpu::add_row(real* y, const real* x, int64_t x_step, const real* row, int64_t N, int D) {
  parallel(threads_, N, 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n)
      for (int c = 0; c < D; ++c) y[n * D + c] = x[n * x_step + c] + row[c];
  });
}

void Cpu::add(real* y, int64_t y_step, const real* a, const real* b, int64_t N, int D) {
  parallel(threads_, N, 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n)
      for (int c = 0; c < D; ++c) y[n * y_step + c] = a[n * D + c] + b[n * D + c];
  });
}

}  // namespace petroglyph
