// The activations of the pairwise relation on the device: what the structs of cpu/relation.cpp are on the CPU.
#pragma once

#include "gpu/launch.h"
#include "ops.h"

namespace petroglyph {

constexpr float LOG2_E = 1.4426950408889634f;

// A normalized head of n channels has |h| ≤ √n; up to this width 2^(h·log₂e) stays where exp2_in_range needs no clamps.
constexpr int EXP_IN_RANGE_WIDTH = 7000;

// ψ and ψ' of factor·d. exp(h) is 2^(h·log₂e), and log₂e goes into the factor. What is normalized is never shifted.
struct ExpInRange {
  static constexpr bool SHIFTED = false;
  __device__ static float factor(float inv_std) { return inv_std * LOG2_E; }
  __device__ static float value(float factor, float d) { return numerics::exp2_in_range(factor * d); }
  __device__ static float slope(float factor, float d) { return value(factor, d); }
};
struct Exp {
  static constexpr bool SHIFTED = true;
  __device__ static float factor(float inv_std) { return inv_std * LOG2_E; }
  __device__ static float value(float factor, float d) { return numerics::exp2(factor * d); }
  __device__ static float slope(float factor, float d) { return value(factor, d); }
};
struct Relu {
  static constexpr bool SHIFTED = true;
  __device__ static float factor(float inv_std) { return inv_std; }
  __device__ static float value(float factor, float d) { return numerics::max(factor * d, 0.0f); }
  __device__ static float slope(float factor, float d) { return factor * d > 0 ? 1.0f : 0.0f; }
};
struct Elu {
  static constexpr bool SHIFTED = true;
  __device__ static float factor(float inv_std) { return inv_std; }
  __device__ static float value(float factor, float d) {
    const float h = factor * d;
    return h > 0 ? h : numerics::expm1(h);
  }
  __device__ static float slope(float factor, float d) {
    const float h = factor * d;
    return h > 0 ? 1.0f : numerics::exp(h);
  }
};
struct Gelu {  // h Φ(h)
  static constexpr bool SHIFTED = true;
  __device__ static float factor(float inv_std) { return inv_std; }
  __device__ static float cdf(float h) { return 0.5f * (1 + numerics::erf(h * 0.70710678118654752f)); }
  __device__ static float value(float factor, float d) {
    const float h = factor * d;
    return h * cdf(h);
  }
  __device__ static float slope(float factor, float d) {
    const float h = factor * d;
    const float density = 0.39894228040143268f * numerics::exp(-0.5f * h * h);
    return numerics::fma(h, density, cdf(h));
  }
};

// Calls f with the activation's struct as its argument.
template <class F>
void with_activation(const RelationShape& shape, bool normalized, F f) {
  switch (shape.activation) {
    case Activation::EXP:
      if (normalized && shape.head_width() <= EXP_IN_RANGE_WIDTH) return f(ExpInRange());
      return f(Exp());
    case Activation::RELU: return f(Relu());
    case Activation::ELU: return f(Elu());
    case Activation::GELU: return f(Gelu());
  }
}

}  // namespace petroglyph
