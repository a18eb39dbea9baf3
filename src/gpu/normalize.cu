// Normalizations of rows: the GPU version of cpu/normalize.cpp. One warp per row reads it two or three times: first
// from memory, then from the cache.

#include "gpu/columns.cuh"
#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {

namespace {

__device__ float mean_of(const float* x, int D) {
  const float sum = sum_lanes(
      D, [&](int c) { return x[c]; }, [](float sum, float value) { return sum + value; });
  return sum / static_cast<float>(D);
}

// y may alias x: a lane writes only elements that no other lane reads, and it writes them last.
__global__ void normalize_rows(float* y, float* inv_std, const float* x, int64_t N, int D) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float* in = x + n * D;
  float* out = y + n * D;
  const float mean = mean_of(in, D);
  const auto square = [&](float sum, int c) {
    const float centered = in[c] - mean;
    return numerics::fma(centered, centered, sum);
  };
  const float variance = sum_lanes(D, square) / static_cast<float>(D);
  const float scale = variance > 0 ? 1 / numerics::sqrt(variance) : 0;
  map_lanes(out, D, [&](int c) { return (in[c] - mean) * scale; });
  if (lane_index() == 0) inv_std[n] = scale;
}

// dx may alias dy.
__global__ void normalize_rows_backward(float* dx, const float* dy, const float* y, const float* inv_std, int64_t N,
                                        int D, Into into) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float *dyn = dy + n * D, *yn = y + n * D;
  float* dxn = dx + n * D;
  const float scale = inv_std[n];
  const float mean = mean_of(dyn, D);
  const float product = sum_lanes(
      D, [&](int c) { return make_float2(dyn[c], yn[c]); },
      [](float sum, float2 both) { return numerics::fma(both.x, both.y, sum); });
  const float along = product / static_cast<float>(D);
  map_lanes(dxn, D, [&](int c) {
    const float direction = numerics::fma(-along, yn[c], dyn[c] - mean);
    return into == Into::ADD ? numerics::fma(scale, direction, dxn[c]) : scale * direction;
  });
}

// y may alias x.
__global__ void center_rows(float* y, const float* x, int64_t N, int D) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float mean = mean_of(x + n * D, D);
  map_lanes(y + n * D, D, [&](int c) { return x[n * D + c] - mean; });
}

}  // namespace

void Gpu::normalize(real* y, real* inv_std, const real* x, int64_t N, int D) {
  LAUNCH_ROWS(normalize_rows, N, stream_, y, inv_std, x, N, D);
}

void Gpu::normalize_backward(real* dx, const real* dy, const real* y, const real* inv_std, int64_t N, int D,
                             Into into) {
  LAUNCH_ROWS(normalize_rows_backward, N, stream_, dx, dy, y, inv_std, N, D, into);
}

void Gpu::center(real* y, const real* x, int64_t N, int D) { LAUNCH_ROWS(center_rows, N, stream_, y, x, N, D); }

// ---- Root mean square normalization -------------------------------------------------------------------------------

namespace {

__global__ void rms_norm_rows(float* y, float* inv_rms, const float* x, const float* weight, float epsilon, int64_t N,
                              int D) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float* in = x + n * D;
  const float squares = sum_lanes(
      D, [&](int c) { return in[c]; }, [](float sum, float value) { return numerics::fma(value, value, sum); });
  const float scale = 1 / numerics::sqrt(squares / static_cast<float>(D) + epsilon);
  map_lanes(y + n * D, D, [&](int c) { return weight[c] * (in[c] * scale); });
  if (lane_index() == 0) inv_rms[n] = scale;
}

__global__ void rms_norm_rows_backward(float* dx, const float* dy, const float* x, const float* inv_rms,
                                       const float* weight, int64_t N, int D, Into into) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float *dyn = dy + n * D, *xn = x + n * D;
  float* dxn = dx + n * D;
  const float scale = inv_rms[n];
  const auto product = [&](float sum, int c) { return numerics::fma(weight[c] * dyn[c], xn[c] * scale, sum); };
  const float along = sum_lanes(D, product) / static_cast<float>(D);
  map_lanes(dxn, D, [&](int c) {
    const float slope = numerics::fma(-along, xn[c] * scale, weight[c] * dyn[c]);
    return into == Into::ADD ? numerics::fma(scale, slope, dxn[c]) : scale * slope;
  });
}

struct AddGain {
  const float *dy, *x, *inv_rms;
  int D;

