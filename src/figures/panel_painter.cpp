// The ranges of a panel's axes, its margins, and the order in which its parts are drawn.
#include "figures/panel_painter.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace petroglyph {

PanelPainter::PanelPainter(const Panel& panel, double width, double height)
    : panel_(panel), width_(width), height_(height) {
  span_axes();
  for (const Panel::Line& line : panel.lines_) curves_.push_back(points_of(line));
  for (const Panel::Line& line : panel.lines_)
    if (!line.name.empty()) legend_.push_back({line.name, &line});
  for (const Panel::Level& level : panel.levels_) legend_.push_back({level.name, nullptr});
}

void PanelPainter::span_axes() {
  Span xs, ys;
  for (const Panel::Line& line : panel_.lines_) {
    for (size_t i = 0; i < line.xs.size(); ++i) {
      const double x = line.xs[i], y = line.ys[i];
      if (!can_be_drawn(x) || !can_be_drawn(y)) continue;
      if ((panel_.x_.logarithmic && x <= 0) || (panel_.y_.logarithmic && y <= 0)) continue;
      xs.include(x);
      ys.include(y);
    }
  }
  for (const Panel::Level& level : panel_.levels_)
    if (can_be_drawn(level.y) && (!panel_.y_.logarithmic || level.y > 0)) ys.include(level.y);
  if (xs.low == 0 && xs.high == 0) xs.high = 1;  // a run at its first step: steps are not negative
  const double margin = panel_.map_ ? 0 : 0.05;
  if (panel_.map_) {
    xs = {-0.5, double(panel_.map_->columns) - 0.5};
    ys = {-0.5, double(panel_.map_->rows) - 0.5};
    color_ = scale_of(panel_.color_, color_span(), 0, height_, 0);
    color_ticks_ = ticks_of(panel_.color_, color_, 45);
  }
  x_ = scale_of(panel_.x_, xs, margin * 0.4, 0, width_);
  y_ = panel_.map_ ? scale_of(panel_.y_, ys, 0, 0, height_) : scale_of(panel_.y_, ys, margin, height_, 0);
  x_ticks_ =
      panel_.x_.names.empty() ? ticks_of(panel_.x_, x_, panel_.map_ ? 30 : 70) : name_ticks(panel_.x_, x_, width_);
  y_ticks_ = panel_.y_.names.empty() ? ticks_of(panel_.y_, y_, 45) : name_ticks(panel_.y_, y_, height_);
}

// The range of the values; symmetric about zero for a diverging colour map.
Span PanelPainter::color_span() const {
  Span colors;
  for (const double value : panel_.map_->values) {
    if (can_be_drawn(value)) colors.include(value);
  }
  if (panel_.map_->map != ColorMap::Diverging || colors.empty()) return colors;
  const double largest = std::max(std::fabs(colors.low), std::fabs(colors.high));
  return {-largest, largest};
}

AxisScale PanelPainter::scale_of(const Panel::Axis& axis, Span data, double margin, double from, double to) const {
  return AxisScale(axis.fixed.value_or(padded(data, axis.logarithmic, margin)), axis.logarithmic, from, to);
}

double PanelPainter::bar_room() const {
  return panel_.map_ ? color_label_at() + (panel_.color_.label.empty() ? 4 : MEDIUM + 6) : 0;
}

// The right margin: space for the colour bar, for the last tick label, for a title that is longer than the axis, and
// for the legend.
double PanelPainter::right() const {
  double room = std::max(16.0, bar_room());
  if (!x_turned_ && !x_ticks_.empty()) {
    const Tick& last = x_ticks_.back();
    room = std::max(room, x_.at(last.value) + width_of(last.label, SMALL) / 2 + 4 - width_);
  }
  room = std::max(room, width_of(panel_.title_, MEDIUM + 2) + 8 - width_);
  return legend_.empty() ? room : std::max(room, bar_room() + legend_width() + 24);
}

// The bottom margin: space for names and label below the axis, and for a legend that is taller than the panel.
double PanelPainter::bottom() const {
  constexpr double GAP = 8;
  const double room = x_names_room() + (panel_.x_.label.empty() ? 24 : 44);
  return legend_.empty() ? room : std::max(room, legend_height() + GAP - height_);
}

std::string PanelPainter::paint(double x, double y, int number) {
  const std::string name = std::to_string(number);
  out_ = "<g transform=\"translate(" + pixels(x) + "," + pixels(y) + ")\">\n";
  out_ += "<clipPath id=\"inside" + name + "\">\n" + rectangle(0, 0, width_, height_, "") + "</clipPath>\n";
  if (!panel_.title_.empty()) out_ += text_element(0, -10, panel_.title_, " class=\"panel\"");
  if (!panel_.map_) paint_grid();
  out_ += "<g clip-path=\"url(#inside" + name + ")\">\n";
  if (panel_.map_) paint_map();
  paint_levels();
  for (const Panel::Line& line : panel_.lines_) paint_line(line);
  out_ += "</g>\n";
  paint_axes();
  for (const Panel::Line& line : panel_.lines_) paint_markers(line);
  if (panel_.map_) paint_color_bar(number);
  paint_legend();
  return out_ + "</g>\n";
}

}  // namespace petroglyph
