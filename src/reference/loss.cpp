// Losses, the best answer, and long sums.

#include <algorithm>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

void Reference::cross_entropy(real* losses, real* dlogits, const real* logits, const int32_t* targets, real scale,
                              int64_t N, int V) {
  for (int64_t n = 0; n < N; ++n) {
    const real* x = logits + n * V;
    const bool counts = targets[n] >= 0;
    const real top = lane_largest(V, [&](int64_t v) { return x[v]; });
    const real total = lane_sum(V, [&](real sum, int64_t v) { return sum + numerics::exp(x[v] - top); });
    losses[n] = counts ? numerics::log(total) - (x[targets[n]] - top) : 0;
    for (int64_t v = 0; dlogits && v < V; ++v) {
      const real probability = numerics::exp(x[v] - top) / total;
      dlogits[n * V + v] = counts ? scale * (probability - (v == targets[n] ? real(1) : real(0))) : 0;
    }
  }
}

void Reference::binary_cross_entropy(real* losses, real* dlogits, const real* logits, const real* sets, real scale,
                                     int64_t N, int V) {
  for (int64_t n = 0; n < N; ++n) {
    const real *x = logits + n * V, *y = sets + n * V;
    losses[n] = lane_sum(V, [&](real sum, int64_t v) { return sum + (numerics::softplus(x[v]) - y[v] * x[v]); });
    for (int64_t v = 0; dlogits && v < V; ++v) dlogits[n * V + v] = scale * (numerics::sigmoid(x[v]) - y[v]);
  }
}

void Reference::sigmoid_squared_error(real* losses, real* dlogits, const real* logits, const real* sets, real scale,
                                      int64_t N, int V) {
  for (int64_t n = 0; n < N; ++n) {
    const real *x = logits + n * V, *y = sets + n * V;
    losses[n] = lane_sum(V, [&](real sum, int64_t v) {
      const real error = y[v] < 0 ? 0 : numerics::sigmoid(x[v]) - y[v];
      return sum + error * error;
    });
    for (int64_t v = 0; dlogits && v < V; ++v) {
      const real s = numerics::sigmoid(x[v]);
      dlogits[n * V + v] = y[v] < 0 ? 0 : scale * (2 * (s - y[v]) * (s * (1 - s)));
    }
  }
}

void Reference::argmax(int32_t* best, const real* logits, int64_t N, int V) {
  for (int64_t n = 0; n < N; ++n) {
    best[n] = 0;
    for (int32_t v = 1; v < V; ++v)
      if (logits[n * V + v] > logits[n * V + best[n]]) best[n] = v;
  }
}

namespace {

// `long`: partial (⌈n/1024⌉) = the sums of each 1024 numbers in the order `lanes`; and so on with these, until one is
// left. x may be partial.
real long_sum(real* partial, const real* x, int64_t n) {
  int64_t rows = 0;
  for (int64_t first = 0; first < n; first += 1024)
    partial[rows++] = lane_sum(x + first, std::min<int64_t>(1024, n - first));
  return rows > 1 ? long_sum(partial, partial, rows) : rows > 0 ? partial[0] : 0;
}

}  // namespace

void Reference::sum(real* sum, real* partial, const real* x, int64_t n) { *sum = long_sum(partial, x, n); }

void Reference::sum_of_squares(real* sum, real* partial, const real* x, int64_t n) {
  int64_t rows = 0;
  for (int64_t first = 0; first < n; first += 1024)
    partial[rows++] = lane_dot(x + first, x + first, std::min<int64_t>(1024, n - first));
  *sum = long_sum(partial, partial, rows);
}

}  // namespace petroglyph
