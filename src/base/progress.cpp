#include "base/progress.h"

#include <algorithm>
#include <utility>

#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cadence.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr double LIVE_SECONDS = 0.1;  // ten updates a second look continuous and cost nothing
constexpr double RATE_SECONDS = 20;   // the rate is a mean over this long, so that it follows without jumping

// The first `width` letters of a line; a UTF-8 letter counts once.
std::string cut(const std::string& line, int width) {
  size_t at = 0;
  for (int letters = 0; at < line.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(line[at]) & 0xC0) != 0x80;
    if (begins && ++letters > width) break;
  }
  return line.substr(0, at);
}

std::string rate_text(double rate, const std::string& unit) {
  if (rate < 1) return text("%.2f s/%s", 1 / rate, unit.c_str());
  return text("%.*f %ss/s", rate >= 100 ? 0 : rate >= 10 ? 1 : 2, rate, unit.c_str());
}

Progress::Settings only_quiet(bool quiet) {
  Progress::Settings settings;
  settings.quiet = quiet;
  return settings;
}

}  // namespace

Progress::Progress(int64_t first, int64_t total, Settings settings) : settings_(std::move(settings)), total_(total) {
  if (!settings_.clock) settings_.clock = steady_seconds;
  terminal_ = settings_.terminal < 0 ? isatty(fileno(settings_.stream)) == 1 : settings_.terminal > 0;
  start_ = settings_.clock();
  past_.emplace_back(start_, first);
}

Progress::Progress(int64_t first, int64_t total, bool quiet) : Progress(first, total, only_quiet(quiet)) {}

Progress::~Progress() { finish(); }

Progress::Settings after_a_while(bool quiet, const std::string& unit) {
  Progress::Settings settings;
  settings.quiet = quiet;
  settings.unit = unit;
  settings.wait = 3;
  return settings;
}

bool Progress::due(int64_t step) const {
  if (settings_.quiet) return false;
  if (!shown_ && settings_.clock() - start_ < settings_.wait) return false;
  if (!shown_ || (total_ > 0 && step >= total_)) return true;
  return settings_.clock() - *shown_ >= (terminal_ ? LIVE_SECONDS : settings_.plain_seconds);
}

void Progress::measure(int64_t step, double now) {
  while (past_.size() > 1 && now - past_[1].first >= RATE_SECONDS) past_.pop_front();
  const double seconds = now - past_.front().first;
  if (seconds > 0 && step > past_.front().second) rate_ = double(step - past_.front().second) / seconds;
  past_.emplace_back(now, step);
}

void Progress::show(int64_t step, const std::string& what) {
  if (!due(step)) return;
  const double now = settings_.clock();
  measure(step, now);
  shown_ = now;
  std::string words = settings_.unit + " " + with_commas(step);
  if (total_ > 0) words += " of " + with_commas(total_);
  if (rate_ > 0) words += "  " + rate_text(rate_, settings_.unit);
  const bool last = total_ > 0 && step >= total_;
  if (last) words += "  in " + duration_text(now - start_);
  if (!last && total_ > 0 && rate_ > 0)
    words += (settings_.may_end_early ? "  ETA at most " : "  ETA ") + duration_text(double(total_ - step) / rate_);
  if (!what.empty()) words += "  " + what;
  if (terminal_) {
    std::fprintf(settings_.stream, "\r%s\x1b[K", fitted(words).c_str());
    live_ = true;
  } else {
    std::fprintf(settings_.stream, "%s\n", words.c_str());
  }
  std::fflush(settings_.stream);
}

// One column stays free: a letter in the last one makes some terminals begin a new line.
std::string Progress::fitted(const std::string& words) const {
  const int most = std::max(1, width() - 1);
  const std::string cut_off = cut(words, most);
  if (cut_off.size() == words.size()) return words;
  const bool between = words.compare(cut_off.size(), 2, "  ") == 0;
  const size_t whole = between ? cut_off.size() : cut_off.rfind("  ");
  return whole == std::string::npos ? cut_off : cut_off.substr(0, whole);
}

void Progress::line(const std::string& words) {
  if (settings_.quiet) return;
  std::fprintf(settings_.stream, live_ ? "\r%s\x1b[K\n" : "%s\n", words.c_str());
  live_ = false;
  std::fflush(settings_.stream);
}

void Progress::finish() {
  if (!live_) return;
  live_ = false;
  std::fputc('\n', settings_.stream);
  std::fflush(settings_.stream);
}

int Progress::width() const {
  if (settings_.width > 0) return settings_.width;
  struct winsize size = {};
  const bool known = ioctl(fileno(settings_.stream), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

}  // namespace petroglyph
