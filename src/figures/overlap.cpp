// Curves that lie on each other: the lower ones are drawn wider, so that each shows beside the next.
#include <algorithm>
#include <cmath>
#include <limits>

#include "figures/panel_painter.h"

namespace petroglyph {

namespace {

constexpr double STEP = 2.4, MOST = 9.6;  // pixels wider for each curve above, and for all of them
constexpr double NEAR = 1.5;              // pixels between curves that are not told apart
constexpr double SHARE = 0.5;             // of the columns that two curves share

// What a curve takes of each column of pixels.
std::vector<Span> columns_of(const std::vector<Point>& curve, double width) {
  std::vector<Span> columns(static_cast<size_t>(std::max(1.0, width)) + 1);
  for (size_t i = 0; i < curve.size(); ++i) {
    if (curve[i].gap()) continue;
    const Point &to = curve[i], &from = i > 0 && !curve[i - 1].gap() ? curve[i - 1] : to;
    const double low = std::max(0.0, std::min(from.x, to.x)), high = std::min(width, std::max(from.x, to.x));
    for (double x = std::floor(low); x <= high; ++x) {
      const double part = to.x == from.x ? 1 : std::clamp((x - from.x) / (to.x - from.x), 0.0, 1.0);
      columns[static_cast<size_t>(x)].include(from.y + part * (to.y - from.y));
    }
  }
  return columns;
}

bool overlap(const std::vector<Span>& a, const std::vector<Span>& b) {
  double both = 0, near = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].empty() || b[i].empty()) continue;
    ++both;
    near += std::fabs(a[i].low - b[i].low) < NEAR && std::fabs(a[i].high - b[i].high) < NEAR;
  }
  return both > 0 && near >= SHARE * both;
}

}  // namespace

std::vector<double> PanelPainter::overlaps() const {
  const size_t count = panel_.lines_.size();
  std::vector<std::vector<Span>> columns;
  for (const std::vector<Point>& curve : curves_) columns.push_back(columns_of(curve, width_));
  const auto counts = [&](size_t i) { return panel_.lines_[i].style.joined && panel_.lines_[i].style.opacity >= 1; };
  std::vector<double> wider(count, 0);
  for (size_t below = 0; below < count; ++below)
    for (size_t above = below + 1; above < count; ++above)
      if (counts(below) && counts(above) && overlap(columns[below], columns[above])) wider[below] += STEP;
  const double most = count == 0 ? 0 : *std::max_element(wider.begin(), wider.end());
  for (double& w : wider) w *= most > MOST ? MOST / most : 1;
  return wider;
}

}  // namespace petroglyph
