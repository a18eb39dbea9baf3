// The legend of a panel, beside it.
#include <algorithm>

#include "figures/panel_painter.h"

namespace petroglyph {

namespace {

constexpr double ROW = 17, SWATCH = 22, BORDER = 7;

}  // namespace

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

void PanelPainter::paint_legend() {
  if (legend_.empty()) return;
  const double width = legend_width(), height = legend_height();
  const Point place = {width_ + std::max(12.0, bar_room() + 8), 0};
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
