// Ctrl-C ends a run gently: the loop sees it, saves, and stops. A second Ctrl-C ends it at once, unless
// it comes within a second: `timeout`, and a terminal together with a parent that passes its signal on, send two for one.
#pragma once

#include <csignal>

namespace petroglyph {

// While it lives, SIGINT, SIGTERM and SIGHUP (a terminal that is closed) only make interrupted() true. One at a time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction old_interrupt_, old_terminate_, old_hang_up_;
};

bool interrupted();

}  // namespace petroglyph
