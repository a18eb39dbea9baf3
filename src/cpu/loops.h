// Loops whose tasks the threads share, and the estimate of their time.
#pragma once

#include <algorithm>

#include "cpu/parallel.h"

namespace petroglyph {

// The time of an operation is estimated in multiply-adds of a product. PASS: the time to read, change and write one
// number. FUNCTION: the same with an exp, a division, or several passes as in a norm.
constexpr int64_t PASS = 16, FUNCTION = 64;

// Divides 0 … n−1 into tasks of at most `grain` and calls f(begin, end, thread), thread < threads.count, once for each.
// f must not throw. work: an estimate of the time of all tasks, in multiply-adds.
template <class F>
void parallel(const Threads& threads, int64_t n, int64_t grain, int64_t work, F f,
              const char* caller = __builtin_FUNCTION()) {
  const Measured measured(threads.profile, caller);
  const auto one = [&](int64_t task, int thread) { f(task * grain, std::min((task + 1) * grain, n), thread); };
  const int64_t tasks = (n + grain - 1) / grain;
  if (threads.count > 1 && tasks > 1 && work >= threads.alone) return threads.share(tasks, one);
  for (int64_t task = 0; task < tasks; ++task) one(task, 0);
}

// Calls f(row, thread) once for each row 0 … n−1, `grain` rows a task.
template <class F>
void parallel_rows(const Threads& threads, int64_t n, int64_t grain, int64_t work, F f,
                   const char* caller = __builtin_FUNCTION()) {
  parallel(
      threads, n, grain, work,
      [&](int64_t begin, int64_t end, int thread) {
        for (int64_t row = begin; row < end; ++row) f(row, thread);
      },
      caller);
}

// Calls f(i) once for each element 0 … n−1, several at a time in the lanes of vector registers.
template <class F>
void parallel_elements(const Threads& threads, int64_t n, int64_t work, F f,
                       const char* caller = __builtin_FUNCTION()) {
  parallel(
      threads, n, 8192, work,
      [&](int64_t begin, int64_t end, int) {
#pragma omp simd
        for (int64_t i = begin; i < end; ++i) f(i);
      },
      caller);
}

}  // namespace petroglyph
