// The only place that starts threads. Which thread takes which piece is left to chance; no result may depend on it.
#pragma once

#include <algorithm>
#include <cstdint>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace petroglyph {

// Calls f(begin, end, thread) for pieces of at most `grain` that cover 0 … n−1, each once. f must not throw.
template <class F>
void parallel(int threads, int64_t n, int64_t grain, F f) {
  const int64_t pieces = (n + grain - 1) / grain;
  if (threads == 1 || pieces <= 1) {
    for (int64_t begin = 0; begin < n; begin += grain) f(begin, std::min(begin + grain, n), 0);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) num_threads(static_cast<int>(std::min<int64_t>(threads, pieces)))
  for (int64_t piece = 0; piece < pieces; ++piece)
    f(piece * grain, std::min((piece + 1) * grain, n), omp_get_thread_num());
#endif
}

}  // namespace petroglyph
