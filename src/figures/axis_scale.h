// Axis scales: the range of an axis, the mapping of values to pixels, and the ticks with their labels.
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

// For larger values, a range with its margins has no finite width.
inline bool can_be_drawn(double value) { return std::fabs(value) < 8e307; }

// Maps values to pixels.
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

// The data's range with a margin. If the data is empty or a single value, a default range around it.
Span padded(Span data, bool logarithmic, double margin);

// Ticks at round numbers: about `count` of them, at a distance of 1, 2 or 5 times a power of ten.
std::vector<Tick> linear_ticks(Span span, int count, bool whole);

// Powers of ten. If the span has fewer than three of them, some of their multiples get a label, too; other multiples
// are unlabelled.
std::vector<Tick> log_ticks(Span span, int count);

}  // namespace petroglyph
