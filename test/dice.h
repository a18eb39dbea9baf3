// What the storms share: dice that fall the same for the same seed, the end of a process, a clock.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace petroglyph {

using Clock = std::chrono::steady_clock;

// Every step of the runs of a storm is flushed to the disk: their folders are in memory where there is a place for
// that.
inline void work_in_memory() {
  constexpr const char* MEMORY = "/dev/shm";
  if (access(MEMORY, W_OK | X_OK) == 0) setenv("TMPDIR", MEMORY, 0);
}

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
  size_t below(size_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state_ >> 33) % count;
  }
  double part() { return static_cast<double>(below(1 << 20)) / (1 << 20); }

 private:
  uint64_t state_;
};

// The exit status, or 128 and the signal's number.
inline int wait_for(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace petroglyph
