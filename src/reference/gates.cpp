// Gates and recurrent cells: element by element.

#include "reference/reference.h"

namespace petroglyph {

using numerics::fma;
using numerics::sigmoid;

void Reference::silu_gate(real* gated, const real* y, const real* z, int64_t n) {
  for (int64_t i = 0; i < n; ++i) gated[i] = y[i] * (z[i] * sigmoid(z[i]));
}

// silu'(z) = σ + z σ (1 − σ)
void Reference::silu_gate_backward(real* dy, real* dz, real* gated, const real* dgated, const real* y, const real* z,
                                   int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const real g = dgated[i], s = sigmoid(z[i]), silu = z[i] * s;
    gated[i] = y[i] * silu;
    dz[i] = g * y[i] * fma(silu, 1 - s, s);
    dy[i] = g * silu;
  }
}

void Reference::tanh(real* h, const real* z, int64_t n) {
  for (int64_t i = 0; i < n; ++i) h[i] = numerics::tanh(z[i]);
}

void Reference::tanh_backward(real* dz, const real* dh, const real* h, int64_t n) {
  for (int64_t i = 0; i < n; ++i) dz[i] = dh[i] * fma(-h[i], h[i], real(1));
}

// gates (N,4H): a row has i, f, g and o (H) one after the other
void Reference::lstm_cell(real* h, real* c, real* gates, const real* c_before, int64_t N, int H) {
  for (int64_t n = 0; n < N; ++n)
    for (int64_t k = 0; k < H; ++k) {
      real *i = gates + n * 4 * H + k, *f = i + H, *g = f + H, *o = g + H;
      *i = sigmoid(*i), *f = sigmoid(*f), *g = numerics::tanh(*g), *o = sigmoid(*o);
      c[n * H + k] = fma(*f, c_before[n * H + k], *i * *g);
      h[n * H + k] = *o * numerics::tanh(c[n * H + k]);
    }
}

void Reference::lstm_cell_backward(real* dgates, real* dc, const real* dh, const real* gates, const real* c,
                                   const real* c_before, int64_t N, int H) {
  for (int64_t n = 0; n < N; ++n)
    for (int64_t k = 0; k < H; ++k) {
      const int64_t at = n * H + k, gate = n * 4 * H + k;
      const real i = gates[gate], f = gates[gate + H], g = gates[gate + 2 * H], o = gates[gate + 3 * H];
      const real tau = numerics::tanh(c[at]), d = fma(dh[at] * o, fma(-tau, tau, real(1)), dc[at]);
      dgates[gate] = d * g * (i * (1 - i));
      dgates[gate + H] = d * c_before[at] * (f * (1 - f));
      dgates[gate + 2 * H] = d * i * fma(-g, g, real(1));
      dgates[gate + 3 * H] = dh[at] * tau * (o * (1 - o));
      dc[at] = d * f;
    }
}

}  // namespace petroglyph
