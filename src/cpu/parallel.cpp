#include "cpu/parallel.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>

#ifdef _OPENMP
#include <omp.h>

namespace petroglyph {

// A thread that waits for tasks spins before it sleeps, 300,000 times with g++'s OpenMP, 200 ms with clang++'s, and takes the core
// from whatever else runs; 0.1 ms is enough. g++'s reads this before main(): its archive after this, a shared library before.
[[gnu::constructor(101)]] static void spin_shortly() {
  setenv("GOMP_SPINCOUNT", "3000", 0);
  setenv("KMP_BLOCKTIME", "0", 0);
}

Threads::Threads(int count) : count(count) {
  // A child of fork() has only the thread that called it. Threads that wait outside of regions end before (clang++'s OpenMP sees to
  // it itself); inside a region the child opens one of its own, which is the second level.
#ifndef __clang__
  [[maybe_unused]] static const int ended =
      pthread_atfork([] { omp_pause_resource_all(omp_pause_hard); }, nullptr, nullptr);
#endif
  omp_set_max_active_levels(2);
}

void Threads::run(const std::function<void()>& body) const {
  const int process = getpid(), before = inside_;
  if (count == 1 || before == process) return body();
  sigset_t all, own;  // signals are for this thread, which may wait for input: those that start now get none
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &own);
  std::exception_ptr error;
#pragma omp parallel num_threads(count)
#pragma omp master
  {
    pthread_sigmask(SIG_SETMASK, &own, nullptr);
    inside_ = process;
    try {
      body();
    } catch (...) {
      error = std::current_exception();
    }
    inside_ = before;
  }
  if (error) std::rethrow_exception(error);
}

// The caller takes tasks from the last one on and the others from the first one on (g++'s OpenMP), so that each finds in its cache
// what it wrote there in the operation before. Nobody waits for a thread that has begun no task.
void Threads::share(int64_t pieces, const std::function<void(int64_t, int)>& one) const {
  if (inside_ != getpid()) return run([&] { share(pieces, one); });
  const uint64_t all = static_cast<uint64_t>(pieces);  // clang++'s taskloop counts without a sign
#pragma omp taskloop num_tasks(std::min <int64_t>(pieces, 8 * count)) shared(one)
  for (uint64_t piece = 0; piece < all; ++piece) one(static_cast<int64_t>(piece), omp_get_thread_num());
}

int available_threads() { return std::min(omp_get_num_procs(), omp_get_max_threads()); }
#else
namespace petroglyph {

Threads::Threads(int) : count(1) {}
void Threads::run(const std::function<void()>& body) const {
  static_cast<void>(inside_);  // clang++ warns of members that nothing reads
  body();
}
void Threads::share(int64_t, const std::function<void(int64_t, int)>&) const {}
int available_threads() { return 1; }
#endif

}  // namespace petroglyph
