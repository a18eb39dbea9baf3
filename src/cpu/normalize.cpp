// Plain normalization and centering, row by row.

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/parallel.h"

namespace petroglyph {

namespace {
constexpr int64_t ROWS = 32;  // rows of one task
}

void Cpu::normalize(real* y, real* inv_std, const real* x, int64_t N, int D) {
  parallel(threads_, N, ROWS, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real* in = x + n * D;
      real* out = y + n * D;
      const real mean = sum_lanes(D, [&](real sum, int64_t c) { return sum + in[c]; }) / static_cast<real>(D);
      for (int c = 0; c < D; ++c) out[c] = in[c] - mean;
      const real variance =
          sum_lanes(D, [&](real sum, int64_t c) { return numerics::fma(out[c], out[c], sum); }) / static_cast<real>(D);
      const real scale = variance > 0 ? 1 / numerics::sqrt(variance) : 0;
      for (int c = 0; c < D; ++c) out[c] *= scale;
      inv_std[n] = scale;
    }
  });
}

void Cpu::normalize_backward(real* dx, const real* dy, const real* y, const real* inv_std, int64_t N, int D, Into into) {
  parallel(threads_, N, ROWS, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real *dyn = dy + n * D, *yn = y + n * D;
      real* dxn = dx + n * D;
      const real scale = inv_std[n];
      const real mean = sum_lanes(D, [&](real sum, int64_t c) { return sum + dyn[c]; }) / static_cast<real>(D);
      const real along =
          sum_lanes(D, [&](real sum, int64_t c) { return numerics::fma(dyn[c], yn[c], sum); }) / static_cast<real>(D);
      if (into == Into::ADD)
        for (int c = 0; c < D; ++c) dxn[c] = numerics::fma(scale, numerics::fma(-along, yn[c], dyn[c] - mean), dxn[c]);
      else
        for (int c = 0; c < D; ++c) dxn[c] = scale * numerics::fma(-along, yn[c], dyn[c] - mean);
    }
  });
}

void Cpu::center(real* y, const real* x, int64_t N, int D) {
  parallel(threads_, N, ROWS, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real mean =
          sum_lanes(D, [&](real sum, int64_t c) { return sum + x[n * D + c]; }) / static_cast<real>(D);
      for (int c = 0; c < D; ++c) y[n * D + c] = x[n * D + c] - mean;
    }
  });
}

}  // namespace petroglyph
