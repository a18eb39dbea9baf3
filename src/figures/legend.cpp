// The legend of a panel, and its position where it covers no curve.
#include <algorithm>
#include <cmath>

#include "figures/panel_painter.h"

namespace petroglyph {

namespace {

constexpr double ROW = 17, SWATCH = 22, BORDER = 7;

}  // namespace

// How much of the curves a rectangle would cover, in steps of 4 pixels of their length. A point without a line counts
// three steps.
double PanelPainter::covered(Point corner, double width, double height) const {
  const auto inside = [&](double x, double y) {
    return x > corner.x && x < corner.x + width && y > corner.y && y < corner.y + height;
  };
  double sum = 0;
  for (const Panel::Level& level : panel_.levels_) sum += inside(corner.x + 1, y_.at(level.y));
  for (size_t line = 0; line < curves_.size(); ++line) {
    const std::vector<Point>& curve = curves_[line];
    const LineStyle& style = panel_.lines_[line].style;
    for (size_t i = 0; i < curve.size(); ++i) {
      if (curve[i].gap()) continue;
      if (!style.joined || style.markers || stands_alone(curve, i)) sum += inside(curve[i].x, curve[i].y) ? 3 : 0;
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

bool PanelPainter::legend_is_in(const PanelPainter& other) const {
  const auto same = [](const LegendRow& a, const LegendRow& b) {
    if (a.name != b.name || !a.line != !b.line) return false;
    if (!a.line) return true;
    const LineStyle &left = a.line->style, &right = b.line->style;
    return left.color == right.color && left.dashed == right.dashed && left.markers == right.markers &&
           left.joined == right.joined;
  };
  return std::all_of(legend_.begin(), legend_.end(), [&](const LegendRow& row) {
    return std::any_of(other.legend_.begin(), other.legend_.end(), [&](const LegendRow& o) { return same(row, o); });
  });
}

double PanelPainter::legend_width() const {
  double words = 0;
  for (const LegendRow& row : legend_) words = std::max(words, width_of(row.name, SMALL));
  return SWATCH + words + 3 * BORDER;
}

double PanelPainter::legend_height() const { return double(legend_.size()) * ROW + BORDER; }

// A position where the legend covers no curve: a corner, or else along an edge. If there is none, the legend is
// placed beside the panel.
std::optional<Point> PanelPainter::legend_place() const {
  constexpr double GAP = 8;
  constexpr int STEPS = 8;
  const double width = legend_width(), height = legend_height();
  if (panel_.map_ || width + 2 * GAP > width_ || height + 2 * GAP > height_) return std::nullopt;
  std::optional<Point> free;
  for (int row = 0; row <= STEPS; ++row) {
    for (int column = STEPS; column >= 0; --column) {
      const bool side = column % STEPS == 0, end = row % STEPS == 0;
      if (!(side || end) || (free && !(side && end))) continue;
      const Point place = {GAP + (width_ - width - 2 * GAP) * column / STEPS,
                           GAP + (height_ - height - 2 * GAP) * row / STEPS};
      if (covered({place.x - GAP, place.y - GAP}, width + 2 * GAP, height + 2 * GAP) > 0) continue;
      if (side && end) return place;
      free = place;
    }
  }
  return free;
}

void PanelPainter::paint_legend() {
  if (legend_.empty()) return;
  const double width = legend_width(), height = legend_height();
  const Point place = legend_place().value_or(Point{width_ + std::max(12.0, bar_room() + 8), 0});
  out_ += rectangle(place.x, place.y, width, height, " rx=\"3\" fill=\"#FFFFFF\" stroke=\"#E6E6E6\"");
  const double x = place.x + BORDER;
  double y = place.y + BORDER / 2 + ROW / 2;
  for (const LegendRow& row : legend_) {
    const std::string swatch = "M" + pixels(x) + "," + pixels(y) + "h" + pixels(SWATCH) + "\"/>\n";
    if (!row.line) {
      out_ += "<path class=\"level\" d=\"" + swatch;
    } else {
      const LineStyle& style = row.line->style;
      if (style.joined) out_ += stroke_of(style, std::max(style.width, 2.0)) + swatch;
      if (style.markers || !style.joined)
        out_ += fill_of(style) + marker({x + SWATCH / 2, y}, size_t(style.color)) + "\"/>\n";
    }
    out_ += text_element(x + SWATCH + BORDER, y + 4, row.name, "");
    y += ROW;
  }
}

}  // namespace petroglyph
