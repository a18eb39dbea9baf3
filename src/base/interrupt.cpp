#include "base/interrupt.h"

#include <time.h>

namespace petroglyph {

namespace {

// A signal handler reaches nothing but static variables; these are the only ones in the house.
volatile std::sig_atomic_t caught = 0, caught_at = 0;

constexpr int ONE_SIGNAL_MILLISECONDS = 1000;

// Of a clock that wraps around after twelve days.
int milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int>(now.tv_sec % (1 << 20)) * 1000 + static_cast<int>(now.tv_nsec / 1000000);
}

extern "C" void petroglyph_note_signal(int number) {
  const int now = milliseconds();
  if (!caught) {
    caught_at = now;
    caught = number;
  } else if (now < caught_at || now - caught_at >= ONE_SIGNAL_MILLISECONDS) {
    std::signal(number, SIG_DFL);
    std::raise(number);  // arrives as soon as this handler returns
  }
}

}  // namespace

InterruptGuard::InterruptGuard(Signals signals) {
  struct sigaction before = {}, action = {};
  sigaction(SIGINT, nullptr, &before);
  within_another_ = before.sa_handler == petroglyph_note_signal;
  if (!within_another_) caught = 0;  // else what the other has caught counts
  action.sa_handler = petroglyph_note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // files are written on, undisturbed
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, nullptr, &old_terminate_);
  sigaction(SIGHUP, nullptr, &old_hang_up_);
  if (signals == Signals::CTRL_C) return;
  sigaction(SIGTERM, &action, nullptr);
  if (old_hang_up_.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // else nohup, and the run goes on
}

InterruptGuard::~InterruptGuard() { restore(); }

void InterruptGuard::release() {
  restore();
  if (within_another_) return;
  const int number = own();
  caught = 0;
  if (number != 0) std::raise(number);
}

void InterruptGuard::restore() {
  if (!lives_) return;
  lives_ = false;
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  sigaction(SIGHUP, &old_hang_up_, nullptr);
}

int InterruptGuard::own() const {
  const int number = caught;
  const auto& before = number == SIGINT ? old_interrupt_ : number == SIGTERM ? old_terminate_ : old_hang_up_;
  return before.sa_handler == SIG_DFL ? number : 0;
}

bool interrupted() { return caught != 0; }

}  // namespace petroglyph
