// Plain normalization, centering and root mean square normalization, row by row.

#include <algorithm>

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

namespace {
constexpr real RMS_EPSILON = real(1e-5);
}

void Cpu::rms_norm(real* y, real* inv_rms, const real* x, const real* weight, int64_t N, int D) {
  parallel(threads_, N, ROWS, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real* in = x + n * D;
      const real square =
          sum_lanes(D, [&](real sum, int64_t c) { return numerics::fma(in[c], in[c], sum); }) / static_cast<real>(D);
      const real scale = 1 / numerics::sqrt(square + RMS_EPSILON);
      for (int c = 0; c < D; ++c) y[n * D + c] = weight[c] * (in[c] * scale);
      inv_rms[n] = scale;
    }
  });
}

void Cpu::rms_norm_backward(real* dx, real* dweight, const real* dy, const real* x, const real* inv_rms, const real* weight,
                            int64_t N, int D, Into into) {
  parallel(threads_, N, ROWS, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real *dyn = dy + n * D, *xn = x + n * D;
      real* dxn = dx + n * D;
      const real scale = inv_rms[n];
      const real along = sum_lanes(D, [&](real sum, int64_t c) {
        return numerics::fma(weight[c] * dyn[c], xn[c] * scale, sum);
      }) / static_cast<real>(D);
      const auto slope = [&](int c) { return numerics::fma(-along, xn[c] * scale, weight[c] * dyn[c]); };
      if (into == Into::ADD)
        for (int c = 0; c < D; ++c) dxn[c] = numerics::fma(scale, slope(c), dxn[c]);
      else
        for (int c = 0; c < D; ++c) dxn[c] = scale * slope(c);
    }
  });
  constexpr int64_t COLUMNS = 64;
  parallel(threads_, D, COLUMNS, [&](int64_t begin, int64_t end, int) {
    real sum[COLUMNS];
    for (int64_t chunk = 0; chunk < N; chunk += CHUNK) {
      std::fill_n(sum, end - begin, real(0));
      for (int64_t n = chunk; n < std::min(chunk + CHUNK, N); ++n)
        for (int64_t c = begin; c < end; ++c)
          sum[c - begin] = numerics::fma(dy[n * D + c], x[n * D + c] * inv_rms[n], sum[c - begin]);
      for (int64_t c = begin; c < end; ++c) dweight[c] += sum[c - begin];
    }
  });
}

}  // namespace petroglyph
