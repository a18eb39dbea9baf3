// Shows the progress of a run: one live line on a terminal, plain lines from time to time elsewhere.
//
//   Progress progress(first_step, steps);
//   for (...) if (progress.due(step)) progress.show(step, text("loss %.4f", loss));
//   progress.line("step 1,000  validation loss 0.1234");     a line that stays
//   progress.finish();
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>

namespace petroglyph {

class Progress {
 public:
  struct Settings {
    bool quiet = false;  // nothing at all
    std::string unit = "step";
    double plain_seconds = 10;   // between two plain lines
    bool may_end_early = false;  // then the ETA is one "at most"
    double wait = 0;             // seconds before the first line; shorter work shows nothing
    std::FILE* stream = stdout;
    int terminal = -1;              // 1, 0, or -1: the stream decides
    int width = 0;                  // columns; 0: the terminal's
    std::function<double()> clock;  // seconds from any moment; empty for the real one
  };

  // A run that has done `first` of `total` steps already. A total of 0 means unknown: no ETA.
  Progress(int64_t first, int64_t total, Settings settings);
  Progress(int64_t first, int64_t total, bool quiet = false);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();  // ends the live line

  // Whether show() would show anything now: test it before formatting. True for step `total`, unless it is quiet or all
  // ends within `wait`.
  bool due(int64_t step) const;
  // "step 1,200 of 10,000  53.1 steps/s  ETA 2:46  loss 0.1234". On a terminal, parts (separated by two spaces) that do
  //                                                not
  // fit its line are left out, the last first.
  void show(int64_t step, const std::string& what);
  void line(const std::string& words);
  void finish();

  double rate() const { return rate_; }  // steps a second over the last while; 0 when not yet known

 private:
  void measure(int64_t step, double now);
  std::string fitted(const std::string& words) const;
  int width() const;

  Settings settings_;
  int64_t total_;
  bool terminal_ = false;
  bool live_ = false;  // the cursor is in the live line
  double start_ = 0;
  std::optional<double> shown_;  // when, lately
  double rate_ = 0;
  std::deque<std::pair<double, int64_t>> past_;  // (time, step) of what was shown lately
};

// For work that is mostly short: nothing is shown in its first seconds.
Progress::Settings after_a_while(bool quiet, const std::string& unit);

}  // namespace petroglyph
