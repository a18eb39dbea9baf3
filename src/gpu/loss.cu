// Cross-entropy, argmax, and sums: the GPU version of cpu/loss.cpp. One warp per row.

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {

namespace {

// dlogits may alias logits.
__global__ void cross_entropy_rows(float* losses, float* dlogits, const float* logits, const int32_t* targets,
                                   float scale, int64_t N, int V) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float* x = logits + n * V;
  float* dx = dlogits ? dlogits + n * V : nullptr;
  const int32_t target = targets[n];
  if (target < 0) {
    if (lane_index() == 0) losses[n] = 0;
    for (int v = lane_index(); dx && v < V; v += WARP) dx[v] = 0;
    return;
  }
  const float top = largest_of(V, [&](int v) { return x[v]; }).value;
  const float total = sum_lanes(V, [&](float sum, int v) { return sum + numerics::exp(x[v] - top); });
  if (lane_index() == 0) losses[n] = numerics::log(total) - (x[target] - top);
  if (!dx) return;
  __syncwarp();  // x[target] is read before another lane writes there
#pragma unroll 4
  for (int v = lane_index(); v < V; v += WARP)
    dx[v] = scale * (numerics::exp(x[v] - top) / total - (v == target ? 1.0f : 0.0f));
}

__global__ void binary_cross_entropy_rows(float* losses, float* dlogits, const float* logits, const float* sets,
                                          float scale, int64_t N, int V) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float *x = logits + n * V, *y = sets + n * V;
  const float loss = sum_lanes(V, [&](float sum, int v) { return sum + (numerics::softplus(x[v]) - y[v] * x[v]); });
  if (lane_index() == 0) losses[n] = loss;
  if (!dlogits) return;
  for (int v = lane_index(); v < V; v += WARP) dlogits[n * V + v] = scale * (numerics::sigmoid(x[v]) - y[v]);
}

__global__ void sigmoid_squared_error_rows(float* losses, float* dlogits, const float* logits, const float* sets,
                                           float scale, int64_t N, int V) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const float *x = logits + n * V, *y = sets + n * V;
  const float loss = sum_lanes(V, [&](float sum, int v) {
    const float error = y[v] < 0 ? 0.0f : numerics::sigmoid(x[v]) - y[v];
    return sum + error * error;
  });
  if (lane_index() == 0) losses[n] = loss;
  if (!dlogits) return;
  for (int v = lane_index(); v < V; v += WARP) {
    const float s = numerics::sigmoid(x[v]);
    dlogits[n * V + v] = y[v] < 0 ? 0.0f : scale * (2 * (s - y[v]) * (s * (1 - s)));
  }
}

__global__ void argmax_rows(int32_t* best, const float* logits, int64_t N, int V) {
  const int64_t n = row_of_warp();
  if (n >= N) return;
  const int index = largest_of(V, [&](int v) { return logits[n * V + v]; }).index;
  if (lane_index() == 0) best[n] = index;
}

// ---- Long sums ----------------------------------------------------------------------------------------------------

constexpr int64_t LONG = 1024;  // elements of one row of a long sum
constexpr int FINISH_WARPS = 32;

struct Term {
  __device__ static float add(float sum, float x) { return sum + x; }
};
struct Square {
  __device__ static float add(float sum, float x) { return numerics::fma(x, x, sum); }
};

template <class What>
__device__ float sum_row(const float* x, int64_t row, int64_t n) {
  const int length = static_cast<int>(min(LONG, n - row * LONG));
  return sum_lanes(length, [&](float sum, int i) { return What::add(sum, x[row * LONG + i]); });
}

// partial_r = the sum of row r of x
template <class What>
__global__ void sum_rows(float* partial, const float* x, int64_t n) {
  const int64_t row = row_of_warp();
  if (row * LONG >= n) return;
  const float sum = sum_row<What>(x, row, n);
  if (lane_index() == 0) partial[row] = sum;
}

// Sums the row sums in place, level by level, in one block. It processes one row per warp at a time. All warps read
// before any warp writes, so that no sum overwrites numbers that are still needed.
__global__ void __launch_bounds__(FINISH_WARPS* WARP) finish_sum(float* sum, float* partial, int64_t rows) {
  int64_t left = rows;
  while (left > 1) {
    const int64_t sums = (left + LONG - 1) / LONG;
    for (int64_t first = 0; first < sums; first += FINISH_WARPS) {
      const int64_t row = first + warp_index();
      const float of_row = row < sums ? sum_row<Term>(partial, row, left) : 0;
      __syncthreads();
      if (row < sums && lane_index() == 0) partial[row] = of_row;
      __syncthreads();
    }
    left = sums;
  }
  if (threadIdx.x == 0) *sum = rows > 0 ? partial[0] : 0;
}

template <class What>
void sum_all(float* sum, float* partial, const float* x, int64_t n, cudaStream_t stream) {
  const int64_t rows = (n + LONG - 1) / LONG;
  if (rows > 0) LAUNCH_ROWS(sum_rows<What>, rows, stream, partial, x, n);
  LAUNCH(finish_sum, 1, FINISH_WARPS * WARP, 0, stream, sum, partial, rows);
}

}  // namespace

void Gpu::cross_entropy(real* losses, real* dlogits, const real* logits, const int32_t* targets, real scale, int64_t N,
                        int V) {
  LAUNCH_ROWS(cross_entropy_rows, N, stream_, losses, dlogits, logits, targets, scale, N, V);
}

void Gpu::binary_cross_entropy(real* losses, real* dlogits, const real* logits, const real* sets, real scale, int64_t N,
                               int V) {
  LAUNCH_ROWS(binary_cross_entropy_rows, N, stream_, losses, dlogits, logits, sets, scale, N, V);
}

void Gpu::sigmoid_squared_error(real* losses, real* dlogits, const real* logits, const real* sets, real scale,
                                int64_t N, int V) {
  LAUNCH_ROWS(sigmoid_squared_error_rows, N, stream_, losses, dlogits, logits, sets, scale, N, V);
}

void Gpu::argmax(int32_t* best, const real* logits, int64_t N, int V) {
  LAUNCH_ROWS(argmax_rows, N, stream_, best, logits, N, V);
}

void Gpu::sum(real* sum, real* partial, const real* x, int64_t n) { sum_all<Term>(sum, partial, x, n, stream_); }

void Gpu::sum_of_squares(real* sum, real* partial, const real* x, int64_t n) {
  sum_all<Square>(sum, partial, x, n, stream_);
}

}  // namespace petroglyph
