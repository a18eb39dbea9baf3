// The thread pool: OpenMP tasks in one parallel region. The same functions without OpenMP run on the calling thread.

#include "cpu/parallel.h"

#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <exception>

#ifdef _OPENMP
#include <omp.h>

namespace petroglyph {

// A thread that waits for tasks spins before it sleeps: 300,000 times with g++'s OpenMP, for 200 ms with clang++'s.
// Meanwhile it occupies a core that other programs could use; 0.1 ms is enough. g++'s OpenMP reads the variable before
// main(). Linked statically it reads it after this function, which therefore takes effect; as a shared library before,
// and then the variable has no effect.
[[gnu::constructor(101)]] static void spin_shortly() {
  setenv("GOMP_SPINCOUNT", "3000", 0);
  setenv("KMP_BLOCKTIME", "0", 0);
}

Threads::Threads(int count) : count(count) {
  // A child of fork() has only the thread that called fork(). So g++'s OpenMP must end its idle threads before a fork
  // outside of a region; clang++'s does so by itself. After a fork inside a region the child opens its own region, at
  // the second level.
#ifndef __clang__
  [[maybe_unused]] static const int ended =
      pthread_atfork([] { omp_pause_resource_all(omp_pause_hard); }, nullptr, nullptr);
#endif
  omp_set_max_active_levels(2);
}

void Threads::run(const std::function<void()>& body) const {
  const int process = getpid(), before = inside_;
  if (count == 1 || before == process) return body();
  sigset_t all, own;  // only this thread receives signals, as it may wait for input; threads that start now block them
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

// With g++'s OpenMP the caller executes tasks from the last one down and the other threads from the first one up. So
// each thread finds in its cache what it wrote in the operation before. No thread waits for another one that has not
// begun a task: beside other programs this is 4 to 10 times faster than `omp parallel for`, whose barrier waits for all
// threads.
void Threads::share(int64_t tasks, const std::function<void(int64_t, int)>& f) const {
  if (inside_ != getpid()) return run([&] { share(tasks, f); });
  const uint64_t end = static_cast<uint64_t>(tasks);  // clang++'s taskloop counts without a sign
#pragma omp taskloop num_tasks(std::min <int64_t>(tasks, 8 * count)) shared(f)
  for (uint64_t task = 0; task < end; ++task) f(static_cast<int64_t>(task), omp_get_thread_num());
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