  __device__ float operator()(float sum, int64_t n, int c) const {
    return numerics::fma(dy[n * D + c], x[n * D + c] * inv_rms[n], sum);
  }
};

}  // namespace

void Gpu::rms_norm(real* y, real* inv_rms, const real* x, const real* weight, real epsilon, int64_t N, int D) {
  LAUNCH_ROWS(rms_norm_rows, N, stream_, y, inv_rms, x, weight, epsilon, N, D);
}

void Gpu::rms_norm_backward(real* dx, real* dweight, const real* dy, const real* x, const real* inv_rms,
                            const real* weight, int64_t N, int D, Into into) {
  LAUNCH_ROWS(rms_norm_rows_backward, N, stream_, dx, dy, x, inv_rms, weight, N, D, into);
  columns::sum(dweight, scratch(columns::chunks_of(N) * D), AddGain{dy, x, inv_rms, D}, N, D, stream_);
}

// ---- Layer normalization ------------------------------------------------------------------------------------------

namespace {

// y may alias x.
__global__ void layer_norm_rows(float* y, float* hat, float* inv_std, const float* x, const float* weight,
                                const float* bias, float epsilon, int64_t N, int D) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float* in = x + n * D;
  const float mean = mean_of(in, D);
  const auto square = [&](float sum, int c) {
    const float centered = in[c] - mean;
    return numerics::fma(centered, centered, sum);
  };
  const float variance = sum_lanes(D, square) / static_cast<float>(D);
  const float scale = 1 / numerics::sqrt(variance + epsilon);
  const auto normalized = [&](int c) { return (in[c] - mean) * scale; };
  map_lanes(hat + n * D, D, normalized);
  map_lanes(y + n * D, D, [&](int c) { return numerics::fma(normalized(c), weight[c], bias[c]); });
  if (lane_index() == 0) inv_std[n] = scale;
}

__global__ void layer_norm_rows_output(float* y, const float* hat, const float* weight, const float* bias, int64_t N,
                                       int D) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  map_lanes(y + n * D, D, [&](int c) { return numerics::fma(hat[n * D + c], weight[c], bias[c]); });
}

// dx may alias dy.
__global__ void layer_norm_rows_backward(float* dx, const float* dy, const float* hat, const float* inv_std,
                                         const float* weight, int64_t N, int D, Into into) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float *dyn = dy + n * D, *h = hat + n * D;
  float* dxn = dx + n * D;
  const float scale = inv_std[n];
  const float mean = sum_lanes(D, [&](float sum, int c) { return sum + dyn[c] * weight[c]; }) / static_cast<float>(D);
  const float along = sum_lanes(D, [&](float sum, int c) { return numerics::fma(dyn[c] * weight[c], h[c], sum); }) /
                      static_cast<float>(D);
  map_lanes(dxn, D, [&](int c) {
    const float direction = numerics::fma(-along, h[c], dyn[c] * weight[c] - mean);
    return into == Into::ADD ? numerics::fma(scale, direction, dxn[c]) : scale * direction;
  });
}

// The terms that a row adds to the gradients of weight and bias.
struct AddAlongHat {
  const float *dy, *hat;
  int D;
  __device__ float operator()(float sum, int64_t n, int c) const {
    return numerics::fma(dy[n * D + c], hat[n * D + c], sum);
  }
};

}  // namespace

void Gpu::layer_norm(real* y, real* hat, real* inv_std, const real* x, const real* weight, const real* bias,
                     real epsilon, int64_t N, int D) {
  LAUNCH_ROWS(layer_norm_rows, N, stream_, y, hat, inv_std, x, weight, bias, epsilon, N, D);
}

void Gpu::layer_norm_output(real* y, const real* hat, const real* weight, const real* bias, int64_t N, int D) {
  LAUNCH_ROWS(layer_norm_rows_output, N, stream_, y, hat, weight, bias, N, D);
}

void Gpu::layer_norm_backward(real* dx, real* dweight, real* dbias, const real* dy, const real* hat,
                              const real* inv_std, const real* weight, int64_t N, int D, Into into) {
  columns::sum(dweight, scratch(columns::chunks_of(N) * D), AddAlongHat{dy, hat, D}, N, D, stream_);
  add_row_backward(dbias, dy, N, D);
  LAUNCH_ROWS(layer_norm_rows_backward, N, stream_, dx, dy, hat, inv_std, weight, N, D, into);
}

}  // namespace petroglyph
