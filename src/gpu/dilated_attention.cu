// Sliding dilated attention: the GPU version of cpu/dilated_attention.cpp. Forward: one warp per head of a query. Its
// lanes share the channels of a dot product (lane, lane + 32, …), then the keys of the softmax. Gradients of queries:
// the same. Gradients of keys and values: one thread per channel of a key. Every number has one writer.

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {

namespace {

constexpr int THREADS = 256;

// One head of a query: the location of its keys and values, and the number of keys that it attends to.
struct Place {
  const DilatedInput& in;
  const DilatedShape& shape;
  int64_t row, sample, query;
  int head, inside;

  __device__ Place(const DilatedInput& in, const DilatedShape& shape, int64_t number)
      : in(in),
        shape(shape),
        row(number / shape.heads),
        sample(row / shape.queries),
        query(row % shape.queries),
        head(static_cast<int>(number % shape.heads)),
        inside(shape.inside(query)) {}

  __device__ int channel() const { return head * shape.head_width; }
  __device__ int64_t score() const { return (row * shape.heads + head) * shape.chunk; }
  __device__ int attended() const { return in.k_before ? shape.chunk : inside; }
  __device__ const float* q() const { return in.q + row * shape.query_step + channel(); }
  __device__ const float* key(int i) const { return at(in.k, in.k_before, i); }
  __device__ const float* value(int i) const { return at(in.v, in.v_before, i); }

 private:
  __device__ const float* at(const float* inside_of, const float* before, int i) const {
    if (i >= inside) return before + channel();
    return inside_of + (sample * shape.capacity + shape.key(query, i)) * shape.key_step + channel();
  }
};

__device__ float dot(const float* a, const float* b, int n) {
  return sum_lanes(n, [&](float sum, int c) { return numerics::fma(a[c], b[c], sum); });
}

__global__ void attend(float* y, float* weights, DilatedInput in, DilatedShape shape, float scale) {
  const int64_t number = row_of_warp();
  if (number >= shape.queries_of_all() * shape.heads) return;
  const Place place(in, shape, number);
  const int attended = place.attended(), lane = lane_index();
  float* weight = weights + place.score();
  const float* relative = in.relative + place.head * shape.chunk;
  for (int i = 0; i < attended; ++i) {
    const float product = dot(place.q(), place.key(i), shape.head_width);
    if (lane == i % WARP) weight[i] = numerics::fma(product, scale, LOG2_E * relative[i]);
  }
  // Until the sum is known, a lane reads only weights that it wrote itself.
  const float top =
      largest_of(attended, [&](int i) { return i % WARP == lane ? weight[i] : -numerics::INFINITE; }).value;
  for (int i = lane; i < attended; i += WARP)
    weight[i] = numerics::exp2_in_range(numerics::max(-126.0f, weight[i] - top));
  const float inv_sum = 1 / sum_lanes(attended, [&](float sum, int i) { return sum + weight[i]; });
  for (int i = lane; i < shape.chunk; i += WARP) weight[i] = i < attended ? weight[i] * inv_sum : 0;
  __syncwarp();
  for (int c = lane; c < shape.head_width; c += WARP) {
    float sum = 0;
    for (int i = 0; i < attended; ++i) sum = numerics::fma(weight[i], place.value(i)[c], sum);
    y[place.row * shape.width() + place.channel() + c] = sum;
  }
}

// ds and dq
__global__ void query_gradients(float* dq, float* dscores, const float* dy, const float* weights, DilatedInput in,
                                DilatedShape shape, float scale) {
  const int64_t number = row_of_warp();
  if (number >= shape.queries_of_all() * shape.heads) return;
  const Place place(in, shape, number);
  const int attended = place.attended(), lane = lane_index();
  const float* a = weights + place.score();
  float* d = dscores + place.score();
  const float* own_dy = dy + place.row * shape.width() + place.channel();
  for (int i = 0; i < attended; ++i) {
    const float product = dot(own_dy, place.value(i), shape.head_width);
    if (lane == i % WARP) d[i] = product;
  }
  const float mean = sum_lanes(attended, [&](float sum, int i) { return numerics::fma(a[i], d[i], sum); });
  for (int i = lane; i < shape.chunk; i += WARP) d[i] = i < attended ? a[i] * (d[i] - mean) : 0;
  __syncwarp();
  for (int c = lane; c < shape.head_width; c += WARP) {
    float sum = 0;
    for (int i = 0; i < attended; ++i) sum = numerics::fma(d[i], place.key(i)[c], sum);
    dq[place.row * shape.query_step + place.channel() + c] = sum * scale;
  }
}

// dk and dv. One thread per channel of a key.
__global__ void key_gradients(float* dk, float* dv, const float* dscores, const float* dy, const float* weights,
                              DilatedInput in, DilatedShape shape, float scale) {
  const int width = shape.width();
  const int64_t element = element_of_thread<THREADS>(), key = element / width;
  if (key >= static_cast<int64_t>(shape.batch) * shape.keys) return;
  const int c = static_cast<int>(element % width), head = c / shape.head_width;
  float sum_k = 0, sum_v = 0;
  for (int i = 0; i < shape.chunk; ++i) {
    const int64_t query = shape.query(key % shape.keys, i);
    if (query < 0) continue;
    const int64_t row = key / shape.keys * shape.queries + query, score = (row * shape.heads + head) * shape.chunk + i;
    sum_k = numerics::fma(dscores[score], in.q[row * shape.query_step + c], sum_k);
    sum_v = numerics::fma(weights[score], dy[row * width + c], sum_v);
  }
  dk[key * shape.key_step + c] = sum_k * scale;
  dv[key * shape.key_step + c] = sum_v;
}

// dk_before and dv_before. One thread per channel.
__global__ void before_gradients(float* dk, float* dv, const float* dscores, const float* dy, const float* weights,
                                 DilatedInput in, DilatedShape shape, float scale) {
  const int c = static_cast<int>(element_of_thread<THREADS>()), width = shape.width();
  if (c >= width) return;
  float sum_k = 0, sum_v = 0;
  for (int b = 0; b < shape.batch; ++b)
    for (int j = 0; j < shape.queries && shape.inside(j) < shape.chunk; ++j) {
      const int64_t row = static_cast<int64_t>(b) * shape.queries + j;
      const int64_t scores = (row * shape.heads + c / shape.head_width) * shape.chunk;
      for (int i = shape.inside(j); i < shape.chunk; ++i) {
        sum_k = numerics::fma(dscores[scores + i], in.q[row * shape.query_step + c], sum_k);
        sum_v = numerics::fma(weights[scores + i], dy[row * width + c], sum_v);
      }
    }
  dk[c] = sum_k * scale;
  dv[c] = sum_v;
}

}  // namespace

void Gpu::dilated_attention(real* y, real* weights, const DilatedInput& in, const DilatedShape& shape) {
  const float scale = LOG2_E / numerics::sqrt(static_cast<float>(shape.head_width));
  LAUNCH_ROWS(attend, shape.queries_of_all() * shape.heads, stream_, y, weights, in, shape, scale);
}

void Gpu::dilated_attention_backward(const DilatedGradient& out, const real* dy, const real* weights,
                                     const DilatedInput& in, const DilatedShape& shape) {
  const float scale = 1 / numerics::sqrt(static_cast<float>(shape.head_width));
  LAUNCH_ROWS(query_gradients, shape.queries_of_all() * shape.heads, stream_, out.dq, out.dscores, dy, weights, in,
              shape, scale);
  const int64_t elements = static_cast<int64_t>(shape.batch) * shape.keys * shape.width();
  LAUNCH(key_gradients, blocks_for(elements, THREADS), THREADS, 0, stream_, out.dk, out.dv, out.dscores, dy, weights,
         in, shape, scale);
  if (!in.k_before) return;
  LAUNCH(before_gradients, blocks_for(shape.width(), THREADS), THREADS, 0, stream_, out.dk_before, out.dv_before,
         out.dscores, dy, weights, in, shape, scale);
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

namespace {

__global__ void gather_rows(float* y, const float* x, int T, int first, int step, int count, int64_t elements, int D) {
  const int64_t i = element_of_thread<THREADS>(), row = i / D;
  if (i < elements) y[i] = x[(row / count * T + first + row % count * step) * D + i % D];
}

__global__ void add_rows_back(float* x, const float* y, int T, int first, int step, int count, int64_t elements,
                              int D) {
  const int64_t i = element_of_thread<THREADS>(), row = i / D;
  if (i < elements) x[(row / count * T + first + row % count * step) * D + i % D] += y[i];
}

}  // namespace

void Gpu::take_rows(real* y, const real* x, int B, int T, int first, int step, int count, int D) {
  const int64_t elements = static_cast<int64_t>(B) * count * D;
  LAUNCH(gather_rows, blocks_for(elements, THREADS), THREADS, 0, stream_, y, x, T, first, step, count, elements, D);
}

void Gpu::add_to_rows(real* x, const real* y, int B, int T, int first, int step, int count, int D) {
  const int64_t elements = static_cast<int64_t>(B) * count * D;
  LAUNCH(add_rows_back, blocks_for(elements, THREADS), THREADS, 0, stream_, x, y, T, first, step, count, elements, D);
}

}  // namespace petroglyph
