#include "base/interrupt.h"

#include <time.h>

namespace petroglyph {

namespace {

// A signal handler reaches nothing but static variables; these are the only ones of the project.
volatile std::sig_atomic_t caught = 0, caught_at = 0;

constexpr int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

extern "C" void petroglyph_note_signal(int number) {
  const auto now = static_cast<std::sig_atomic_t>(time(nullptr));
  if (!caught) {
    caught_at = now;
    caught = number;
  } else if (now - caught_at > 1) {  // seconds
    std::signal(number, SIG_DFL);
    std::raise(number);  // arrives as soon as this handler returns
  }
}

}  // namespace

InterruptGuard::InterruptGuard(Signals signals) {
  struct sigaction action = {};
  action.sa_handler = petroglyph_note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // files are written on, undisturbed
  for (size_t i = 0; i < before_.size(); ++i) {
    sigaction(SIGNALS[i], nullptr, &before_[i]);
    if (i > 0 && signals == Signals::CTRL_C) continue;
    if (SIGNALS[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;  // nohup: the run continues
    sigaction(SIGNALS[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  const bool within_another = before_[0].sa_handler == petroglyph_note_signal;
  if (!within_another) caught = 0;
  for (size_t i = 0; i < before_.size(); ++i) sigaction(SIGNALS[i], &before_[i], nullptr);
}

bool interrupted() { return caught != 0; }

}  // namespace petroglyph
