// The only place that knows OpenMP's threads. OpenMP chooses which thread computes what; no result may depend on it.
#pragma once

#include <algorithm>
#include <functional>

#include "cpu/profile.h"

namespace petroglyph {

class Threads {
 public:
  explicit Threads(int count);

  // Calls body() on this thread inside a parallel region, whose other threads wait for tasks. Its exceptions reach the caller.
  void run(const std::function<void()>& body) const;
  // Calls one(piece, thread) for the pieces 0 … pieces−1, each once, on some thread < count; returns when all are done.
  void share(int64_t pieces, const std::function<void(int64_t, int)>& one) const;

  const int count;
  int64_t alone = 2'000'000;   // an operation of less work, 20 to 50 µs, runs on the caller alone; tests set 0
  Profile* profile = nullptr;  // written to where it is set

 private:
  mutable int inside_ = 0;  // the process whose region this is: a child has none of its parent's threads
};

// The cores that this process may use, or OMP_NUM_THREADS where that is less; 1 without OpenMP.
int available_threads();

// How long an operation takes is counted in multiply-adds of a product. PASS: to read, change and write a number; FUNCTION: with
// an exp, a division or several passes, such as a norm's.
constexpr int64_t PASS = 16, FUNCTION = 64;

// Calls f(begin, end, thread), thread < threads.count, for pieces of at most `grain` that cover 0 … n−1, each once. f must not
// throw. work: about how long all of them take, in multiply-adds.
template <class F>
void parallel(const Threads& threads, int64_t n, int64_t grain, int64_t work, F f,
              const char* caller = __builtin_FUNCTION()) {
  const Measured measured(threads.profile, caller);
  const auto one = [&](int64_t piece, int thread) { f(piece * grain, std::min((piece + 1) * grain, n), thread); };
  const int64_t pieces = (n + grain - 1) / grain;
  if (threads.count > 1 && pieces > 1 && work >= threads.alone) return threads.share(pieces, one);
  for (int64_t piece = 0; piece < pieces; ++piece) one(piece, 0);
}

}  // namespace petroglyph
