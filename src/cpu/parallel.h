// The only place that starts threads. Which thread takes which piece is left to chance; no result may depend on it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace petroglyph {

// Seconds spent in each function that called parallel(), for the bench.
struct Profile {
  struct Entry {
    double seconds = 0;
    int64_t calls = 0;
  };
  std::map<std::string, Entry> entries;
};

struct Threads {
  int count = 1;
  Profile* profile = nullptr;  // written to where it is set
};

// Calls f(begin, end, thread) for pieces of at most `grain` that cover 0 … n−1, each once. f must not throw.
template <class F>
void parallel(const Threads& threads, int64_t n, int64_t grain, F f, const char* caller = __builtin_FUNCTION()) {
  const auto start = threads.profile ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  const int64_t pieces = (n + grain - 1) / grain;
  if (threads.count == 1 || pieces <= 1) {
    for (int64_t begin = 0; begin < n; begin += grain) f(begin, std::min(begin + grain, n), 0);
  } else {
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic) num_threads(static_cast <int>(std::min <int64_t>(threads.count, pieces)))
    for (int64_t piece = 0; piece < pieces; ++piece)
      f(piece * grain, std::min((piece + 1) * grain, n), omp_get_thread_num());
#endif
  }
  if (!threads.profile) return;
  Profile::Entry& entry = threads.profile->entries[caller];
  entry.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++entry.calls;
}

}  // namespace petroglyph
