// Gates: element by element.

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {

namespace {

constexpr int THREADS = 256;

// gated may be y or z.
__global__ void gate(float* gated, const float* y, const float* z, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (i < n) gated[i] = y[i] * (z[i] * numerics::sigmoid(z[i]));
}

// dy or dz may be dgated.
__global__ void gate_backward(float* dy, float* dz, const float* dgated, const float* y, const float* z, int64_t n) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
  if (i >= n) return;
  const float g = dgated[i], s = numerics::sigmoid(z[i]), silu = z[i] * s;
  dz[i] = g * y[i] * numerics::fma(silu, 1 - s, s);
  dy[i] = g * silu;
}

}  // namespace

void Gpu::silu_gate(real* gated, const real* y, const real* z, int64_t n) {
  LAUNCH(gate, blocks_for(n, THREADS), THREADS, 0, stream_, gated, y, z, n);
}

void Gpu::silu_gate_backward(real* dy, real* dz, const real* dgated, const real* y, const real* z, int64_t n) {
  LAUNCH(gate_backward, blocks_for(n, THREADS), THREADS, 0, stream_, dy, dz, dgated, y, z, n);
}

}  // namespace petroglyph
