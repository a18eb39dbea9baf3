// Figures: curves and heat maps as one self-contained SVG file that any browser shows.
//
//   Figure figure("Copying 64 letters");
//   Panel& loss = figure.panel("loss");
//   loss.x("step").y("cross-entropy (nats)").log_y();
//   loss.line("CausalRN", steps, losses);
//   figure.save("runs/a/curve.svg");
//
// The same data gives the same bytes. NaN, infinities, and values that a logarithmic axis cannot show are gaps. A
// curve of many points is reduced to the first, lowest, highest and last point of each column of pixels, which is all
// that the picture can show. The legend is beside the panel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "figures/axis_scale.h"

namespace petroglyph {

struct LineStyle {
  int color = -1;        // index into the palette; -1: the next one
  bool markers = false;  // a marker at each point; its shape depends on the colour
  bool dashed = false;
  bool joined = true;  // false: markers only
  double width = 1.6;  // pixels
  double opacity = 1;  // for dense points, or lines in the background
};
constexpr LineStyle WITH_MARKERS{-1, true}, POINTS{-1, true, false, false};

enum class ColorMap { Sequential, Diverging };  // light to dark; blue through white (zero) to red
// The colour at position `part` (0 to 1) of the map: 0xRRGGBB.
int color_at(ColorMap map, double part);

class Panel {
 public:
  Panel& x(const std::string& label) {
    x_.label = label;
    return *this;
  }
  Panel& y(const std::string& label) {
    y_.label = label;
    return *this;
  }
  Panel& log_x() {
    x_.logarithmic = true;
    return *this;
  }
  Panel& log_y() {
    y_.logarithmic = true;
    return *this;
  }
  // By default, the axis spans the data.
  Panel& y_range(double low, double high) {
    y_.fixed = Span{low, high};
    return *this;
  }
  // Names for the values 0, 1, 2, … (the columns and rows of a heat map).
  Panel& x_names(const std::vector<std::string>& names) {
    x_.names = names;
    return *this;
  }
  Panel& y_names(const std::vector<std::string>& names) {
    y_.names = names;
    return *this;
  }

  // A curve through the points in the given order. A curve with an empty name is not in the legend.
  Panel& line(const std::string& name, const std::vector<double>& xs, const std::vector<double>& ys,
              const LineStyle& style = {});
  // The same for noisy values: the values themselves in a faint colour, and their moving average on top.
  Panel& noisy_line(const std::string& name, const std::vector<double>& xs, const std::vector<double>& ys);
  // A horizontal grey line across the panel, for example at chance level.
  Panel& level(const std::string& name, double y) {
    levels_.push_back({name, y});
    return *this;
  }

  // `values` row by row, row 0 at the top, with a colour bar labelled `label`. NaN cells are grey.
  Panel& heatmap(size_t rows, size_t columns, const std::vector<double>& values, const std::string& label,
                 ColorMap map = ColorMap::Sequential);
  // The values at the ends of the colour bar. By default they are the range of the data, symmetric about zero for a
  // diverging map.
  Panel& color_range(double low, double high) {
    color_.fixed = Span{low, high};
    return *this;
  }

 private:
  friend class Figure;
  friend class PanelPainter;

  struct Axis {
    std::string label;
    bool logarithmic = false;
    std::optional<Span> fixed;  // the range, where it was given
    std::vector<std::string> names;
  };
  struct Line {
    std::string name;
    std::vector<double> xs, ys;
    LineStyle style;
  };
  struct HeatMap {
    size_t rows, columns;
    std::vector<double> values;
    ColorMap map;
  };

  struct Level {
    std::string name;
    double y;
  };

  std::string title_;
  Axis x_, y_;
  std::vector<Line> lines_;
  std::vector<Level> levels_;
  int next_color_ = 0;
  std::optional<HeatMap> map_;
  Axis color_;
};

class Figure {
 public:
  explicit Figure(std::string title) : title_(std::move(title)) {}
  // Adds a panel; panels are laid out row by row. The reference remains valid.
  Panel& panel(const std::string& title = "");
  // Panels in a row; default: at most 3, depending on their number
  Figure& columns(int count) {
    columns_ = std::max(1, count);
    return *this;
  }
  // Pixels of the area inside the axes
  Figure& panel_size(double width, double height) {
    width_ = width;
    height_ = height;
    return *this;
  }
  // A small line below the panels: the run, its settings.
  Figure& caption(const std::string& words) {
    caption_ = words;
    return *this;
  }

  std::string svg() const;
  void save(const std::string& path) const;

 private:
  std::string title_, caption_;
  int columns_ = 0;
  double width_ = 360, height_ = 250;
  std::deque<Panel> panels_;
};

}  // namespace petroglyph
