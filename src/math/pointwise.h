// The activation functions of MLPs and their derivatives, for all devices.
#pragma once

#include "math/numerics.h"

namespace petroglyph {

enum class Pointwise {
  RELU,       // max(x, 0)
  GELU,       // x Φ(x), Φ by erf
  GELU_TANH,  // x/2 (1 + tanh(√(2/π)(x + 0.044715 x³)))
};

// value is f, slope is f'.
struct PointwiseRelu {
  HOST_DEVICE static real value(real x) { return numerics::max(x, real(0)); }
  HOST_DEVICE static real slope(real x) { return x > 0 ? real(1) : real(0); }
};

struct PointwiseGelu {
  HOST_DEVICE static real cdf(real x) { return real(0.5) * (1 + numerics::erf(x * real(0.70710678118654752))); }
  HOST_DEVICE static real value(real x) { return x * cdf(x); }
  HOST_DEVICE static real slope(real x) {
    const real density = real(0.39894228040143268) * numerics::exp(real(-0.5) * x * x);
    return numerics::fma(x, density, cdf(x));
  }
};

// (1 + tanh u) / 2 = sigmoid(2u), which needs one exponential and loses no digits where tanh is near −1. With 2u = x (A
// + B x²) and s = sigmoid(2u): f' = s + x s(1−s) (A + 3B x²)
struct PointwiseGeluTanh {
  static constexpr real A = real(1.5957691216057308), B = real(0.071354816272600414);  // A = 2√(2/π), B = 0.044715 A
  HOST_DEVICE static real gate(real x) { return numerics::sigmoid(x * numerics::fma(B, x * x, A)); }
  HOST_DEVICE static real value(real x) { return x * gate(x); }
  HOST_DEVICE static real slope(real x) {
    const real s = gate(x);
    return numerics::fma(x * (s * (1 - s)), numerics::fma(3 * B, x * x, A), s);
  }
};

// Calls g with the function's struct as its argument.
template <class G>
void with_pointwise(Pointwise f, G g) {
  switch (f) {
    case Pointwise::RELU: return g(PointwiseRelu());
    case Pointwise::GELU: return g(PointwiseGelu());
    case Pointwise::GELU_TANH: return g(PointwiseGeluTanh());
  }
}

}  // namespace petroglyph
