// Normalizations, row by row. cpu/normalize.cpp derives the backward passes.

#include <vector>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

// ---- Plain normalization --------------------------------------------------------------------------------------------

void Reference::normalize(real* y, real* inv_std, const real* x, int64_t N, int D) {
  center(y, x, N, D);
  for (int64_t n = 0; n < N; ++n) {
    real* row = y + n * D;
    const real variance = lane_dot(row, row, D) / static_cast<real>(D);
    inv_std[n] = variance > 0 ? 1 / numerics::sqrt(variance) : 0;
    for (int64_t c = 0; c < D; ++c) row[c] *= inv_std[n];
  }
}

void Reference::normalize_backward(real* dx, const real* dy, const real* y, const real* inv_std, int64_t N, int D,
                                   Into into) {
  for (int64_t n = 0; n < N; ++n) {
    const real *g = dy + n * D, *hat = y + n * D;
    const real mean = lane_sum(g, D) / static_cast<real>(D);
    const real along = lane_dot(g, hat, D) / static_cast<real>(D);
    for (int64_t c = 0; c < D; ++c) {
      const real slope = fma(-along, hat[c], g[c] - mean);
      dx[n * D + c] = into == Into::ADD ? fma(inv_std[n], slope, dx[n * D + c]) : inv_std[n] * slope;
    }
  }
}

void Reference::center(real* y, const real* x, int64_t N, int D) {
  for (int64_t n = 0; n < N; ++n) {
    const real mean = lane_sum(x + n * D, D) / static_cast<real>(D);
    for (int64_t c = 0; c < D; ++c) y[n * D + c] = x[n * D + c] - mean;
  }
}

// ---- Root mean square normalization ---------------------------------------------------------------------------------

void Reference::rms_norm(real* y, real* inv_rms, const real* x, const real* weight, real epsilon, int64_t N, int D) {
  for (int64_t n = 0; n < N; ++n) {
    const real* row = x + n * D;
    const real square = lane_dot(row, row, D) / static_cast<real>(D);
    inv_rms[n] = 1 / numerics::sqrt(square + epsilon);
    for (int64_t c = 0; c < D; ++c) y[n * D + c] = weight[c] * (row[c] * inv_rms[n]);
  }
}

void Reference::rms_norm_backward(real* dx, real* dweight, const real* dy, const real* x, const real* inv_rms,
                                  const real* weight, int64_t N, int D, Into into) {
  const auto hat = [&](int64_t n, int64_t c) { return x[n * D + c] * inv_rms[n]; };
  for (int64_t n = 0; n < N; ++n) {
    const real* g = dy + n * D;
    const real along =
        lane_sum(D, [&](real sum, int64_t c) { return fma(weight[c] * g[c], hat(n, c), sum); }) / static_cast<real>(D);
    for (int64_t c = 0; c < D; ++c) {
      const real slope = fma(-along, hat(n, c), weight[c] * g[c]);
      dx[n * D + c] = into == Into::ADD ? fma(inv_rms[n], slope, dx[n * D + c]) : inv_rms[n] * slope;
    }
  }
  for (int64_t c = 0; c < D; ++c)
    dweight[c] = chain_sum(dweight[c], N, [&](real sum, int64_t n) { return fma(dy[n * D + c], hat(n, c), sum); });
}

// ---- Layer normalization --------------------------------------------------------------------------------------------

void Reference::layer_norm(real* y, real* hat, real* inv_std, const real* x, const real* weight, const real* bias,
                           real epsilon, int64_t N, int D) {
  center(hat, x, N, D);
  for (int64_t n = 0; n < N; ++n) {
    real* row = hat + n * D;
    const real variance = lane_dot(row, row, D) / static_cast<real>(D);
    inv_std[n] = 1 / numerics::sqrt(variance + epsilon);
    for (int64_t c = 0; c < D; ++c) row[c] *= inv_std[n];
  }
  layer_norm_output(y, hat, weight, bias, N, D);
}

void Reference::layer_norm_output(real* y, const real* hat, const real* weight, const real* bias, int64_t N, int D) {
  for (int64_t n = 0; n < N; ++n)
    for (int64_t c = 0; c < D; ++c) y[n * D + c] = fma(hat[n * D + c], weight[c], bias[c]);
}

// The gain's part, then the backward pass of the plain norm. dweight and dbias come first, because dx may be dy.
void Reference::layer_norm_backward(real* dx, real* dweight, real* dbias, const real* dy, const real* hat,
                                    const real* inv_std, const real* weight, int64_t N, int D, Into into) {
  for (int64_t c = 0; c < D; ++c) dweight[c] = chain_dot(dweight[c], {dy + c, D}, {hat + c, D}, N);
  add_row_backward(dbias, dy, N, D);
  std::vector<real> g(static_cast<size_t>(N * D));
  for (int64_t i = 0; i < N * D; ++i) g[i] = dy[i] * weight[i % D];
  normalize_backward(dx, g.data(), hat, inv_std, N, D, into);
}

}  // namespace petroglyph
