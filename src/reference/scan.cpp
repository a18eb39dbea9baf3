// The selective scan of Mamba, each channel by itself. The derivation is in models/mamba.cpp.

#include <algorithm>
#include <vector>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

// A log₂e for A = −exp(A_log) (I,S)
std::vector<real> rates_of(const real* A_log, const ScanShape& shape) {
  std::vector<real> rates;
  for (int64_t i = 0; i < int64_t{shape.channels} * shape.states; ++i)
    rates.push_back(-numerics::exp(A_log[i]) * LOG2_E);
  return rates;
}

// exp(Δ A) for Δ = step
real decay(real step, real rate) { return numerics::exp2_in_range(numerics::max(real(-100), step * rate)); }

}  // namespace

void Reference::selective_scan(real* y, real* state, real* saved, const real* u, const real* pre_step, const real* A_log,
                               const real* B, const real* C, const real* D, const ScanShape& shape) {
  const int64_t T = shape.length, I = shape.channels, S = shape.states;
  const std::vector<real> rates = rates_of(A_log, shape);
  std::vector<real> h(static_cast<size_t>(S));
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t c = 0; c < I; ++c) {
      for (int64_t s = 0; s < S; ++s) h[s] = state ? state[(b * S + s) * I + c] : 0;
      for (int64_t t = 0; t < T; ++t) {
        const int64_t n = b * T + t, segment = b * shape.segments() + t / ScanShape::SEGMENT;
        const real input = u[n * I + c], step = numerics::softplus(pre_step[n * I + c]);
        real sum = 0;
        for (int64_t s = 0; s < S; ++s) {
          if (saved && t % ScanShape::SEGMENT == 0) saved[(segment * S + s) * I + c] = h[s];
          h[s] = fma(decay(step, rates[c * S + s]), h[s], step * input * B[n * shape.row + s]);
          sum = fma(h[s], C[n * shape.row + s], sum);
        }
        y[n * I + c] = fma(D[c], input, sum);
      }
      for (int64_t s = 0; state && s < S; ++s) state[(b * S + s) * I + c] = h[s];
    }
}

namespace {

// dB and dC (S) of one position, from dh and h (S,I) behind it, and its dy, u and pre_step (I). Each group of channels
// is a sum of its own.
void sum_over_channels(real* dB, real* dC, const real* dh, const real* h, const real* dy, const real* u,
                       const real* pre_step, const ScanShape& shape) {
  const int64_t I = shape.channels;
  for (int64_t s = 0; s < shape.states; ++s) {
    dB[s] = dC[s] = 0;
    for (int64_t first = 0; first < I; first += ScanShape::GROUP) {
      const int64_t count = std::min<int64_t>(ScanShape::GROUP, I - first);
      dB[s] += lane_sum(count, [&](real sum, int64_t i) {
        const int64_t c = first + i;
        return sum + dh[s * I + c] * (numerics::softplus(pre_step[c]) * u[c]);
      });
      dC[s] += lane_sum(count, [&](real sum, int64_t i) { return sum + dy[first + i] * h[s * I + first + i]; });
    }
  }
}

}  // namespace

// The forward pass is repeated here from the first position, so the saved states are not read. Of one sample: h
// (T+1,S,I) before each position and after the last; dh (T,S,I), the gradient of h after each position.
void Reference::selective_scan_backward(real* du, real* dpre_step, real* dA_log, real* dB, real* dC, real* dD,
                                        real* /*partial*/, const real* dy, const real* /*saved*/, const real* u,
                                        const real* pre_step, const real* A_log, const real* B, const real* C,
                                        const real* D, const ScanShape& shape) {
  const int64_t T = shape.length, I = shape.channels, S = shape.states;
  const real ln2 = real(0.69314718055994531);
  const std::vector<real> rates = rates_of(A_log, shape);
  const auto at = [&](int64_t t, int64_t s, int64_t c) { return (t * S + s) * I + c; };
  std::vector<real> h(static_cast<size_t>((T + 1) * S * I)), dh(h.size()), dA(static_cast<size_t>(I * S)),
      dskip(dA.size());
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t c = 0; c < I; ++c) {
      std::vector<real> passed(static_cast<size_t>(S)), sample_dA(passed.size());  // passed: from position t + 1 to h
      real sample_dD = 0;
      for (int64_t t = 0; t < T; ++t) {
        const int64_t n = b * T + t;
        const real step = numerics::softplus(pre_step[n * I + c]);
        for (int64_t s = 0; s < S; ++s)
          h[at(t + 1, s, c)] =
              fma(decay(step, rates[c * S + s]), h[at(t, s, c)], step * u[n * I + c] * B[n * shape.row + s]);
      }
      for (int64_t t = T - 1; t >= 0; --t) {
        const int64_t n = b * T + t;
        const real g = dy[n * I + c], input = u[n * I + c], step = numerics::softplus(pre_step[n * I + c]);
        real dinput = 0, dstep_of_decay = 0;
        for (int64_t s = 0; s < S; ++s) {
          const real rate = rates[c * S + s], d = fma(g, C[n * shape.row + s], passed[s]);
          dh[at(t, s, c)] = d;
          passed[s] = d * decay(step, rate);
          const real slope = passed[s] * h[at(t, s, c)];  // the gradient with respect to Δ A
          sample_dA[s] = fma(slope, step, sample_dA[s]);
          dinput = fma(d, B[n * shape.row + s], dinput);
          dstep_of_decay = fma(slope, rate, dstep_of_decay);
        }
        du[n * I + c] = fma(step, dinput, D[c] * g);
        dpre_step[n * I + c] = fma(input, dinput, dstep_of_decay * ln2) * numerics::sigmoid(pre_step[n * I + c]);
        sample_dD = fma(g, input, sample_dD);
      }
      for (int64_t s = 0; s < S; ++s) dA[c * S + s] += sample_dA[s];
      dskip[c] += sample_dD;
    }
    for (int64_t t = 0; t < T; ++t) {
      const int64_t n = b * T + t;
      sum_over_channels(dB + n * shape.row, dC + n * shape.row, &dh[at(t, 0, 0)], &h[at(t + 1, 0, 0)], dy + n * I,
                        u + n * I, pre_step + n * I, shape);
    }
  }
  for (int64_t c = 0; c < I; ++c) {
    for (int64_t s = 0; s < S; ++s)
      dA_log[c * S + s] = fma(-numerics::exp(A_log[c * S + s]), dA[c * S + s], dA_log[c * S + s]);
    dD[c] += dskip[c];
  }
}

}  // namespace petroglyph
