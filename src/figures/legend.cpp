// The legend of a panel, and where it hides least.
#include <algorithm>
#include <cmath>
#include <limits>

#include "figures/panel_painter.h"

namespace petroglyph {

// How much of the curves lies in a rectangle: lengths in steps of 4 pixels, a point without a line like three of them.
double PanelPainter::covered(Point corner, double width, double height) const {
  const auto inside = [&](double x, double y) {
    return x > corner.x && x < corner.x + width && y > corner.y && y < corner.y + height;
  };
  double sum = 0;
  for (size_t line = 0; line < curves_.size(); ++line) {
    const std::vector<Point>& curve = curves_[line];
    const LineStyle& style = panel_.lines_[line].style;
    for (size_t i = 0; i < curve.size(); ++i) {
      if (curve[i].gap()) continue;
      if (!style.joined || style.markers) sum += inside(curve[i].x, curve[i].y) ? 3 : 0;
      if (!style.joined || i == 0 || curve[i - 1].gap()) continue;
      const Point &from = curve[i - 1], &to = curve[i];
      const int parts = 1 + static_cast<int>(std::min(std::hypot(to.x - from.x, to.y - from.y), 2000.0) / 4);
      for (int part = 1; part <= parts; ++part) {
        sum += inside(from.x + (to.x - from.x) * part / parts, from.y + (to.y - from.y) * part / parts);
      }
    }
  }
  return sum;
}

// Where the legend hides least; corners first, then what is near the right and the top.
Point PanelPainter::legend_place(double width, double height) const {
  constexpr double GAP = 8;
  constexpr int STEPS = 8;
  Point best = {width_ - width - GAP, GAP};
  double least = std::numeric_limits<double>::infinity();
  for (int row = 0; row <= STEPS; ++row) {
    for (int column = STEPS; column >= 0; --column) {
      const Point place = {GAP + (width_ - width - 2 * GAP) * column / STEPS,
                           GAP + (height_ - height - 2 * GAP) * row / STEPS};
      const bool corner = row % STEPS == 0 && column % STEPS == 0;
      const double cost =
          covered({place.x - GAP / 2, place.y - GAP / 2}, width + GAP, height + GAP) + (corner ? 0 : 0.5);
      if (cost >= least) continue;
      least = cost;
      best = place;
    }
  }
  return best;
}

void PanelPainter::paint_legend() {
  constexpr double ROW = 17, SWATCH = 22, BORDER = 7;
  double words = 0, rows = 0;
  for (const Panel::Line& line : panel_.lines_) {
    if (line.name.empty()) continue;
    words = std::max(words, width_of(line.name, SMALL));
    ++rows;
  }
  if (rows == 0) return;
  const double width = SWATCH + words + 3 * BORDER, height = rows * ROW + BORDER;
  const Point place = legend_place(width, height);
  out_ +=
      rectangle(place.x, place.y, width, height, " rx=\"3\" fill=\"#FFFFFF\" fill-opacity=\"0.85\" stroke=\"#E6E6E6\"");
  const double x = place.x + BORDER;
  double y = place.y + BORDER / 2 + ROW / 2;
  for (const Panel::Line& line : panel_.lines_) {
    if (line.name.empty()) continue;
    if (line.style.joined) {
      out_ += stroke_of(line.style, std::max(line.style.width, 2.0)) + "M" + pixels(x) + "," + pixels(y) + "h" +
              pixels(SWATCH) + "\"/>\n";
    }
    if (line.style.markers || !line.style.joined) {
      out_ += fill_of(line.style) + marker({x + SWATCH / 2, y}, size_t(line.style.color)) + "\"/>\n";
    }
    out_ += text_element(x + SWATCH + BORDER, y + 4, line.name, "");
    y += ROW;
  }
}

}  // namespace petroglyph
