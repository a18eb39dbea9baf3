// Gates: element by element.

#include "cpu/cpu.h"
#include "cpu/parallel.h"

namespace petroglyph {

namespace {
constexpr int64_t ELEMENTS = 8192;  // of one task
}

void Cpu::silu_gate(real* gated, const real* y, const real* z, int64_t n) {
  parallel(threads_, n, ELEMENTS, [&](int64_t begin, int64_t end, int) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) gated[i] = y[i] * (z[i] * numerics::sigmoid(z[i]));
  });
}

// silu'(z) = σ + z σ (1 − σ)
void Cpu::silu_gate_backward(real* dy, real* dz, const real* dgated, const real* y, const real* z, int64_t n) {
  parallel(threads_, n, ELEMENTS, [&](int64_t begin, int64_t end, int) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const real g = dgated[i], s = numerics::sigmoid(z[i]), silu = z[i] * s;
      dz[i] = g * y[i] * numerics::fma(silu, 1 - s, s);
      dy[i] = g * silu;
    }
  });
}

}  // namespace petroglyph
