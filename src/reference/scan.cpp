// The selective scan of Mamba, each channel by itself. The derivation is in models/mamba.cpp.

#include <algorithm>
#include <vector>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

using numerics::fma;

namespace {

// A log₂e for A = −exp(A_log), and exp(Δ A) for Δ = step
real rate_of(real A_log) { return -numerics::exp(A_log) * LOG2_E; }
real decay(real step, real rate) { return numerics::exp2_in_range(numerics::max(real(-100), step * rate)); }

}  // namespace

void Reference::selective_scan(real* y, real* state, real* saved, const real* u, const real* pre_step,
                               const real* A_log, const real* B, const real* C, const real* D, const ScanShape& shape) {
  const int64_t T = shape.length, I = shape.channels, S = shape.states;
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
          h[s] = fma(decay(step, rate_of(A_log[c * S + s])), h[s], step * input * B[n * shape.row + s]);
          sum = fma(h[s], C[n * shape.row + s], sum);
        }
        y[n * I + c] = fma(D[c], input, sum);
      }
      for (int64_t s = 0; state && s < S; ++s) state[(b * S + s) * I + c] = h[s];
    }
}

// The forward pass is repeated here from the first position, so the saved states are not read. Of one sample: h
// (T+1,S,I) before each position and after the last; dh (T,S,I), the gradient of h after each position.
void Reference::selective_scan_backward(real* du, real* dpre_step, real* dA_log, real* dB, real* dC, real* dD,
                                        real* /*partial*/, const real* dy, const real* /*saved*/, const real* u,
                                        const real* pre_step, const real* A_log, const real* B, const real* C,
                                        const real* D, const ScanShape& shape) {
  const int64_t T = shape.length, I = shape.channels, S = shape.states;
  const real ln2 = real(0.69314718055994531);
  std::vector<real> h(static_cast<size_t>((T + 1) * S * I)), dh(h.size()), dA(static_cast<size_t>(I * S)), dskip(dA);
  for (int64_t b = 0; b < shape.batch; ++b) {
    for (int64_t c = 0; c < I; ++c) {
      std::vector<real> passed(static_cast<size_t>(S)), sample_dA(passed);  // passed: from position t + 1 to h
      real sample_dD = 0;
      for (int64_t t = 0; t < T; ++t)
        for (int64_t s = 0; s < S; ++s) {
          const int64_t n = b * T + t, at = (t * S + s) * I + c;
          const real step = numerics::softplus(pre_step[n * I + c]), input = step * u[n * I + c];
          h[at + S * I] = fma(decay(step, rate_of(A_log[c * S + s])), h[at], input * B[n * shape.row + s]);
        }
      for (int64_t t = T - 1; t >= 0; --t) {
        const int64_t n = b * T + t;
        const real g = dy[n * I + c], input = u[n * I + c], step = numerics::softplus(pre_step[n * I + c]);
        real dinput = 0, dstep_of_decay = 0;
        for (int64_t s = 0; s < S; ++s) {
          const int64_t at = (t * S + s) * I + c;
          const real rate = rate_of(A_log[c * S + s]);
          dh[at] = fma(g, C[n * shape.row + s], passed[s]);
          passed[s] = dh[at] * decay(step, rate);
          const real slope = passed[s] * h[at];  // the gradient with respect to Δ A
          sample_dA[s] = fma(slope, step, sample_dA[s]);
          dinput = fma(dh[at], B[n * shape.row + s], dinput);
          dstep_of_decay = fma(slope, rate, dstep_of_decay);
        }
        du[n * I + c] = fma(step, dinput, D[c] * g);
        dpre_step[n * I + c] = fma(input, dinput, dstep_of_decay * ln2) * numerics::sigmoid(pre_step[n * I + c]);
        sample_dD = fma(g, input, sample_dD);
      }
      for (int64_t s = 0; s < S; ++s) dA[c * S + s] += sample_dA[s];
      dskip[c] += sample_dD;
    }
    for (int64_t t = 0; t < T; ++t)
      for (int64_t s = 0; s < S; ++s) {
        const int64_t n = b * T + t, at = (t * S + s) * I;
        real &to_B = dB[n * shape.row + s], &to_C = dC[n * shape.row + s];
        to_B = to_C = 0;
        for (int64_t first = 0; first < I; first += ScanShape::GROUP) {
          const int64_t count = std::min<int64_t>(ScanShape::GROUP, I - first), of_group = n * I + first;
          to_B += lane_sum(count, [&](real sum, int64_t i) {
            return sum + dh[at + first + i] * (numerics::softplus(pre_step[of_group + i]) * u[of_group + i]);
          });
          to_C +=
              lane_sum(count, [&](real sum, int64_t i) { return sum + dy[of_group + i] * h[at + S * I + first + i]; });
        }
      }
  }
  for (int64_t c = 0; c < I; ++c) {
    for (int64_t s = 0; s < S; ++s)
      dA_log[c * S + s] = fma(-numerics::exp(A_log[c * S + s]), dA[c * S + s], dA_log[c * S + s]);
    dD[c] += dskip[c];
  }
}

}  // namespace petroglyph
