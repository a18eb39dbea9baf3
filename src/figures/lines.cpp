// Curves and their markers.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "figures/panel_painter.h"

namespace petroglyph {

namespace {

// Okabe and Ito's palette, which is distinguishable with any colour vision; without its yellow, which is too faint on
// white.
constexpr std::array<const char*, 7> PALETTE = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                "#E69F00", "#56B4E9", "#333333"};
// A circle, a square, a diamond and a triangle around a point.
constexpr std::array<const char*, 4> SHAPES = {"m-3,0a3,3 0 1 0 6,0a3,3 0 1 0 -6,0z", "m-2.7,-2.7h5.4v5.4h-5.4z",
                                               "m0,-3.8l3.8,3.8l-3.8,3.8l-3.8,-3.8z", "m0,-3.6l3.6,6.2h-7.2z"};
constexpr std::array<const char*, 4> DASHES = {"", "6 4", "1 4", "9 4 1 4"};

// Keeps the first, the lowest, the highest and the last point of each column of pixels; the drawn path stays the
// same.
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

}  // namespace

std::string marker(Point at, size_t shape) {
  return "M" + pixels(at.x) + "," + pixels(at.y) + SHAPES[shape % SHAPES.size()];
}

std::string stroke_of(const LineStyle& style, double width) {
  // After the last colour, the palette repeats with dashed lines, then with dotted lines, then with dash-dotted
  // lines.
  const size_t index = static_cast<size_t>(style.color), set = index / PALETTE.size() % DASHES.size();
  const std::string dashes = DASHES[style.dashed ? std::max<size_t>(1, set) : set];
  return std::string("<path class=\"line\" stroke=\"") + PALETTE[index % PALETTE.size()] + "\"" +
         attribute("stroke-width", width) + (dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\"") +
         (style.opacity < 1 ? attribute("opacity", style.opacity) : "") + " d=\"";
}

std::string fill_of(const LineStyle& style) {
  // Pale markers are dense, and white edges would hide the markers below.
  const std::string color = PALETTE[static_cast<size_t>(style.color) % PALETTE.size()];
  const std::string pale = style.opacity < 1 ? attribute("opacity", style.opacity) + " style=\"stroke:none\"" : "";
  return "<path class=\"mark\" fill=\"" + color + "\"" + pale + " d=\"";
}

namespace {

// Whether the point is between two gaps, so that no line segment ends at it.
bool stands_alone(const std::vector<Point>& points, size_t i) {
  return !points[i].gap() && (i == 0 || points[i - 1].gap()) && (i + 1 == points.size() || points[i + 1].gap());
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
    // A line of length zero: its round ends draw a dot with the width of the line.
    if (stands_alone(points, i)) path += "h0";
    begun = true;
  }
  return path;
}

}  // namespace

std::vector<Point> PanelPainter::points_of(const Panel::Line& line) const {
  constexpr double GAP = std::numeric_limits<double>::quiet_NaN();
  std::vector<Point> points;
  points.reserve(line.xs.size());
  for (size_t i = 0; i < line.xs.size(); ++i) {
    const bool shown = x_.shows(line.xs[i]) && y_.shows(line.ys[i]);
    points.push_back(shown ? Point{x_.at(line.xs[i]), y_.at(line.ys[i])} : Point{GAP, GAP});
  }
  return line.style.joined && !line.style.markers ? thinned(points) : points;  // every marker is visible
}

void PanelPainter::paint_levels() {
  for (const Panel::Level& level : panel_.levels_) {
    if (!y_.shows(level.y)) continue;
    const std::string at = pixels(y_.at(level.y));
    out_ += "<path class=\"level\" d=\"M0," + at + "H" + pixels(width_) + "\"/>\n";
  }
}

void PanelPainter::paint_line(const Panel::Line& line) {
  if (!line.style.joined) return;
  out_ += stroke_of(line.style, line.style.width) + path_of(curve_of(line)) + "\"/>\n";
}

// Draws markers at every point, or only at points that no line segment touches. Markers are not clipped, so that a
// marker on an axis is complete. Markers outside the axes are left out.
void PanelPainter::paint_markers(const Panel::Line& line) {
  const bool everywhere = !line.style.joined || line.style.markers;
  const std::vector<Point>& curve = curve_of(line);
  constexpr double SLACK = 0.5;
  std::string marks;
  for (size_t i = 0; i < curve.size(); ++i) {
    const Point& point = curve[i];
    if (!everywhere && !stands_alone(curve, i)) continue;
    const bool inside = point.x > -SLACK && point.x < width_ + SLACK && point.y > -SLACK && point.y < height_ + SLACK;
    if (!inside) continue;
    marks += marker(point, size_t(line.style.color));
  }
  if (!marks.empty()) out_ += fill_of(line.style) + marks + "\"/>\n";
}

}  // namespace petroglyph
