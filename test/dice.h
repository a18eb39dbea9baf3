// What the storms share: dice that fall the same for the same seed, the end of a process, a clock.
#pragma once

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

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

// A file with something wrong: bits or bytes changed, pieces cut out, doubled, or another's, an end.
inline std::string damage(std::string bytes, const std::string& other, Dice& dice) {
  const int times = 1 + static_cast<int>(dice.below(3));
  for (int i = 0; i < times && !bytes.empty(); ++i) {
    const size_t at = dice.below(bytes.size()), size = 1 + dice.below(std::min<size_t>(64, bytes.size() - at));
    switch (dice.below(8)) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << dice.below(8))); break;
      case 1: bytes[at] = static_cast<char>(dice.below(256)); break;
      case 2: bytes.resize(at); break;
      case 3: bytes.erase(at, size); break;
      case 4: bytes.insert(dice.below(bytes.size()), bytes.substr(at, size)); break;
      case 5: bytes.replace(at, size, size, '\0'); break;
      case 6: bytes.insert(at, other.substr(std::min(other.size(), dice.below(other.size() + 1)), size)); break;
      default: bytes.replace(at, 1, std::to_string(dice.below(1 << 16) * dice.below(1 << 16)));
    }
  }
  return bytes;
}

// The exit status, or 128 and the signal's number.
inline int wait_for(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace petroglyph
