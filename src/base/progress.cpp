#include "base/progress.h"

#include <algorithm>
#include <utility>

#include "base/cadence.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// Seconds between two lines: a short run is watched, a long one does not fill the screen.
double line_seconds(double elapsed) { return std::clamp(elapsed / 8, 1.0, 10.0); }

std::string rate_text(double rate, const std::string& unit) {
  if (rate < 1) return text("%.2f s/%s", 1 / rate, unit.c_str());
  return text("%.*f %ss/s", rate >= 100 ? 0 : rate >= 10 ? 1 : 2, rate, unit.c_str());
}

}  // namespace

Progress::Progress(int64_t first, int64_t total, Settings settings)
    : settings_(std::move(settings)), first_(first), total_(total), step_(first) {
  if (!settings_.clock) settings_.clock = steady_seconds;
  start_ = time_ = settings_.clock();
}

bool Progress::due(int64_t step) const {
  if (settings_.quiet) return false;
  if (!shown_ && settings_.clock() - start_ < settings_.wait) return false;
  if (!shown_ || (total_ > 0 && step >= total_)) return true;
  const double now = settings_.clock();
  return now - time_ >= line_seconds(now - start_);
}

void Progress::show(int64_t step, const std::string& what) {
  if (!due(step)) return;
  const double now = settings_.clock();
  if (now > time_ && step > step_) rate_ = double(step - step_) / (now - time_);
  time_ = now;
  step_ = step;
  shown_ = true;
  std::string words = settings_.unit + " " + with_commas(step);
  if (total_ > 0) words += " of " + with_commas(total_);
  if (rate_ > 0) words += "  " + rate_text(rate_, settings_.unit);
  const bool last = total_ > 0 && step >= total_;
  if (last) words += "  in " + duration_text(now - start_);
  if (!last && total_ > 0 && rate_ > 0)  // from all steps, because a few may contain an evaluation, or none
    words += (settings_.may_end_early ? "  ETA at most " : "  ETA ") +
             duration_text((now - start_) * double(total_ - step) / double(step - first_));
  line(words + (what.empty() ? "" : "  " + what));
}

void Progress::line(const std::string& words) {
  if (settings_.quiet) return;
  std::fprintf(settings_.stream, "%s\n", words.c_str());
  std::fflush(settings_.stream);
}

}  // namespace petroglyph
