// Normalizations, row by row: plain, centering, root mean square, and layer norm with gain and bias.
//
// The backward pass, of a row of D numbers: y = (x − m)/σ with ∂m/∂x_c = 1/D and ∂σ/∂x_c = (x_c − m)/(Dσ) = y_c/D, hence
//   ∂y_a/∂x_c = (δ_ac − 1/D − y_a y_c/D)/σ
//   dx_c = Σ_a dy_a ∂y_a/∂x_c = (dy_c − mean dy − y_c mean(dy∘y))/σ
// An ε within σ leaves these as they are; without m, of the root mean square, the mean of dy falls away. dx sums to 0, and without
// ε, where y·y = D, dx·x = σ dx·y = dy·y − D mean(dy∘y) = 0: a norm passes no gradient along what it normalizes.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/parallel.h"

namespace petroglyph {

using numerics::fma;

namespace {
constexpr int64_t ROWS = 32, COLUMNS = 64;  // of one task
}

void Cpu::normalize(real* y, real* inv_std, const real* x, int64_t N, int D) {
  parallel(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real* in = x + n * D;
      real* out = y + n * D;
      const real mean = sum_lanes(D, [&](real sum, int64_t c) { return sum + in[c]; }) / static_cast<real>(D);
      for (int c = 0; c < D; ++c) out[c] = in[c] - mean;
      const real variance =
          sum_lanes(D, [&](real sum, int64_t c) { return fma(out[c], out[c], sum); }) / static_cast<real>(D);
      const real scale = variance > 0 ? 1 / numerics::sqrt(variance) : 0;
      for (int c = 0; c < D; ++c) out[c] *= scale;
      inv_std[n] = scale;
    }
  });
}

void Cpu::normalize_backward(real* dx, const real* dy, const real* y, const real* inv_std, int64_t N, int D,
                             Into into) {
  parallel(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real *dyn = dy + n * D, *yn = y + n * D;
      real* dxn = dx + n * D;
      const real scale = inv_std[n];
      const real mean = sum_lanes(D, [&](real sum, int64_t c) { return sum + dyn[c]; }) / static_cast<real>(D);
      const real along =
          sum_lanes(D, [&](real sum, int64_t c) { return fma(dyn[c], yn[c], sum); }) / static_cast<real>(D);
      if (into == Into::ADD)
        for (int c = 0; c < D; ++c) dxn[c] = fma(scale, fma(-along, yn[c], dyn[c] - mean), dxn[c]);
      else
        for (int c = 0; c < D; ++c) dxn[c] = scale * fma(-along, yn[c], dyn[c] - mean);
    }
  });
}

void Cpu::center(real* y, const real* x, int64_t N, int D) {
  parallel(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real mean = sum_lanes(D, [&](real sum, int64_t c) { return sum + x[n * D + c]; }) / static_cast<real>(D);
      for (int c = 0; c < D; ++c) y[n * D + c] = x[n * D + c] - mean;
    }
  });
}

void Cpu::rms_norm(real* y, real* inv_rms, const real* x, const real* weight, real epsilon, int64_t N, int D) {
  parallel(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real* in = x + n * D;
      const real square =
          sum_lanes(D, [&](real sum, int64_t c) { return fma(in[c], in[c], sum); }) / static_cast<real>(D);
      const real scale = 1 / numerics::sqrt(square + epsilon);
      for (int c = 0; c < D; ++c) y[n * D + c] = weight[c] * (in[c] * scale);
      inv_rms[n] = scale;
    }
  });
}

void Cpu::rms_norm_backward(real* dx, real* dweight, const real* dy, const real* x, const real* inv_rms,
                            const real* weight, int64_t N, int D, Into into) {
  parallel(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real *dyn = dy + n * D, *xn = x + n * D;
      real* dxn = dx + n * D;
      const real scale = inv_rms[n];
      const real along =
          sum_lanes(D, [&](real sum, int64_t c) { return fma(weight[c] * dyn[c], xn[c] * scale, sum); }) /
          static_cast<real>(D);
      const auto slope = [&](int c) { return fma(-along, xn[c] * scale, weight[c] * dyn[c]); };
      if (into == Into::ADD)
        for (int c = 0; c < D; ++c) dxn[c] = fma(scale, slope(c), dxn[c]);
      else
        for (int c = 0; c < D; ++c) dxn[c] = scale * slope(c);
    }
  });
  parallel(threads_, D, COLUMNS, N * D * PASS, [&](int64_t begin, int64_t end, int) {
    real sum[COLUMNS];
    for (int64_t chunk = 0; chunk < N; chunk += CHUNK) {
      std::fill_n(sum, end - begin, real(0));
      for (int64_t n = chunk; n < std::min(chunk + CHUNK, N); ++n)
        for (int64_t c = begin; c < end; ++c)
          sum[c - begin] = fma(dy[n * D + c], x[n * D + c] * inv_rms[n], sum[c - begin]);
      for (int64_t c = begin; c < end; ++c) dweight[c] += sum[c - begin];
    }
  });
}

