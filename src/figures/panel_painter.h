// Draws one panel of a figure as SVG. The implementation is split into axes.cpp, lines.cpp, legend.cpp and
// heat_map.cpp.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "figures/axis_scale.h"
#include "figures/figure.h"
#include "figures/svg.h"

namespace petroglyph {

constexpr double TICK_LENGTH = 4;

// Draws one panel. The origin is the upper left corner of the area inside the axes.
class PanelPainter {
 public:
  PanelPainter(const Panel& panel, double width, double height);

  // The space around the area inside the axes.
  double left() const { return y_label_at() + (panel_.y_.label.empty() ? 4 : MEDIUM + 6); }
  double right() const;
  double top() const { return panel_.title_.empty() ? 10 : 28; }
  double bottom() const;

  // Whether the other panel's legend contains all entries of this one's.
  bool legend_is_in(const PanelPainter& other) const;
  void drop_legend() { legend_.clear(); }

  std::string paint(double x, double y, int number);

 private:
  static constexpr double BAR_GAP = 12, BAR_WIDTH = 12;

  struct LegendRow {
    std::string name;
    const Panel::Line* line;  // nullptr: a level
  };

  void span_axes();
  Span color_span() const;
  AxisScale scale_of(const Panel::Axis& axis, Span data, double margin, double from, double to) const;
  std::vector<Tick> ticks_of(const Panel::Axis& axis, const AxisScale& scale, double room) const;
  bool is_whole(const Panel::Axis& axis) const;
  std::vector<Tick> name_ticks(const Panel::Axis& axis, const AxisScale& scale, double length);
  std::vector<Point> points_of(const Panel::Line& line) const;
  size_t index_of(const Panel::Line& line) const { return size_t(&line - panel_.lines_.data()); }
  const std::vector<Point>& curve_of(const Panel::Line& line) const { return curves_[index_of(line)]; }
  double widest(const std::vector<Tick>& ticks) const;
  double y_label_at() const { return widest(y_ticks_) + TICK_LENGTH + 14; }
  double x_names_room() const { return x_turned_ ? std::max(0.0, widest(x_ticks_) - SMALL) : 0; }
  double color_label_at() const { return BAR_GAP + BAR_WIDTH + TICK_LENGTH + widest(color_ticks_) + 18; }
  double bar_room() const;

  void paint_grid();
  void paint_axes();
  void paint_map();
  void paint_color_bar(int number);
  void paint_levels();
  void paint_line(const Panel::Line& line);
  void paint_markers(const Panel::Line& line);
  void paint_legend();
  double legend_width() const;
  double legend_height() const;

  const Panel& panel_;
  double width_, height_;
  AxisScale x_, y_, color_;
  std::vector<Tick> x_ticks_, y_ticks_, color_ticks_;
  bool x_turned_ = false;  // the x axis' names are turned if there is no space side by side
  double x_name_size_ = SMALL, y_name_size_ = SMALL;
  std::vector<std::vector<Point>> curves_;  // reduced to the visible points, one for each line of the panel
  std::vector<LegendRow> legend_;
  std::string out_;
};

// A circle, a square, a diamond or a triangle: the shape distinguishes curves in addition to the colour.
std::string marker(Point at, size_t shape);
// The beginning of the <path> element of a curve and of its markers, up to the path data.
std::string stroke_of(const LineStyle& style, double width);
std::string fill_of(const LineStyle& style);

}  // namespace petroglyph
