// When something that costs time is due again: soon at first, then later and later, up to a longest interval; never so
// often that it takes more than a twentieth of the time.
//
//   Cadence saving(60);
//   if (saving.due()) saving.run([&] { save(); });
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace petroglyph {

// Seconds from some moment on, which no change of the system's time affects.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Cadence {
 public:
  // Due after half a second, then a second later, and at intervals that double up to `longest` seconds. clock: seconds
  // from any moment; empty for the real one.
  explicit Cadence(double longest, std::function<double()> clock = {}) : longest_(longest), clock_(std::move(clock)) {
    if (!clock_) clock_ = steady_seconds;
    next_ = clock_() + FIRST;
  }

  bool due() const { return clock_() >= next_; }
  template <class Work>
  void run(Work work) {
    const double start = clock_();
    work();
    const double end = clock_();
    next_ = end + std::max(std::min(interval_, longest_), SHARE * (end - start));
    interval_ = std::min(longest_, 2 * interval_);
  }

 private:
  static constexpr double FIRST = 0.5;
  static constexpr double SHARE = 19;  // of the time between two, in the time that one takes

  double longest_, interval_ = 1, next_ = 0;
  std::function<double()> clock_;
};

}  // namespace petroglyph
