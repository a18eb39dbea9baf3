// Gates and recurrent cells, element by element: SiLU gate and tanh of n elements, the LSTM cell of N rows with H
// units. The loops that define them are in reference/gates.cpp.

#include "cpu/cpu.h"
#include "cpu/loops.h"

namespace petroglyph {

namespace {

constexpr int64_t ELEMENTS = 8192;  // elements of one task

int64_t rows_of(int width) { return width < ELEMENTS ? ELEMENTS / width : 1; }

}  // namespace

void Cpu::silu_gate(real* gated, const real* y, const real* z, int64_t n) {
  parallel_elements(threads_, n, n * FUNCTION, [&](int64_t i) { gated[i] = y[i] * (z[i] * numerics::sigmoid(z[i])); });
}

// silu'(z) = σ + z σ (1 − σ)
void Cpu::silu_gate_backward(real* dy, real* dz, real* gated, const real* dgated, const real* y, const real* z,
                             int64_t n) {
  parallel_elements(threads_, n, n * FUNCTION, [&](int64_t i) {
    const real g = dgated[i], s = numerics::sigmoid(z[i]), silu = z[i] * s;
    gated[i] = y[i] * silu;
    dz[i] = g * y[i] * numerics::fma(silu, 1 - s, s);
    dy[i] = g * silu;
  });
}

void Cpu::tanh(real* h, const real* z, int64_t n) {
  parallel_elements(threads_, n, n * FUNCTION, [&](int64_t i) { h[i] = numerics::tanh(z[i]); });
}

void Cpu::tanh_backward(real* dz, const real* dh, const real* h, int64_t n) {
  parallel_elements(threads_, n, n * PASS, [&](int64_t i) { dz[i] = dh[i] * numerics::fma(-h[i], h[i], real(1)); });
}

void Cpu::lstm_cell(real* h, real* c, real* gates, const real* c_before, int64_t N, int H) {
  parallel_rows(threads_, N, rows_of(H), N * H * 5 * FUNCTION, [&](int64_t n, int) {
    real *input = gates + n * 4 * H, *forget = input + H, *candidate = forget + H, *output = candidate + H;
    const real* before = c_before + n * H;
    real *cell = c + n * H, *out = h + n * H;
#pragma omp simd
    for (int k = 0; k < H; ++k) {
      const real i = numerics::sigmoid(input[k]), f = numerics::sigmoid(forget[k]);
      const real g = numerics::tanh(candidate[k]), o = numerics::sigmoid(output[k]);
      const real next = numerics::fma(f, before[k], i * g);
      input[k] = i;
      forget[k] = f;
      candidate[k] = g;
      output[k] = o;
      cell[k] = next;
      out[k] = o * numerics::tanh(next);
    }
  });
}

void Cpu::lstm_cell_backward(real* dgates, real* dc, const real* dh, const real* gates, const real* c,
                             const real* c_before, int64_t N, int H) {
  parallel_rows(threads_, N, rows_of(H), N * H * 2 * FUNCTION, [&](int64_t n, int) {
    const real *input = gates + n * 4 * H, *forget = input + H, *candidate = forget + H, *output = candidate + H;
    real *dinput = dgates + n * 4 * H, *dforget = dinput + H, *dcandidate = dforget + H, *doutput = dcandidate + H;
#pragma omp simd
    for (int k = 0; k < H; ++k) {
      const int64_t at = n * H + k;
      const real i = input[k], f = forget[k], g = candidate[k], o = output[k];
      const real squashed = numerics::tanh(c[at]);
      const real d = numerics::fma(dh[at] * o, numerics::fma(-squashed, squashed, real(1)), dc[at]);
      dinput[k] = d * g * (i * (1 - i));
      dforget[k] = d * c_before[at] * (f * (1 - f));
      dcandidate[k] = d * i * numerics::fma(-g, g, real(1));
      doutput[k] = dh[at] * squashed * (o * (1 - o));
      dc[at] = d * f;
    }
  });
}

}  // namespace petroglyph
