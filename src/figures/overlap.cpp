// Curves that lie on each other: the lower ones are drawn wider, so that each shows beside the next.
#include <algorithm>
#include <cmath>

#include "figures/panel_painter.h"

namespace petroglyph {

namespace {

constexpr double NEAR = 1.5;     // pixels between curves that are not told apart
constexpr size_t CROSSING = 12;  // columns: shorter meetings are crossings

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

bool near(const Span& a, const Span& b) {
  return !a.empty() && !b.empty() && std::fabs(a.low - b.low) < NEAR && std::fabs(a.high - b.high) < NEAR;
}

// Adds one where `above` hides `below` for long enough.
void add_hidden(std::vector<int>& hidden, const std::vector<Span>& below, const std::vector<Span>& above) {
  for (size_t begin = 0, end; begin < hidden.size(); begin = end + 1) {
    for (end = begin; end < hidden.size() && near(below[end], above[end]);) ++end;
    if (end - begin < CROSSING) continue;
    for (size_t i = begin; i < end; ++i) ++hidden[i];
  }
}

}  // namespace

void PanelPainter::find_overlaps() {
  std::vector<std::vector<Span>> columns;
  for (const std::vector<Point>& curve : curves_) columns.push_back(columns_of(curve, width_));
  const auto counts = [&](size_t i) { return panel_.lines_[i].style.joined && panel_.lines_[i].style.opacity >= 1; };
  for (size_t below = 0; below < curves_.size(); ++below) {
    hidden_.emplace_back(columns[below].size(), 0);
    for (size_t above = below + 1; above < curves_.size(); ++above)
      if (counts(below) && counts(above)) add_hidden(hidden_[below], columns[below], columns[above]);
    for (const int count : hidden_[below]) most_hidden_ = std::max(most_hidden_, count);
  }
}

// By how many pixels a curve is wider for those that lie on it.
double PanelPainter::wider(int hidden) const {
  constexpr double STEP = 2.4, MOST = 9.6;
  return hidden * std::min(STEP, MOST / std::max(1, most_hidden_));
}

// The pieces of a curve on which others lie.
std::string PanelPainter::hidden_pieces(const Panel::Line& line) const {
  const std::vector<int>& hidden = hidden_[index_of(line)];
  const std::vector<Span> columns = columns_of(curve_of(line), width_);
  std::string pieces;
  for (size_t begin = 0, end; begin < hidden.size(); begin = end) {
    for (end = begin + 1; end < hidden.size() && hidden[end] == hidden[begin];) ++end;
    if (hidden[begin] == 0) continue;
    std::vector<Point> piece;
    for (size_t i = begin; i < end; ++i) {
      if (columns[i].empty()) continue;
      piece.push_back({double(i), columns[i].low});
      if (columns[i].high > columns[i].low + NEAR) piece.push_back({double(i), columns[i].high});
    }
    pieces += stroke_of(line.style, line.style.width + wider(hidden[begin])) + path_of(piece) + "\"/>\n";
  }
  return pieces;
}

}  // namespace petroglyph
