// Ctrl-C ends a run gently: the loop sees it, saves, and stops. A second Ctrl-C ends it at once, unless it comes in the
// same second or the next one: `timeout`, and a terminal together with a parent that passes its signal on, send two for
// one.
#pragma once

#include <array>
#include <csignal>

namespace petroglyph {

// While it lives, SIGINT, SIGTERM and SIGHUP (a terminal that is closed), or Ctrl-C alone, only make interrupted()
// true. What came too late for a loop is forgotten with the guard, or left to another guard that lives: otherwise the
// measurements that follow would take it for theirs and stop halfway.
class InterruptGuard {
 public:
  enum class Signals { ALL, CTRL_C };
  explicit InterruptGuard(Signals signals = Signals::ALL);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  std::array<struct sigaction, 3> before_;
};

bool interrupted();

}  // namespace petroglyph
