// The threads of the CPU. Only parallel.cpp uses OpenMP for threads; kernels call the loops of loops.h. OpenMP chooses
// which thread computes what; no result may depend on that choice.
#pragma once

#include <cstdint>
#include <functional>

#include "cpu/profile.h"

namespace petroglyph {

class Threads {
 public:
  explicit Threads(int count);

  // Calls body() on this thread inside a parallel region, whose other threads wait for tasks. Rethrows the exceptions
  // of body().
  void run(const std::function<void()>& body) const;
  // Calls f(task, thread) once for each task 0 … tasks−1, on some thread < count, and returns when all are done.
  void share(int64_t tasks, const std::function<void(int64_t, int)>& f) const;

  const int count;
  int64_t alone = 2'000'000;   // operations with less work, 20 to 50 µs, run on the calling thread; tests set 0
  Profile* profile = nullptr;  // if not null, the time of each operation is added there

 private:
  // The process that is inside run(), or 0. A child of fork() has none of its parent's threads.
  mutable int inside_ = 0;
};

// The number of cores that this process may use, or OMP_NUM_THREADS if that is less; 1 without OpenMP.
int available_threads();

}  // namespace petroglyph
