// Losses of logits (N,V) and their gradients, argmax, and sums of n numbers. The loops that define them are in
// reference/loss.cpp.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/loops.h"

namespace petroglyph {

void Cpu::cross_entropy(real* losses, real* dlogits, const real* logits, const int32_t* targets, real scale, int64_t N,
                        int V) {
  parallel_rows(threads_, N, 32, N * V * FUNCTION, [&](int64_t n, int) {
    const real* x = logits + n * V;
    real* dx = dlogits ? dlogits + n * V : nullptr;
    const int32_t target = targets[n];
    if (target < 0) {
      losses[n] = 0;
      if (dx) std::fill_n(dx, V, real(0));
      return;
    }
    real top = x[0];
    for (int v = 1; v < V; ++v) top = numerics::max(x[v], top);
    const real total = sum_lanes(V, [&](real sum, int64_t v) { return sum + numerics::exp(x[v] - top); });
    losses[n] = numerics::log(total) - (x[target] - top);
    if (!dx) return;
    for (int v = 0; v < V; ++v) dx[v] = scale * (numerics::exp(x[v] - top) / total - (v == target ? real(1) : real(0)));
  });
}

void Cpu::binary_cross_entropy(real* losses, real* dlogits, const real* logits, const real* sets, real scale, int64_t N,
                               int V) {
  parallel_rows(threads_, N, 32, N * V * FUNCTION, [&](int64_t n, int) {
    const real *x = logits + n * V, *y = sets + n * V;
    losses[n] = sum_lanes(V, [&](real sum, int64_t v) { return sum + (numerics::softplus(x[v]) - y[v] * x[v]); });
    if (!dlogits) return;
    for (int v = 0; v < V; ++v) dlogits[n * V + v] = scale * (numerics::sigmoid(x[v]) - y[v]);
  });
}

void Cpu::sigmoid_squared_error(real* losses, real* dlogits, const real* logits, const real* sets, real scale,
                                int64_t N, int V) {
  parallel_rows(threads_, N, 32, N * V * FUNCTION, [&](int64_t n, int) {
    const real *x = logits + n * V, *y = sets + n * V;
    losses[n] = sum_lanes(V, [&](real sum, int64_t v) {
      const real error = y[v] < 0 ? real(0) : numerics::sigmoid(x[v]) - y[v];
      return sum + error * error;
    });
    if (!dlogits) return;
    for (int v = 0; v < V; ++v) {
      const real s = numerics::sigmoid(x[v]);
      dlogits[n * V + v] = y[v] < 0 ? real(0) : scale * (2 * (s - y[v]) * (s * (1 - s)));
    }
  });
}

void Cpu::argmax(int32_t* best, const real* logits, int64_t N, int V) {
  parallel_rows(threads_, N, 64, N * V * PASS, [&](int64_t n, int) {
    const real* x = logits + n * V;
    int top = 0;
    for (int v = 1; v < V; ++v)
      if (x[v] > x[top]) top = v;
    best[n] = top;
  });
}

namespace {

constexpr int64_t LONG = 1024;  // terms of one part of a long sum

// sum = the long sum of n terms: partial sums of LONG terms by row_sum(begin, length), then a long sum of the partial
// sums.
template <class RowSum>
void sum_rows(real* sum, real* partial, int64_t n, const Threads& threads, RowSum row_sum) {
  const int64_t rows = (n + LONG - 1) / LONG;
  const auto one = [&](int64_t r, int) { partial[r] = row_sum(r * LONG, std::min(LONG, n - r * LONG)); };
  parallel_rows(threads, rows, 16, n * PASS, one, "sum");
  for (int64_t left = rows; left > 1; left = (left + LONG - 1) / LONG)
    for (int64_t r = 0; r * LONG < left; ++r) partial[r] = sum_row(partial + r * LONG, std::min(LONG, left - r * LONG));
  *sum = rows > 0 ? partial[0] : 0;
}

}  // namespace

void Cpu::sum(real* sum, real* partial, const real* x, int64_t n) {
  sum_rows(sum, partial, n, threads_, [&](int64_t begin, int64_t length) { return sum_row(x + begin, length); });
}

void Cpu::sum_of_squares(real* sum, real* partial, const real* x, int64_t n) {
  sum_rows(sum, partial, n, threads_, [&](int64_t begin, int64_t length) { return dot(x + begin, x + begin, length); });
}

}  // namespace petroglyph
