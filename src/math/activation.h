// The activations of the pairwise relation, and what else both devices must agree on there.
#pragma once

#include <type_traits>

#include "math/numerics.h"

namespace petroglyph {

enum class Activation { EXP, RELU, ELU, GELU };

// Below this part of |p|² + |q|², |p + q|² is summed directly, because the form with the product cancels. Against double on
// random pairs the variance is off by at most 3e-7 where p and q are orthogonal and 4e-6 at this limit with 192 channels,
// by 6e-7 and 9e-6 with 1024.
constexpr real CANCELLATION = real(1) / 8;

// A normalized head of n channels has |h| ≤ √n; up to this width 2^(h·log₂e) stays where exp2_in_range needs no clamps.
constexpr int EXP_IN_RANGE_WIDTH = 7000;

// ψ and ψ' of factor·d. exp(h) is 2^(h·log₂e), and log₂e goes into the factor: one more rounding for each pair, not for each
// channel.
//   TOGETHER  queries that the CPU's backward sweep takes at a time: more than one only where formulas take several registers
//   SHIFTED   whether a shift may come with it: with exp, where nothing is normalized
struct ExpInRange {
  static constexpr int TOGETHER = 2;
  static constexpr bool SHIFTED = false;
  HOST_DEVICE static real factor(real inv_std) { return inv_std * LOG2_E; }
  template <class T>
  HOST_DEVICE static T value(T factor, T d) {
    return numerics::exp2_in_range(factor * d);
  }
  template <class T>
  HOST_DEVICE static T slope(T factor, T d) {
    return value(factor, d);
  }
};
struct Exp {
  static constexpr int TOGETHER = 1;
  static constexpr bool SHIFTED = true;
  HOST_DEVICE static real factor(real inv_std) { return inv_std * LOG2_E; }
  HOST_DEVICE static real value(real factor, real d) { return numerics::exp2(factor * d); }
  HOST_DEVICE static real slope(real factor, real d) { return value(factor, d); }
};
struct Relu {
  static constexpr int TOGETHER = 1;
  static constexpr bool SHIFTED = false;
  HOST_DEVICE static real factor(real inv_std) { return inv_std; }
  HOST_DEVICE static real value(real factor, real d) { return numerics::max(factor * d, real(0)); }
  HOST_DEVICE static real slope(real factor, real d) { return factor * d > 0 ? real(1) : real(0); }
};
struct Elu {
  static constexpr int TOGETHER = 1;
  static constexpr bool SHIFTED = false;
  HOST_DEVICE static real factor(real inv_std) { return inv_std; }
  HOST_DEVICE static real value(real factor, real d) {
    const real h = factor * d;
    return h > 0 ? h : numerics::expm1(h);
  }
  HOST_DEVICE static real slope(real factor, real d) {
    const real h = factor * d;
    return h > 0 ? real(1) : numerics::exp(h);
  }
};
struct Gelu {  // h Φ(h)
  static constexpr int TOGETHER = 1;
  static constexpr bool SHIFTED = false;
  HOST_DEVICE static real factor(real inv_std) { return inv_std; }
  HOST_DEVICE static real cdf(real h) { return real(0.5) * (1 + numerics::erf(h * real(0.70710678118654752))); }
  HOST_DEVICE static real value(real factor, real d) {
    const real h = factor * d;
    return h * cdf(h);
  }
  HOST_DEVICE static real slope(real factor, real d) {
    const real h = factor * d;
    const real density = real(0.39894228040143268) * numerics::exp(real(-0.5) * h * h);
    return numerics::fma(h, density, cdf(h));
  }
};

// sum + ψ(factor·d)
template <class Psi, class T>
HOST_DEVICE T add_value(T sum, T factor, T d) {
  if constexpr (std::is_same_v<Psi, ExpInRange>) return numerics::add_exp2_in_range(sum, factor * d);
  return sum + Psi::value(factor, d);
}

// Calls f with the activation's struct as its argument; head_width: channels that are normalized together.
template <class F>
void with_activation(Activation activation, bool normalized, int head_width, F f) {
  switch (activation) {
    case Activation::EXP:
      if (normalized && head_width <= EXP_IN_RANGE_WIDTH) return f(ExpInRange());
      return f(Exp());
    case Activation::RELU: return f(Relu());
    case Activation::ELU: return f(Elu());
    case Activation::GELU: return f(Gelu());
  }
}

}  // namespace petroglyph
