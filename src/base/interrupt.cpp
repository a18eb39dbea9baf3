#include "base/interrupt.h"

namespace petroglyph {

namespace {

// A signal handler reaches nothing but a static variable; this is the only one in the house.
volatile std::sig_atomic_t caught = 0;

extern "C" void petroglyph_note_signal(int number) {
  if (caught) {
    std::signal(number, SIG_DFL);
    std::raise(number);  // arrives as soon as this handler returns
  }
  caught = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  struct sigaction before = {}, action = {};
  sigaction(SIGINT, nullptr, &before);
  if (before.sa_handler != petroglyph_note_signal)
    caught = 0;  // else another guard is there, and what it caught counts
  action.sa_handler = petroglyph_note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // files are written on, undisturbed
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

bool interrupted() { return caught != 0; }

}  // namespace petroglyph
