// Curves and their marks.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "figures/panel_painter.h"

namespace petroglyph {

namespace {

// Okabe and Ito's colours, which readers with any colour vision tell apart, without the yellow, too faint on white.
constexpr std::array<const char*, 7> PALETTE = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                "#E69F00", "#56B4E9", "#333333"};

// Of each column of pixels the first, the lowest, the highest and the last point: what is drawn stays the same.
std::vector<Point> thinned(const std::vector<Point>& points) {
  std::vector<Point> kept;
  for (size_t start = 0; start < points.size();) {
    if (points[start].gap()) {
      kept.push_back(points[start++]);
      continue;
    }
    size_t end = start, low = start, high = start;
    for (; end < points.size() && std::floor(points[end].x) == std::floor(points[start].x); ++end) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
    }
    std::array<size_t, 4> chosen = {start, low, high, end - 1};
    std::sort(chosen.begin(), chosen.end());
    const auto last = std::unique(chosen.begin(), chosen.end());
    for (auto i = chosen.begin(); i != last; ++i) kept.push_back(points[*i]);
    start = end;
  }
  return kept;
}

std::string path_of(const std::vector<Point>& points) {
  std::string path;
  bool begun = false;
  for (size_t i = 0; i < points.size(); ++i) {
    if (points[i].gap()) {
      begun = false;
      continue;
    }
    path += (begun ? "L" : "M") + pixels(points[i].x) + "," + pixels(points[i].y);
    // A point between two gaps: a line without length, which round ends make a dot.
    const bool alone = !begun && (i + 1 == points.size() || points[i + 1].gap());
    if (alone) path += "h0";
    begun = true;
  }
  return path;
}

}  // namespace

std::string marker(Point at, size_t shape) {
  const std::string start = "M" + pixels(at.x) + "," + pixels(at.y);
  switch (shape % 4) {
    case 0: return start + "m-3,0a3,3 0 1 0 6,0a3,3 0 1 0 -6,0z";
    case 1: return start + "m-2.7,-2.7h5.4v5.4h-5.4z";
    case 2: return start + "m0,-3.8l3.8,3.8l-3.8,3.8l-3.8,-3.8z";
    default: return start + "m0,-3.6l3.6,6.2h-7.2z";
  }
}

std::string stroke_of(const LineStyle& style, double width) {
  // When the colours are used up, dashes make a second set.
  const size_t index = static_cast<size_t>(style.color);
  const bool dashed = style.dashed || index / PALETTE.size() % 2 == 1;
  return std::string("<path class=\"line\" stroke=\"") + PALETTE[index % PALETTE.size()] + "\"" +
         attribute("stroke-width", width) + (dashed ? " stroke-dasharray=\"6 4\"" : "") +
         (style.opacity < 1 ? attribute("opacity", style.opacity) : "") + " d=\"";
}

std::string fill_of(const LineStyle& style) {
  return std::string("<path class=\"mark\" fill=\"") + PALETTE[static_cast<size_t>(style.color) % PALETTE.size()] +
         "\"" + (style.opacity < 1 ? attribute("opacity", style.opacity) : "") + " d=\"";
}

std::vector<Point> PanelPainter::points_of(const Panel::Line& line) const {
  constexpr double GAP = std::numeric_limits<double>::quiet_NaN();
  std::vector<Point> points;
  points.reserve(line.xs.size());
  for (size_t i = 0; i < line.xs.size(); ++i) {
    const bool shown = x_.shows(line.xs[i]) && y_.shows(line.ys[i]);
    points.push_back(shown ? Point{x_.at(line.xs[i]), y_.at(line.ys[i])} : Point{GAP, GAP});
  }
  return thinned(points);
}

void PanelPainter::paint_line(const Panel::Line& line) {
  if (!line.style.joined) return;
  out_ += stroke_of(line.style, line.style.width) + path_of(curve_of(line)) + "\"/>\n";
}

// Marks are not clipped, so that one on an axis is whole; those beyond the axes are left out.
void PanelPainter::paint_markers(const Panel::Line& line) {
  if (line.style.joined && !line.style.markers) return;
  constexpr double SLACK = 0.5;
  std::string marks;
  for (const Point& point : curve_of(line)) {
    const bool inside = point.x > -SLACK && point.x < width_ + SLACK && point.y > -SLACK && point.y < height_ + SLACK;
    if (inside) marks += marker(point, size_t(line.style.color));
  }
  out_ += fill_of(line.style) + marks + "\"/>\n";
}

}  // namespace petroglyph
