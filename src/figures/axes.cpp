// The axes of a panel: ticks, labels, and the grid behind the curves.
#include <algorithm>
#include <cmath>

#include "figures/panel_painter.h"

namespace petroglyph {

// Whether all values are whole numbers (steps, layers, lengths), so that ticks are at whole numbers only.
bool PanelPainter::is_whole(const Panel::Axis& axis) const {
  if (panel_.map_) return &axis != &panel_.color_ && !axis.fixed;
  if (&axis != &panel_.x_ || panel_.lines_.empty()) return false;
  return std::all_of(panel_.lines_.begin(), panel_.lines_.end(), [](const Panel::Line& line) {
    return std::all_of(line.xs.begin(), line.xs.end(), [](double x) { return !can_be_drawn(x) || x == std::floor(x); });
  });
}

// `room` is the length that one label needs, in pixels.
std::vector<Tick> PanelPainter::ticks_of(const Panel::Axis& axis, const AxisScale& scale, double room) const {
  const double length = std::fabs(scale.at(scale.span().high) - scale.at(scale.span().low));
  std::vector<Tick> ticks;
  // As many ticks as fit. Fewer, if their labels would touch each other.
  for (int count = std::max(2, static_cast<int>(length / room)); count >= 2; --count) {
    ticks = scale.logarithmic() ? log_ticks(scale.span(), count) : linear_ticks(scale.span(), count, is_whole(axis));
    const auto labelled = std::count_if(ticks.begin(), ticks.end(), [](const Tick& t) { return !t.label.empty(); });
    if (&axis != &panel_.x_ || (widest(ticks) + 6) * double(labelled) <= length) break;
  }
  return ticks;
}

// Shows all names in full. They are rotated if they are too wide, and smaller if they are too many. If even this does
// not suffice, some are left out.
std::vector<Tick> PanelPainter::name_ticks(const Panel::Axis& axis, const AxisScale& scale, double length) {
  constexpr double SMALLEST = 7;
  const bool horizontal = &axis == &panel_.x_;
  const double cell = length / (scale.span().high - scale.span().low);
  double across = 0;
  for (const std::string& name : axis.names) across = std::max(across, width_of(name, SMALL));
  const double size = std::clamp(std::floor(cell - 0.5), SMALLEST, SMALL);
  (horizontal ? x_name_size_ : y_name_size_) = size;
  const bool turned = horizontal && across * size / SMALL + 4 > cell && across > SMALL;
  if (horizontal) x_turned_ = turned;
  const size_t stride = static_cast<size_t>(std::ceil((size + 0.5) / cell - 1e-9));
  std::vector<Tick> ticks;
  for (size_t i = 0; i < axis.names.size(); i += std::max<size_t>(1, stride)) {
    if (double(i) >= scale.span().low && double(i) <= scale.span().high) ticks.push_back({double(i), axis.names[i]});
  }
  return ticks;
}

double PanelPainter::widest(const std::vector<Tick>& ticks) const {
  double widest = 0;
  for (const Tick& tick : ticks) widest = std::max(widest, width_of(tick.label, SMALL));
  return widest;
}

void PanelPainter::paint_grid() {
  out_ += "<g class=\"grid\">\n";
  for (const Tick& tick : x_ticks_) {
    if (!tick.label.empty()) out_ += line_element(x_.at(tick.value), 0, x_.at(tick.value), height_);
  }
  for (const Tick& tick : y_ticks_) {
    if (!tick.label.empty()) out_ += line_element(0, y_.at(tick.value), width_, y_.at(tick.value));
  }
  out_ += "</g>\n";
}

void PanelPainter::paint_axes() {
  const auto font = [](double size) { return size < SMALL ? " style=\"font-size:" + pixels(size) + "px\"" : ""; };
  const auto x_label = [&](double at, const std::string& words) {
    if (!x_turned_) return text_element(at, height_ + 17, words, " text-anchor=\"middle\"" + font(x_name_size_));
    const std::string place = "translate(" + pixels(at + 4) + "," + pixels(height_ + 8) + ") rotate(-90)";
    return text_element(0, 0, words, " text-anchor=\"end\" transform=\"" + place + "\"" + font(x_name_size_));
  };
  std::string labels;
  out_ += "<g class=\"axis\">\n" + line_element(0, height_, width_, height_) + line_element(0, 0, 0, height_);
  for (const Tick& tick : x_ticks_) {
    const double at = x_.at(tick.value), length = tick.label.empty() ? TICK_LENGTH / 2 : TICK_LENGTH;
    out_ += line_element(at, height_, at, height_ + length);
    if (!tick.label.empty()) labels += x_label(at, tick.label);
  }
  for (const Tick& tick : y_ticks_) {
    const double at = y_.at(tick.value), length = tick.label.empty() ? TICK_LENGTH / 2 : TICK_LENGTH;
    out_ += line_element(-length, at, 0, at);
    if (!tick.label.empty())
      labels += text_element(-TICK_LENGTH - 4, at + 4, tick.label, " text-anchor=\"end\"" + font(y_name_size_));
  }
  out_ += "</g>\n" + labels;
  const std::string label = " class=\"label\" text-anchor=\"middle\"";
  if (!panel_.x_.label.empty()) out_ += text_element(width_ / 2, height_ + 36 + x_names_room(), panel_.x_.label, label);
  if (!panel_.y_.label.empty()) {
    const std::string place = "translate(" + pixels(-y_label_at()) + "," + pixels(height_ / 2) + ") rotate(-90)";
    out_ += text_element(0, 0, panel_.y_.label, label + " transform=\"" + place + "\"");
  }
}

}  // namespace petroglyph
