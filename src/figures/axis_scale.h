// What an axis spans, where its values lie on the page, and which of them get a mark and a label.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace petroglyph {

struct Span {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

struct Tick {
  double value;
  std::string label;  // empty: a minor tick, without a grid line
};

// Between larger ones a span with its margins has no width.
inline bool can_be_drawn(double value) { return std::fabs(value) < 8e307; }

// Values to pixels.
class AxisScale {
 public:
  AxisScale() = default;
  AxisScale(Span span, bool logarithmic, double from, double to)
      : span_(span), logarithmic_(logarithmic), from_(from), to_(to), low_(raw(span.low)), high_(raw(span.high)) {}

  bool shows(double value) const { return can_be_drawn(value) && (!logarithmic_ || value > 0); }
  double at(double value) const { return from_ + (raw(value) - low_) / (high_ - low_) * (to_ - from_); }
  const Span& span() const { return span_; }
  bool logarithmic() const { return logarithmic_; }

 private:
  double raw(double value) const { return logarithmic_ ? std::log10(value) : value; }

  Span span_;
  bool logarithmic_ = false;
  double from_ = 0, to_ = 1, low_ = 0, high_ = 1;
};

// The data's span with a margin, or something to look at where it is empty or one value.
Span padded(Span data, bool logarithmic, double margin);

// Round numbers, 1, 2 or 5 times a power of ten apart, about `count` of them.
std::vector<Tick> linear_ticks(Span span, int count, bool whole);

// Powers of ten, with some of their multiples where there are fewer than three in the span; the other multiples without a label.
std::vector<Tick> log_ticks(Span span, int count);

}  // namespace petroglyph
