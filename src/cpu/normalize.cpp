// Normalizations of the rows of x (N,D): plain, centering, root mean square, and layer norm with gain and bias. The
// loops that define them are in reference/normalize.cpp.
//
// The backward pass of one row of D numbers: y = (x − m)/σ with ∂m/∂x_c = 1/D and ∂σ/∂x_c = (x_c − m)/(Dσ) = y_c/D,
// hence
//   ∂y_a/∂x_c = (δ_ac − 1/D − y_a y_c/D)/σ
//   dx_c = Σ_a dy_a ∂y_a/∂x_c = (dy_c − mean dy − y_c mean(dy∘y))/σ
// An ε within σ does not change these formulas. The root mean square has no m, so the mean of dy is omitted. dx sums to
// 0. Without ε, y·y = D, so dx·x = σ dx·y = dy·y − D mean(dy∘y) = 0: the gradient is orthogonal to x.

#include "cpu/columns.h"
#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/loops.h"

namespace petroglyph {

using numerics::fma;

namespace {
constexpr int64_t ROWS = 32;  // rows of one task
}

void Cpu::normalize(real* y, real* inv_std, const real* x, int64_t N, int D) {
  parallel_rows(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t n, int) {
    const real* in = x + n * D;
    real* out = y + n * D;
    const real mean = sum_row(in, D) / static_cast<real>(D);
    for (int c = 0; c < D; ++c) out[c] = in[c] - mean;
    const real variance = dot(out, out, D) / static_cast<real>(D);
    const real scale = variance > 0 ? 1 / numerics::sqrt(variance) : 0;
    for (int c = 0; c < D; ++c) out[c] *= scale;
    inv_std[n] = scale;
  });
}

void Cpu::normalize_backward(real* dx, const real* dy, const real* y, const real* inv_std, int64_t N, int D,
                             Into into) {
  parallel_rows(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t n, int) {
    const real *dyn = dy + n * D, *yn = y + n * D;
    real* dxn = dx + n * D;
    const real scale = inv_std[n], mean = sum_row(dyn, D) / static_cast<real>(D);
    const real along = dot(dyn, yn, D) / static_cast<real>(D);
    if (into == Into::ADD)
      for (int c = 0; c < D; ++c) dxn[c] = fma(scale, fma(-along, yn[c], dyn[c] - mean), dxn[c]);
    else
      for (int c = 0; c < D; ++c) dxn[c] = scale * fma(-along, yn[c], dyn[c] - mean);
  });
}

void Cpu::center(real* y, const real* x, int64_t N, int D) {
  parallel_rows(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t n, int) {
    const real mean = sum_row(x + n * D, D) / static_cast<real>(D);
    for (int c = 0; c < D; ++c) y[n * D + c] = x[n * D + c] - mean;
  });
}

void Cpu::rms_norm(real* y, real* inv_rms, const real* x, const real* weight, real epsilon, int64_t N, int D) {
  parallel_rows(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t n, int) {
    const real* in = x + n * D;
    const real scale = 1 / numerics::sqrt(dot(in, in, D) / static_cast<real>(D) + epsilon);
    for (int c = 0; c < D; ++c) y[n * D + c] = weight[c] * (in[c] * scale);
    inv_rms[n] = scale;
  });
}

void Cpu::rms_norm_backward(real* dx, real* dweight, const real* dy, const real* x, const real* inv_rms,
                            const real* weight, int64_t N, int D, Into into) {
  parallel_rows(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t n, int) {
    const real *dyn = dy + n * D, *xn = x + n * D;
    real* dxn = dx + n * D;
    const real scale = inv_rms[n];
    const real along = sum_lanes(D, [&](real sum, int64_t c) { return fma(weight[c] * dyn[c], xn[c] * scale, sum); }) /
                       static_cast<real>(D);
    const auto slope = [&](int c) { return fma(-along, xn[c] * scale, weight[c] * dyn[c]); };
    if (into == Into::ADD)
      for (int c = 0; c < D; ++c) dxn[c] = fma(scale, slope(c), dxn[c]);
    else
      for (int c = 0; c < D; ++c) dxn[c] = scale * slope(c);
  });
  sum_columns(threads_, dweight, N, D,
              [&](real sum, int64_t n, int64_t c) { return fma(dy[n * D + c], x[n * D + c] * inv_rms[n], sum); });
}

// ---- Layer normalization --------------------------------------------------------------------------------------------

void Cpu::layer_norm(real* y, real* hat, real* inv_std, const real* x, const real* weight, const real* bias,
                     real epsilon, int64_t N, int D) {
  parallel_rows(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t n, int) {
    const real* in = x + n * D;
    real *out = y + n * D, *h = hat + n * D;
    const real mean = sum_row(in, D) / static_cast<real>(D);
    for (int c = 0; c < D; ++c) h[c] = in[c] - mean;
    const real scale = 1 / numerics::sqrt(dot(h, h, D) / static_cast<real>(D) + epsilon);
    for (int c = 0; c < D; ++c) {
      h[c] *= scale;
      out[c] = fma(h[c], weight[c], bias[c]);
    }
    inv_std[n] = scale;
  });
}

void Cpu::layer_norm_output(real* y, const real* hat, const real* weight, const real* bias, int64_t N, int D) {
  parallel_rows(threads_, N, ROWS, N * D * PASS, [&](int64_t n, int) {
    for (int c = 0; c < D; ++c) y[n * D + c] = fma(hat[n * D + c], weight[c], bias[c]);
  });
}

void Cpu::layer_norm_backward(real* dx, real* dweight, real* dbias, const real* dy, const real* hat,
                              const real* inv_std, const real* weight, int64_t N, int D, Into into) {
  // dweight and dbias come first, because dx may be dy.
  sum_columns(threads_, dweight, N, D,
              [&](real sum, int64_t n, int64_t c) { return fma(dy[n * D + c], hat[n * D + c], sum); });
  add_row_backward(dbias, dy, N, D);
  parallel_rows(threads_, N, ROWS, N * D * FUNCTION, [&](int64_t n, int) {
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
  });
}

}  // namespace petroglyph
