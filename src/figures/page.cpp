// The page: panels in rows and columns with aligned axes, a title above, a caption below.
#include <algorithm>

#include "base/atomic_file.h"
#include "base/text.h"
#include "figures/figure.h"
#include "figures/panel_painter.h"

namespace petroglyph {

namespace {

std::string style_sheet() {
  const auto size = [](double points) { return pixels(points) + "px"; };
  return "<style>\ntext{font:" + size(SMALL) +
         " system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#333333}\n.label{font-size:" +
         size(MEDIUM) + "}.panel{font-size:" + size(MEDIUM + 1) + ";font-weight:600}\n.title{font-size:" + size(LARGE) +
         ";font-weight:600}.caption{fill:#666666}\n"
         ".grid line{stroke:#E6E6E6;stroke-width:1}.axis line{stroke:#333333;stroke-width:1}\n"
         ".level{fill:none;stroke:#888888;stroke-width:1.2;stroke-dasharray:2 3}\n"
         ".line{fill:none;stroke-linejoin:round;stroke-linecap:round}.mark{stroke:#FFFFFF;stroke-width:0.8}\n</"
         "style>\n";
}

}  // namespace

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
  const double height = y + MARGIN;
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) + attribute("height", height) +
         " viewBox=\"0 0 " + pixels(width) + " " + pixels(height) + "\">\n<title>" + markup_text(title_) +
         "</title>\n" + style_sheet() + rectangle(0, 0, width, height, " fill=\"#FFFFFF\"") + body + "</svg>\n";
}

void Figure::save(const std::string& path) const { write_file_atomically(path, svg()); }

}  // namespace petroglyph
