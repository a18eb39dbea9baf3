// Ctrl-C ends a run gently: the loop sees it, saves, and stops. A second Ctrl-C ends it at once, unless
// it comes within a second: `timeout`, and a terminal together with a parent that passes its signal on, send two for one.
#pragma once

#include <csignal>

namespace petroglyph {

// While it lives, SIGINT, SIGTERM and SIGHUP (a terminal that is closed), or Ctrl-C alone, only make interrupted() true.
class InterruptGuard {
 public:
  enum class Signals { ALL, CTRL_C };
  explicit InterruptGuard(Signals signals = Signals::ALL);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Ends it, for one whom no signal has stopped: one that came too late for that does now what it would have done without this guard,
  // or, where another guard lives, is left to that one.
  void release();

  // The signal that was caught, if it would have ended the program without this guard; 0: none, or another guard will be asked, or
  // the program was told to ignore it.
  int own() const;

 private:
  void restore();

  struct sigaction old_interrupt_, old_terminate_, old_hang_up_;
  bool lives_ = true, within_another_;
};

bool interrupted();

}  // namespace petroglyph