// ---- Layer normalization --------------------------------------------------------------------------------------------

void Cpu::layer_norm(real* y, real* hat, real* inv_std, const real* x, const real* weight, const real* bias,
                     real epsilon, int64_t N, int D) {
  parallel(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real* in = x + n * D;
      real *out = y + n * D, *h = hat + n * D;
      const real mean = sum_lanes(D, [&](real sum, int64_t c) { return sum + in[c]; }) / static_cast<real>(D);
      for (int c = 0; c < D; ++c) h[c] = in[c] - mean;
      const real variance =
          sum_lanes(D, [&](real sum, int64_t c) { return fma(h[c], h[c], sum); }) / static_cast<real>(D);
      const real scale = 1 / numerics::sqrt(variance + epsilon);
      for (int c = 0; c < D; ++c) {
        h[c] *= scale;
        out[c] = fma(h[c], weight[c], bias[c]);
      }
      inv_std[n] = scale;
    }
  });
}

void Cpu::layer_norm_output(real* y, const real* hat, const real* weight, const real* bias, int64_t N, int D) {
  parallel(threads_, N, ROWS, N * D * PASS, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n)
      for (int c = 0; c < D; ++c) y[n * D + c] = fma(hat[n * D + c], weight[c], bias[c]);
  });
}

namespace {

// dweight += Σ_n dy∘hat and dbias += Σ_n dy for the columns begin … end−1
void add_affine_gradients(real* dweight, real* dbias, const real* dy, const real* hat, int64_t N, int D, int64_t begin,
                          int64_t end) {
  real weights[COLUMNS], biases[COLUMNS];
  for (int64_t chunk = 0; chunk < N; chunk += CHUNK) {
    std::fill_n(weights, COLUMNS, real(0));
    std::fill_n(biases, COLUMNS, real(0));
    for (int64_t n = chunk; n < std::min(chunk + CHUNK, N); ++n) {
      const real *g = dy + n * D + begin, *h = hat + n * D + begin;
      for (int64_t c = 0; c < end - begin; ++c) {
        weights[c] = fma(g[c], h[c], weights[c]);
        biases[c] += g[c];
      }
    }
    for (int64_t c = begin; c < end; ++c) {
      dweight[c] += weights[c - begin];
      dbias[c] += biases[c - begin];
    }
  }
}

}  // namespace

void Cpu::layer_norm_backward(real* dx, real* dweight, real* dbias, const real* dy, const real* hat,
                              const real* inv_std, const real* weight, int64_t N, int D, Into into) {
  // First, because dx may be dy.
  parallel(threads_, D, COLUMNS, N * D * PASS,
           [&](int64_t begin, int64_t end, int) { add_affine_gradients(dweight, dbias, dy, hat, N, D, begin, end); });
  parallel(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = begin; n < end; ++n) {
      const real *dyn = dy + n * D, *h = hat + n * D;
      real* dxn = dx + n * D;
      const real scale = inv_std[n];
      const real mean =
          sum_lanes(D, [&](real sum, int64_t c) { return sum + dyn[c] * weight[c]; }) / static_cast<real>(D);
      const real along =
          sum_lanes(D, [&](real sum, int64_t c) { return fma(dyn[c] * weight[c], h[c], sum); }) / static_cast<real>(D);
      for (int c = 0; c < D; ++c) {
        const real inner = fma(-along, h[c], dyn[c] * weight[c] - mean);
        dxn[c] = into == Into::ADD ? fma(scale, inner, dxn[c]) : scale * inner;
      }
    }
  });
}

}  // namespace petroglyph
