// One panel of a figure as SVG. What it draws is cut into files: axes.cpp, lines.cpp, legend.cpp, heat_map.cpp.
#pragma once

#include <string>
#include <vector>

#include "figures/figure.h"
#include "figures/scale.h"
#include "figures/svg.h"

namespace petroglyph {

constexpr double TICK_LENGTH = 4;

// Draws one panel. The origin is the upper left corner of the area inside the axes.
class PanelPainter {
 public:
  PanelPainter(const Panel& panel, double width, double height);

  double left() const { return y_label_at() + (panel_.y_.label.empty() ? 4 : MEDIUM + 6); }
  double right() const { return panel_.map_ ? color_label_at() + (panel_.color_.label.empty() ? 4 : MEDIUM + 6) : 16; }
  double top() const { return panel_.title_.empty() ? 10 : 28; }
  double bottom() const { return panel_.x_.label.empty() ? 24 : 44; }

  std::string paint(double x, double y, int number);

 private:
  static constexpr double BAR_GAP = 12, BAR_WIDTH = 12;

  Scale scale_of(const Panel::Axis& axis, Span data, double margin, double from, double to) const;
  std::vector<Tick> ticks_of(const Panel::Axis& axis, const Scale& scale, double room) const;
  std::vector<Point> points_of(const Panel::Line& line) const;
  const std::vector<Point>& curve_of(const Panel::Line& line) const {
    return curves_[size_t(&line - panel_.lines_.data())];
  }
  double widest(const std::vector<Tick>& ticks) const;
  double y_label_at() const { return widest(y_ticks_) + TICK_LENGTH + 14; }
  double color_label_at() const { return BAR_GAP + BAR_WIDTH + TICK_LENGTH + widest(color_ticks_) + 18; }

  void paint_grid();
  void paint_axes();
  void paint_map();
  void paint_color_bar(int number);
  void paint_line(const Panel::Line& line);
  void paint_markers(const Panel::Line& line);
  void paint_legend();
  double covered(Point corner, double width, double height) const;
  Point legend_place(double width, double height) const;

  const Panel& panel_;
  double width_, height_;
  Scale x_, y_, color_;
  std::vector<Tick> x_ticks_, y_ticks_, color_ticks_;
  std::vector<std::vector<Point>> curves_;  // thinned, one for each line of the panel
  std::string out_;
};

// A circle, a square, a diamond or a triangle: a second help, beside the colour, to tell curves apart.
std::string marker(Point at, size_t shape);
// The beginnings of a curve's <path> and of its marks', up to the path itself.
std::string stroke_of(const LineStyle& style, double width);
std::string fill_of(const LineStyle& style);

}  // namespace petroglyph
