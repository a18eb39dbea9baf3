// Shows the progress of a run: a line from time to time.
//
//   Progress progress(first_step, steps);
//   for (...) if (progress.due(step)) progress.show(step, text("loss %.4f", loss));
//   progress.line("step 1,000  validation loss 0.1234");
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

namespace petroglyph {

class Progress {
 public:
  struct Settings {
    bool quiet = false;  // nothing at all
    std::string unit = "step";
    double wait = 0;             // seconds before the first line; shorter work shows nothing
    bool may_end_early = false;  // then the ETA is one "at most"
    std::FILE* stream = stdout;
    std::function<double()> clock = {};  // seconds from any moment; empty for the real one
  };

  // A run that has done `first` of `total` steps already. A total of 0 means unknown: no ETA.
  Progress(int64_t first, int64_t total, Settings settings);

  // Whether show() would show anything now: test it before formatting. True for step `total`, unless it is quiet or all
  // ends within `wait`.
  bool due(int64_t step) const;
  // "step 1,200 of 10,000  53.1 steps/s  ETA 2:46  loss 0.1234".
  void show(int64_t step, const std::string& what);
  void line(const std::string& words);

 private:
  Settings settings_;
  int64_t first_, total_, step_;  // step_: of the last line
  double start_ = 0;
  double time_ = 0;  // of the last line
  bool shown_ = false;
  double rate_ = 0;  // steps a second since the line before; 0 when not yet known
};

constexpr double MOSTLY_SHORT = 3;  // the wait of work that is mostly short

}  // namespace petroglyph
