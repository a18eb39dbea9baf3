// The cells of a heat map, and its colour bar.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "figures/panel_painter.h"

namespace petroglyph {

namespace {

using ColorRamp = std::array<int, 9>;  // 0xRRGGBB

// Even steps of lightness in OKLab, from 0.975 down to 0.275, while the hue changes from yellow over green to blue.
// So the map can also be read in greyscale.
constexpr ColorRamp SEQUENTIAL = {0xFAF9E0, 0xC7E5B4, 0x80D3A3, 0x00BCA4, 0x009FA8,
                                  0x007EA2, 0x005C8D, 0x1F3E68, 0x21263D};
// Lightness from 0.44 up to 0.97 and back down, in even steps: blue, white, red.
constexpr ColorRamp DIVERGING = {0x004FA7, 0x4179BF, 0x7CA3D5, 0xB6CCE8, 0xF5F5F5,
                                 0xE6C0B5, 0xCF8D79, 0xB45B3F, 0x962100};
constexpr int MISSING = 0xBDBDBD;

}  // namespace

int color_at(ColorMap map, double part) {
  const ColorRamp& ramp = map == ColorMap::Sequential ? SEQUENTIAL : DIVERGING;
  constexpr int STEPS = 64;  // finer ones are not visible
  const double place = std::round(std::clamp(part, 0.0, 1.0) * STEPS) / STEPS * double(ramp.size() - 1);
  const size_t left = std::min(static_cast<size_t>(place), ramp.size() - 2);
  const auto channel = [&](int shift) {
    const int from = ramp[left] >> shift & 0xFF, to = ramp[left + 1] >> shift & 0xFF;
    return static_cast<int>(std::lround(from + (to - from) * (place - double(left))));
  };
  return channel(16) << 16 | channel(8) << 8 | channel(0);
}

void PanelPainter::paint_map() {
  const Panel::HeatMap& map = *panel_.map_;
  const Span span = color_.span();
  out_ += cells({0, 0}, width_, height_, map.columns, map.rows, [&](size_t column, size_t row) {
    const double value = map.values[row * map.columns + column];
    return std::isfinite(value) ? color_at(map.map, (value - span.low) / (span.high - span.low)) : MISSING;
  });
}

void PanelPainter::paint_color_bar(int number) {
  const std::string name = "bar" + std::to_string(number);
  constexpr int STOPS = 8;  // the ramp's own colours
  out_ += "<linearGradient id=\"" + name + "\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">";
  for (int i = 0; i <= STOPS; ++i) {
    out_ += text("<stop offset=\"%s\" stop-color=\"#%06X\"/>", number_text(double(i) / STOPS, 4).c_str(),
                 color_at(panel_.map_->map, double(i) / STOPS));
  }
  const double left = width_ + BAR_GAP, right = left + BAR_WIDTH;
  out_ += "</linearGradient>\n" + rectangle(left, 0, BAR_WIDTH, height_, " fill=\"url(#" + name + ")\"");
  std::string labels;
  out_ += "<g class=\"axis\">\n";
  for (const Tick& tick : color_ticks_) {
    const double at = color_.at(tick.value);
    out_ += line_element(right, at, right + TICK_LENGTH, at);
    labels += text_element(right + TICK_LENGTH + 3, at + 4, tick.label, "");
  }
  out_ += "</g>\n" + labels;
  if (panel_.color_.label.empty()) return;
  const std::string place =
      "translate(" + pixels(width_ + color_label_at()) + "," + pixels(height_ / 2) + ") rotate(-90)";
  out_ +=
      text_element(0, 0, panel_.color_.label, " class=\"label\" text-anchor=\"middle\" transform=\"" + place + "\"");
}

}  // namespace petroglyph
