// What the axes of a panel span, and the order in which its parts are drawn.
#include "figures/panel_painter.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

PanelPainter::PanelPainter(const Panel& panel, double width, double height)
    : panel_(panel), width_(width), height_(height) {
  Span xs, ys, colors;
  for (const Panel::Line& line : panel.lines_) {
    for (size_t i = 0; i < line.xs.size(); ++i) {
      const double x = line.xs[i], y = line.ys[i];
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      if ((panel.x_.logarithmic && x <= 0) || (panel.y_.logarithmic && y <= 0)) continue;
      xs.include(x);
      ys.include(y);
    }
  }
  double margin = 0.05;
  if (panel.map_) {
    const Panel::HeatMap& map = *panel.map_;
    xs = {-0.5, double(map.columns) - 0.5};
    ys = {-0.5, double(map.rows) - 0.5};
    margin = 0;
    for (double value : map.values) {
      if (std::isfinite(value)) colors.include(value);
    }
    if (map.map == ColorMap::Diverging && !colors.empty()) {
      const double largest = std::max(std::fabs(colors.low), std::fabs(colors.high));
      colors = {-largest, largest};
    }
    color_ = scale_of(panel.color_, colors, 0, height, 0);
    color_ticks_ = ticks_of(panel.color_, color_, 45);
  }
  x_ = scale_of(panel.x_, xs, margin * 0.4, 0, width);
  y_ = panel.map_ ? scale_of(panel.y_, ys, 0, 0, height) : scale_of(panel.y_, ys, margin, height, 0);
  x_ticks_ = ticks_of(panel.x_, x_, 70);
  y_ticks_ = ticks_of(panel.y_, y_, 45);
  for (const Panel::Line& line : panel.lines_) curves_.push_back(points_of(line));
}

Scale PanelPainter::scale_of(const Panel::Axis& axis, Span data, double margin, double from, double to) const {
  const Span span = axis.fixed ? Span{axis.low, axis.high} : padded(data, axis.logarithmic, margin);
  if (axis.logarithmic && span.low <= 0) {
    throw Error("figure: a logarithmic axis cannot begin at " + number_text(span.low, 9));
  }
  return Scale(span, axis.logarithmic, from, to);
}

std::string PanelPainter::paint(double x, double y, int number) {
  const std::string name = std::to_string(number);
  out_ = "<g transform=\"translate(" + pixels(x) + "," + pixels(y) + ")\">\n";
  out_ += "<clipPath id=\"inside" + name + "\">\n" + rectangle(0, 0, width_, height_, "") + "</clipPath>\n";
  if (!panel_.title_.empty()) out_ += text_element(0, -10, panel_.title_, " class=\"panel\"");
  if (!panel_.map_) paint_grid();
  out_ += "<g clip-path=\"url(#inside" + name + ")\">\n";
  if (panel_.map_) paint_map();
  for (const Panel::Line& line : panel_.lines_) paint_line(line);
  out_ += "</g>\n";
  paint_axes();
  for (const Panel::Line& line : panel_.lines_) paint_markers(line);
  if (panel_.map_) paint_color_bar(number);
  paint_legend();
  return out_ + "</g>\n";
}

}  // namespace petroglyph
