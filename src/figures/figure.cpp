// Stores the contents of a figure.
#include "figures/figure.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr size_t FEW_POINTS = 200;    // fewer points are drawn without an average
constexpr size_t AVERAGE_SHARE = 50;  // the average is over this fraction of all points: 1/50

// A moving average, centered on each value. The window is shorter near the beginning, where curves fall steeply; at
// the end it has fewer values after the point than before it. A gap remains a gap.
std::vector<double> moving_average(const std::vector<double>& values) {
  if (values.size() < FEW_POINTS) return values;
  const size_t half = values.size() / (2 * AVERAGE_SHARE);
  std::vector<double> average = values, sums = {0}, counts = {0};  // sums: of the first i values
  for (const double value : values) {
    sums.push_back(sums.back() + (std::isfinite(value) ? value : 0));
    counts.push_back(counts.back() + std::isfinite(value));
  }
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    const size_t reach = std::min(half, i), end = std::min(i + reach + 1, values.size());
    average[i] = (sums[end] - sums[i - reach]) / (counts[end] - counts[i - reach]);
  }
  return average;
}

}  // namespace

Panel& Panel::line(const std::string& name, const std::vector<double>& xs, const std::vector<double>& ys,
                   const LineStyle& style) {
  if (xs.size() != ys.size()) {
    throw Error("figure: curve " + name + " has " + std::to_string(xs.size()) + " x and " + std::to_string(ys.size()) +
                " y");
  }
  lines_.push_back({name, xs, ys, style});
  if (style.color < 0) lines_.back().style.color = next_color_++;
  return *this;
}

Panel& Panel::noisy_line(const std::string& name, const std::vector<double>& xs, const std::vector<double>& ys) {
  const std::vector<double> average = moving_average(ys);
  LineStyle style;
  if (average != ys) {
    style.color = next_color_;
    style.opacity = 0.25;
    style.width = 1;
    line("", xs, ys, style);
    style = {};
  }
  return line(name, xs, average, style);
}

Panel& Panel::heatmap(size_t rows, size_t columns, const std::vector<double>& values, const std::string& label,
                      ColorMap map) {
  if (rows == 0 || columns == 0 || values.size() != rows * columns) {
    throw Error("figure: a heat map of " + std::to_string(rows) + "×" + std::to_string(columns) + " cells got " +
                std::to_string(values.size()) + " values");
  }
  map_ = HeatMap{rows, columns, values, map};
  color_.label = label;
  return *this;
}

Panel& Figure::panel(const std::string& title) {
  panels_.emplace_back();
  panels_.back().title_ = title;
  return panels_.back();
}

}  // namespace petroglyph
