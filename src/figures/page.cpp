// The page: panels in rows and columns with aligned axes, a title above, a caption below.
#include <algorithm>

#include "base/atomic_file.h"
#include "figures/figure.h"
#include "figures/panel_painter.h"

namespace petroglyph {

std::string Figure::svg() const {
  std::vector<PanelPainter> painters;
  for (const Panel& panel : panels_) painters.emplace_back(panel, width_, height_);
  const size_t most = columns_ > 0 ? size_t(columns_) : painters.size() == 4 ? 2 : 3;
  const size_t columns = std::max<size_t>(1, std::min(most, painters.size()));
  const size_t rows = (painters.size() + columns - 1) / columns;
  // Adjacent panels with the same lines share one legend, that of the right panel.
  for (size_t i = 0; i + 1 < painters.size(); ++i)
    if ((i + 1) % columns != 0 && painters[i].legend_is_in(painters[i + 1])) painters[i].drop_legend();
  // The margins of a column are those of its widest panel, and of a row those of its tallest, so that the axes are
  // aligned.
  std::vector<double> left(columns, 0), right(columns, 0), top(rows, 0), bottom(rows, 0);
  const auto raise = [](double& margin, double wanted) { margin = std::max(margin, wanted); };
  for (size_t i = 0; i < painters.size(); ++i) {
    raise(left[i % columns], painters[i].left());
    raise(right[i % columns], painters[i].right());
    raise(top[i / columns], painters[i].top());
    raise(bottom[i / columns], painters[i].bottom());
  }
  constexpr double MARGIN = 12;
  std::string body;
  double y = title_.empty() ? MARGIN : MARGIN + LARGE + 10,
         width = std::max(width_of(title_, LARGE), width_of(caption_, SMALL)) + 2 * MARGIN;
  for (size_t row = 0; row < rows; ++row) {
    double x = MARGIN;
    for (size_t column = 0; column < columns; ++column) {
      const size_t i = row * columns + column;
      if (i < painters.size()) body += painters[i].paint(x + left[column], y + top[row], static_cast<int>(i) + 1);
      x += left[column] + width_ + right[column];
    }
    width = std::max(width, x + MARGIN);
    y += top[row] + height_ + bottom[row];
  }
  if (!title_.empty()) body += text_element(MARGIN, MARGIN + LARGE, title_, " class=\"title\"");
  if (!caption_.empty()) body += text_element(MARGIN, (y += 18), caption_, " class=\"caption\"");
  return svg_file(title_, width, y + MARGIN, body);
}

void Figure::save(const std::string& path) const { write_file_atomically(path, svg()); }

}  // namespace petroglyph
