// Elementwise gates and recurrent cells: the GPU version of cpu/gates.cpp. A gate's thread computes four elements.
// Predicted, not yet measured: 32 million numbers 0.16 → 0.11 ms forward, 0.22 → 0.17 ms backward.

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {

namespace {

constexpr int THREADS = 256;

// gated may alias y or z.
__global__ void gate(float* gated, const float* y, const float* z, int64_t n) {
  for_elements<THREADS>(
      n, [&](int64_t i) { return make_float2(y[i], z[i]); },
      [&](int64_t i, float2 at) { gated[i] = at.x * (at.y * numerics::sigmoid(at.y)); });
}

// dy or dz may alias dgated.
__global__ void gate_backward(float* dy, float* dz, float* gated, const float* dgated, const float* y, const float* z,
                              int64_t n) {
  for_elements<THREADS>(
      n, [&](int64_t i) { return make_float3(dgated[i], y[i], z[i]); },
      [&](int64_t i, float3 at) {
        const float g = at.x, s = numerics::sigmoid(at.z), silu = at.z * s;
        gated[i] = at.y * silu;
        dz[i] = g * at.y * numerics::fma(silu, 1 - s, s);
        dy[i] = g * silu;
      });
}

}  // namespace

void Gpu::silu_gate(real* gated, const real* y, const real* z, int64_t n) {
  LAUNCH(gate, blocks_for(n, FOUR * THREADS), THREADS, 0, stream_, gated, y, z, n);
}

void Gpu::silu_gate_backward(real* dy, real* dz, real* gated, const real* dgated, const real* y, const real* z,
                             int64_t n) {
  LAUNCH(gate_backward, blocks_for(n, FOUR * THREADS), THREADS, 0, stream_, dy, dz, gated, dgated, y, z, n);
}

// ---- Recurrent cells ----------------------------------------------------------------------------------------------

namespace {

// h may alias z.
__global__ void squash(float* h, const float* z, int64_t n) {
  const int64_t i = element_of_thread<THREADS>();
  if (i < n) h[i] = numerics::tanh(z[i]);
}

// dz may alias dh.
__global__ void squash_backward(float* dz, const float* dh, const float* h, int64_t n) {
  const int64_t i = element_of_thread<THREADS>();
  if (i < n) dz[i] = dh[i] * numerics::fma(-h[i], h[i], 1.0f);
}

// One thread per cell; the cell's four gates are H numbers apart.
__global__ void cell_step(float* h, float* c, float* gates, const float* c_before, int64_t N, int H) {
  const int64_t at = element_of_thread<THREADS>();
  if (at >= N * H) return;
  float* gate = gates + at / H * 4 * H + at % H;
  const float i = numerics::sigmoid(gate[0]), f = numerics::sigmoid(gate[H]);
  const float g = numerics::tanh(gate[2 * H]), o = numerics::sigmoid(gate[3 * H]);
  const float next = numerics::fma(f, c_before[at], i * g);
  gate[0] = i;
  gate[H] = f;
  gate[2 * H] = g;
  gate[3 * H] = o;
  c[at] = next;
  h[at] = o * numerics::tanh(next);
}

// dgates may alias gates.
__global__ void cell_step_backward(float* dgates, float* dc, const float* dh, const float* gates, const float* c,
                                   const float* c_before, int64_t N, int H) {
  const int64_t at = element_of_thread<THREADS>();
  if (at >= N * H) return;
  const int64_t first = at / H * 4 * H + at % H;
  const float* gate = gates + first;
  float* dgate = dgates + first;
  const float i = gate[0], f = gate[H], g = gate[2 * H], o = gate[3 * H];
  const float squashed = numerics::tanh(c[at]);
  const float d = numerics::fma(dh[at] * o, numerics::fma(-squashed, squashed, 1.0f), dc[at]);
  dgate[0] = d * g * (i * (1 - i));
  dgate[H] = d * c_before[at] * (f * (1 - f));
  dgate[2 * H] = d * i * numerics::fma(-g, g, 1.0f);
  dgate[3 * H] = dh[at] * squashed * (o * (1 - o));
  dc[at] = d * f;
}

}  // namespace

void Gpu::tanh(real* h, const real* z, int64_t n) {
  LAUNCH(squash, blocks_for(n, THREADS), THREADS, 0, stream_, h, z, n);
}

void Gpu::tanh_backward(real* dz, const real* dh, const real* h, int64_t n) {
  LAUNCH(squash_backward, blocks_for(n, THREADS), THREADS, 0, stream_, dz, dh, h, n);
}

void Gpu::lstm_cell(real* h, real* c, real* gates, const real* c_before, int64_t N, int H) {
  LAUNCH(cell_step, blocks_for(N * H, THREADS), THREADS, 0, stream_, h, c, gates, c_before, N, H);
}

void Gpu::lstm_cell_backward(real* dgates, real* dc, const real* dh, const real* gates, const real* c,
                             const real* c_before, int64_t N, int H) {
  LAUNCH(cell_step_backward, blocks_for(N * H, THREADS), THREADS, 0, stream_, dgates, dc, dh, gates, c, c_before, N, H);
}

}  // namespace petroglyph
