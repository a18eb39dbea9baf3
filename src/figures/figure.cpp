#include "figures/figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// Okabe and Ito's colours, which readers with any colour vision tell apart, without the yellow, too faint on white.
constexpr std::array<const char*, 7> PALETTE = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                "#E69F00", "#56B4E9", "#333333"};

using ColorRamp = std::array<int, 9>;  // 0xRRGGBB

// Even steps of lightness in OKLab, 0.975 down to 0.275, while the hue turns from yellow by green to blue: it can be
// read in grey, too.
constexpr ColorRamp SEQUENTIAL = {0xFAF9E0, 0xC7E5B4, 0x80D3A3, 0x00BCA4, 0x009FA8,
                                  0x007EA2, 0x005C8D, 0x1F3E68, 0x21263D};
// Lightness 0.44 up to 0.97 and down again, evenly: blue, white, red.
constexpr ColorRamp DIVERGING = {0x004FA7, 0x4179BF, 0x7CA3D5, 0xB6CCE8, 0xF5F5F5,
                                 0xE6C0B5, 0xCF8D79, 0xB45B3F, 0x962100};
constexpr const char* MISSING = "#BDBDBD";
constexpr int LEVELS = 64;          // colours of a heat map: finer steps are not seen
constexpr size_t MOST_CELLS = 300;  // rows or columns of a heat map: smaller cells would not be seen

constexpr double SMALL = 11, MEDIUM = 12, LARGE = 15;  // sizes of letters, in pixels
constexpr double TICK_LENGTH = 4;

struct Span {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

struct Tick {
  double value;
  std::string label;  // empty: a minor tick, without a grid line
};

struct Point {
  double x, y;  // NaN: a gap
  bool gap() const { return std::isnan(x); }
};

// A coordinate: hundredths of a pixel are enough, and the same on every machine.
std::string pixels(double value) {
  const long long hundredths = std::llround(std::clamp(value, -1e6, 1e6) * 100);
  const long long part = std::llabs(hundredths) % 100;
  std::string out = (hundredths < 0 ? "-" : "") + std::to_string(std::llabs(hundredths) / 100);
  if (part > 0) out += "." + std::to_string(part / 10);
  if (part % 10 > 0) out += std::to_string(part % 10);
  return out;
}

std::string attribute(const char* name, double value) { return std::string(" ") + name + "=\"" + pixels(value) + "\""; }

// Text for XML, which has no way to write most control characters.
std::string escaped(const std::string& words) {
  std::string out;
  const bool good = is_utf8(words);
  for (const char c : words) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += byte < 0x20 || byte == 0x7F || (byte >= 0x80 && !good) ? '?' : c;
    }
  }
  return out;
}

size_t letters(const std::string& words) {
  return size_t(std::count_if(words.begin(), words.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// About how wide the words are; the reader's font is not known.
double width_of(const std::string& words, double size) { return 0.56 * size * double(letters(words)); }

std::string text_element(double x, double y, const std::string& words, const std::string& attributes) {
  return "<text" + attribute("x", x) + attribute("y", y) + attributes + ">" + escaped(words) + "</text>\n";
}

std::string line_element(double x1, double y1, double x2, double y2) {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) + "/>\n";
}

std::string rectangle(double x, double y, double width, double height, const std::string& attributes) {
  return "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) + attribute("height", height) +
         attributes + "/>\n";
}

double power_of_ten(int exponent) { return *parse_number("1e" + std::to_string(exponent)); }

std::string superscript(int number) {
  constexpr std::array<const char*, 10> DIGITS = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = number < 0 ? "⁻" : "";
  for (char digit : std::to_string(std::abs(number))) out += DIGITS[size_t(digit - '0')];
  return out;
}

// 0.50, −3, 20k: `value` in units of `unit`, with a real minus sign.
std::string tick_label(double value, double unit, int decimals) {
  if (value == 0) return "0";
  std::string digits = std::to_string(std::llround(std::fabs(value) / unit * power_of_ten(decimals)));
  if (decimals > 0) {
    if (digits.size() <= size_t(decimals)) digits.insert(0, size_t(decimals) + 1 - digits.size(), '0');
    digits.insert(digits.size() - size_t(decimals), ".");
  }
  const char* suffix = unit == 1e9 ? "G" : unit == 1e6 ? "M" : unit == 1e3 ? "k" : "";
  return (value < 0 ? "−" : "") + digits + suffix;
}

// Round numbers, 1, 2 or 5 times a power of ten apart, about `count` of them.
std::vector<Tick> linear_ticks(Span span, int count, bool whole) {
  const double width = span.high - span.low;
  int exponent = static_cast<int>(std::floor(std::log10(width / count))) - 1, factor = 1;
  while (width > 1.3 * count * factor * power_of_ten(exponent)) {
    factor = factor == 1 ? 2 : factor == 2 ? 5 : 1;
    if (factor == 1) ++exponent;
  }
  if (whole && exponent < 0) {
    exponent = 0;
    factor = 1;
  }
  const double step = factor * power_of_ten(exponent);
  const double largest = std::max(std::fabs(span.low), std::fabs(span.high));
  const double unit = largest >= 1e12 ? 1 : largest >= 1e9 ? 1e9 : largest >= 1e6 ? 1e6 : largest >= 1e4 ? 1e3 : 1;
  const bool scientific = largest >= 1e12 || largest < 1e-3;
  int decimals = std::max(0, static_cast<int>(std::lround(std::log10(unit))) - exponent);
  std::vector<Tick> ticks;
  const double first = std::ceil(span.low / step - 1e-9), last = std::floor(span.high / step + 1e-9);
  for (double i = first; i <= last && ticks.size() < 100; ++i) {
    const double value = i * step;
    std::string label = tick_label(value, unit, decimals);
    if (scientific && value != 0) label = tick_label(i * factor, 1, 0) + "×10" + superscript(exponent);
    ticks.push_back({value, label});
  }
  return ticks;
}

// Powers of ten, or 1-2-5 where there are few of them; the multiples between them without a label.
std::vector<Tick> log_ticks(Span span, int count) {
  const int first = static_cast<int>(std::floor(std::log10(span.low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(span.high) - 1e-9));
  const double decades = std::log10(span.high / span.low);
  if (decades < 0.8) return linear_ticks(span, count, false);
  const bool plain = first >= -4 && last <= 4;
  const bool halves = decades * 3 <= count && plain;
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / count)));
  std::vector<Tick> ticks;
  for (int exponent = first; exponent <= last; ++exponent) {
    for (int factor = 1; factor < 10; ++factor) {
      const double value = factor * power_of_ten(exponent);
      if (value < span.low * (1 - 1e-9) || value > span.high * (1 + 1e-9)) continue;
      const bool labelled = factor == 1 ? exponent % stride == 0 : halves && (factor == 2 || factor == 5);
      if (factor > 1 && stride > 1) continue;
      std::string label;
      if (labelled) {
        label =
            plain ? tick_label(value, value >= 1e4 ? 1e3 : 1, std::max(0, -exponent)) : "10" + superscript(exponent);
      }
      ticks.push_back({value, label});
    }
  }
  return ticks;
}

// What an axis spans, and where its values lie on the page.
class Scale {
 public:
  Scale() = default;
  Scale(Span span, bool logarithmic, double from, double to)
      : span_(span), logarithmic_(logarithmic), from_(from), to_(to), low_(raw(span.low)), high_(raw(span.high)) {}

  bool shows(double value) const { return std::isfinite(value) && (!logarithmic_ || value > 0); }
  double at(double value) const { return from_ + (raw(value) - low_) / (high_ - low_) * (to_ - from_); }
  const Span& span() const { return span_; }
  bool logarithmic() const { return logarithmic_; }

 private:
  double raw(double value) const { return logarithmic_ ? std::log10(value) : value; }

  Span span_;
  bool logarithmic_ = false;
  double from_ = 0, to_ = 1, low_ = 0, high_ = 1;
};

// The data's span with a margin, or something to look at where it is empty or one value.
Span padded(Span data, bool logarithmic, double margin) {
  if (data.empty()) data = logarithmic ? Span{1, 10} : Span{0, 1};
  if (logarithmic) {
    if (data.low == data.high) return {data.low / 2, data.high * 2};
    const double extra = std::pow(data.high / data.low, margin);
    return {data.low / extra, data.high * extra};
  }
  if (data.low == data.high) {
    const double half = data.low == 0 ? 1 : std::fabs(data.low) / 2;
    return {data.low - half, data.high + half};
  }
  const double extra = (data.high - data.low) * margin;
  // A span that nearly touches zero is better read from zero.
  const bool from_zero = data.low >= 0 && data.low < 0.2 * data.high && margin > 0;
  return {from_zero ? 0 : data.low - extra, data.high + extra};
}

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

// A circle, a square, a diamond or a triangle: a second help, beside the colour, to tell curves apart.
std::string marker(Point at, size_t shape) {
  const std::string start = "M" + pixels(at.x) + "," + pixels(at.y);
  switch (shape % 4) {
    case 0: return start + "m-3,0a3,3 0 1 0 6,0a3,3 0 1 0 -6,0z";
    case 1: return start + "m-2.7,-2.7h5.4v5.4h-5.4z";
    case 2: return start + "m0,-3.8l3.8,3.8l-3.8,3.8l-3.8,-3.8z";
    default: return start + "m0,-3.6l3.6,6.2h-7.2z";
  }
}

// The beginnings of a curve's <path> and of its marks', up to the path itself.
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

// The colour at `part` of the way along the bar, as XML has it.
std::string color_at(ColorMap map, double part) {
  const ColorRamp& ramp = map == ColorMap::Sequential ? SEQUENTIAL : DIVERGING;
  const double place = std::clamp(part, 0.0, 1.0) * double(ramp.size() - 1);
  const size_t left = std::min(static_cast<size_t>(place), ramp.size() - 2);
  const auto channel = [&](int shift) {
    const int from = ramp[left] >> shift & 0xFF, to = ramp[left + 1] >> shift & 0xFF;
    return static_cast<int>(std::lround(from + (to - from) * (place - double(left))));
  };
  return text("#%02X%02X%02X", channel(16), channel(8), channel(0));
}

std::string style_sheet() {
  const auto size = [](double points) { return pixels(points) + "px"; };
  return "<style>\ntext{font:" + size(SMALL) +
         " system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#333333}\n.label{font-size:" +
         size(MEDIUM) + "}.panel{font-size:" + size(MEDIUM + 1) + ";font-weight:600}\n.title{font-size:" + size(LARGE) +
         ";font-weight:600}.caption{fill:#666666}\n"
         ".grid line{stroke:#E6E6E6;stroke-width:1}.axis line{stroke:#333333;stroke-width:1}\n"
         ".line{fill:none;stroke-linejoin:round;stroke-linecap:round}.mark{stroke:#FFFFFF;stroke-width:0.8}\n</"
         "style>\n";
}

// Means of neighbouring cells, so that no side has more than MOST_CELLS.
std::vector<double> reduced(const std::vector<double>& values, size_t& rows, size_t& columns) {
  const size_t high = (rows + MOST_CELLS - 1) / MOST_CELLS, wide = (columns + MOST_CELLS - 1) / MOST_CELLS;
  if (high <= 1 && wide <= 1) return values;
  const size_t out_rows = (rows + high - 1) / high, out_columns = (columns + wide - 1) / wide;
  std::vector<double> sums(out_rows * out_columns, 0), counts(sums.size(), 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t cell = i / columns / high * out_columns + i % columns / wide;
    if (!std::isfinite(values[i])) continue;
    sums[cell] += values[i];
    counts[cell] += 1;
  }
  for (size_t i = 0; i < sums.size(); ++i) sums[i] /= counts[i];  // 0/0 is NaN: a missing cell
  rows = out_rows;
  columns = out_columns;
  return sums;
}

}  // namespace

Panel& Panel::x(const std::string& label) {
  x_.label = label;
  return *this;
}

Panel& Panel::y(const std::string& label) {
  y_.label = label;
  return *this;
}

Panel& Panel::log_x() {
  x_.logarithmic = true;
  return *this;
}

Panel& Panel::log_y() {
  y_.logarithmic = true;
  return *this;
}

void Panel::Axis::fix(double from, double to) {
  if (!(from < to) || !std::isfinite(from) || !std::isfinite(to)) {
    throw Error("figure: an axis cannot span " + number_text(from, 9) + " to " + number_text(to, 9));
  }
  fixed = true;
  low = from;
  high = to;
}

Panel& Panel::x_range(double low, double high) {
  x_.fix(low, high);
  return *this;
}

Panel& Panel::y_range(double low, double high) {
  y_.fix(low, high);
  return *this;
}

Panel& Panel::color_range(double low, double high) {
  color_.fix(low, high);
  return *this;
}

Panel& Panel::x_names(const std::vector<std::string>& names) {
  x_.names = names;
  return *this;
}

Panel& Panel::y_names(const std::vector<std::string>& names) {
  y_.names = names;
  return *this;
}

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

Panel& Panel::heatmap(size_t rows, size_t columns, const std::vector<double>& values, const std::string& label,
                      ColorMap map) {
  if (rows == 0 || columns == 0 || values.size() != rows * columns) {
    throw Error("figure: a heat map of " + std::to_string(rows) + "×" + std::to_string(columns) + " cells got " +
                std::to_string(values.size()) + " values");
  }
  map_ = HeatMap{rows, columns, values, label, map};
  color_.label = label;
  return *this;
}

// Draws one panel. The origin is the upper left corner of the area inside the axes.
class PanelPainter {
 public:
  PanelPainter(const Panel& panel, double width, double height);

  double left() const { return y_label_at() + (panel_.y_.label.empty() ? 4 : MEDIUM + 6); }
  double right() const { return panel_.map_ ? color_label_at() + (panel_.color_.label.empty() ? 4 : MEDIUM + 6) : 16; }
  double top() const { return panel_.title_.empty() ? 10 : 28; }
  double bottom() const { return panel_.x_.label.empty() ? 24 : 44; }

  std::string paint(double x, double y, int number);

 private:
  static constexpr double BAR_GAP = 12, BAR_WIDTH = 12;

  Scale scale_of(const Panel::Axis& axis, Span data, double margin, double from, double to) const;
  std::vector<Tick> ticks_of(const Panel::Axis& axis, const Scale& scale, double room) const;
  std::vector<Point> points_of(const Panel::Line& line) const;
  const std::vector<Point>& curve_of(const Panel::Line& line) const {
    return curves_[size_t(&line - panel_.lines_.data())];
  }
  double widest(const std::vector<Tick>& ticks) const;
  double y_label_at() const { return widest(y_ticks_) + TICK_LENGTH + 14; }
  double color_label_at() const { return BAR_GAP + BAR_WIDTH + TICK_LENGTH + widest(color_ticks_) + 18; }

  void paint_grid();
  void paint_axes();
  void paint_map();
  void paint_color_bar(int number);
  void paint_line(const Panel::Line& line);
  void paint_markers(const Panel::Line& line);
  void paint_legend();
  double covered(Point corner, double width, double height) const;
  Point legend_place(double width, double height) const;

  const Panel& panel_;
  double width_, height_;
  Scale x_, y_, color_;
  std::vector<Tick> x_ticks_, y_ticks_, color_ticks_;
  std::vector<std::vector<Point>> curves_;  // thinned, one for each line of the panel
  std::string out_;
};

PanelPainter::PanelPainter(const Panel& panel, double width, double height)
    : panel_(panel), width_(width), height_(height) {
  Span xs, ys, colors;
  for (const Panel::Line& line : panel.lines_) {
    for (size_t i = 0; i < line.xs.size(); ++i) {
      const double x = line.xs[i], y = line.ys[i];
      if (!std::isfinite(x) || !std::isfinite(y)) continue;
      if ((panel.x_.logarithmic && x <= 0) || (panel.y_.logarithmic && y <= 0)) continue;
      xs.include(x);
      ys.include(y);
    }
  }
  double margin = 0.05;
  if (panel.map_) {
    const Panel::HeatMap& map = *panel.map_;
    xs = {-0.5, double(map.columns) - 0.5};
    ys = {-0.5, double(map.rows) - 0.5};
    margin = 0;
    for (double value : map.values) {
      if (std::isfinite(value)) colors.include(value);
    }
    if (map.map == ColorMap::Diverging && !colors.empty()) {
      const double largest = std::max(std::fabs(colors.low), std::fabs(colors.high));
      colors = {-largest, largest};
    }
    color_ = scale_of(panel.color_, colors, 0, height, 0);
    color_ticks_ = ticks_of(panel.color_, color_, 45);
  }
  x_ = scale_of(panel.x_, xs, margin * 0.4, 0, width);
  y_ = panel.map_ ? scale_of(panel.y_, ys, 0, 0, height) : scale_of(panel.y_, ys, margin, height, 0);
  x_ticks_ = ticks_of(panel.x_, x_, 70);
  y_ticks_ = ticks_of(panel.y_, y_, 45);
  for (const Panel::Line& line : panel.lines_) curves_.push_back(thinned(points_of(line)));
}

Scale PanelPainter::scale_of(const Panel::Axis& axis, Span data, double margin, double from, double to) const {
  const Span span = axis.fixed ? Span{axis.low, axis.high} : padded(data, axis.logarithmic, margin);
  if (axis.logarithmic && span.low <= 0) {
    throw Error("figure: a logarithmic axis cannot begin at " + number_text(span.low, 9));
  }
  return Scale(span, axis.logarithmic, from, to);
}

// `room` is what one label wants, in pixels.
std::vector<Tick> PanelPainter::ticks_of(const Panel::Axis& axis, const Scale& scale, double room) const {
  const double length = std::fabs(scale.at(scale.span().high) - scale.at(scale.span().low));
  const int count = std::max(2, static_cast<int>(length / room));
  if (axis.names.empty()) {
    const bool cells = panel_.map_ && &axis != &panel_.color_ && !axis.fixed;
    return scale.logarithmic() ? log_ticks(scale.span(), count) : linear_ticks(scale.span(), count, cells);
  }
  double widest = SMALL;
  if (&axis == &panel_.x_) {
    for (const std::string& name : axis.names) widest = std::max(widest, width_of(name, SMALL));
  }
  const size_t stride = static_cast<size_t>(std::ceil((widest + 4) * double(axis.names.size()) / length));
  std::vector<Tick> ticks;
  for (size_t i = 0; i < axis.names.size(); i += std::max<size_t>(1, stride)) {
    if (double(i) >= scale.span().low && double(i) <= scale.span().high) ticks.push_back({double(i), axis.names[i]});
  }
  return ticks;
}

std::vector<Point> PanelPainter::points_of(const Panel::Line& line) const {
  constexpr double GAP = std::numeric_limits<double>::quiet_NaN();
  std::vector<Point> points;
  points.reserve(line.xs.size());
  for (size_t i = 0; i < line.xs.size(); ++i) {
    const bool shown = x_.shows(line.xs[i]) && y_.shows(line.ys[i]);
    points.push_back(shown ? Point{x_.at(line.xs[i]), y_.at(line.ys[i])} : Point{GAP, GAP});
  }
  return points;
}

double PanelPainter::widest(const std::vector<Tick>& ticks) const {
  double widest = 0;
  for (const Tick& tick : ticks) widest = std::max(widest, width_of(tick.label, SMALL));
  return widest;
}

std::string PanelPainter::paint(double x, double y, int number) {
  const std::string name = std::to_string(number);
  out_ = "<g transform=\"translate(" + pixels(x) + "," + pixels(y) + ")\">\n";
  out_ += "<clipPath id=\"inside" + name + "\">\n" + rectangle(0, 0, width_, height_, "") + "</clipPath>\n";
  if (!panel_.title_.empty()) out_ += text_element(0, -10, panel_.title_, " class=\"panel\"");
  if (!panel_.map_) paint_grid();
  out_ += "<g clip-path=\"url(#inside" + name + ")\">\n";
  if (panel_.map_) paint_map();
  for (const Panel::Line& line : panel_.lines_) paint_line(line);
  out_ += "</g>\n";
  paint_axes();
  for (const Panel::Line& line : panel_.lines_) paint_markers(line);
  if (panel_.map_) paint_color_bar(number);
  paint_legend();
  return out_ + "</g>\n";
}

void PanelPainter::paint_grid() {
  out_ += "<g class=\"grid\">\n";
  for (const Tick& tick : x_ticks_) {
    if (!tick.label.empty()) out_ += line_element(x_.at(tick.value), 0, x_.at(tick.value), height_);
  }
  for (const Tick& tick : y_ticks_) {
    if (!tick.label.empty()) out_ += line_element(0, y_.at(tick.value), width_, y_.at(tick.value));
  }
  out_ += "</g>\n";
}

void PanelPainter::paint_axes() {
  std::string labels;
  out_ += "<g class=\"axis\">\n" + line_element(0, height_, width_, height_) + line_element(0, 0, 0, height_);
  for (const Tick& tick : x_ticks_) {
    const double at = x_.at(tick.value), length = tick.label.empty() ? TICK_LENGTH / 2 : TICK_LENGTH;
    out_ += line_element(at, height_, at, height_ + length);
    if (!tick.label.empty()) labels += text_element(at, height_ + 17, tick.label, " text-anchor=\"middle\"");
  }
  for (const Tick& tick : y_ticks_) {
    const double at = y_.at(tick.value), length = tick.label.empty() ? TICK_LENGTH / 2 : TICK_LENGTH;
    out_ += line_element(-length, at, 0, at);
    if (!tick.label.empty()) labels += text_element(-TICK_LENGTH - 4, at + 4, tick.label, " text-anchor=\"end\"");
  }
  out_ += "</g>\n" + labels;
  const std::string label = " class=\"label\" text-anchor=\"middle\"";
  if (!panel_.x_.label.empty()) out_ += text_element(width_ / 2, height_ + 36, panel_.x_.label, label);
  if (!panel_.y_.label.empty()) {
    const std::string place = "translate(" + pixels(-y_label_at()) + "," + pixels(height_ / 2) + ") rotate(-90)";
    out_ += text_element(0, 0, panel_.y_.label, label + " transform=\"" + place + "\"");
  }
}

// One path for each colour, in units of cells; a run of equal cells in a row is one line as thick as the row.
void PanelPainter::paint_map() {
  const Panel::HeatMap& map = *panel_.map_;
  size_t rows = map.rows, columns = map.columns;
  const std::vector<double> values = reduced(map.values, rows, columns);
  const Span span = color_.span();
  const auto level = [&](size_t cell) {
    if (!std::isfinite(values[cell])) return LEVELS;
    const double part = (values[cell] - span.low) / (span.high - span.low);
    return static_cast<int>(std::lround(std::clamp(part, 0.0, 1.0) * (LEVELS - 1)));
  };
  std::vector<std::string> paths(LEVELS + 1);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0, end; column < columns; column = end) {
      const int color = level(row * columns + column);
      for (end = column + 1; end < columns && level(row * columns + end) == color;) ++end;
      const std::string run = std::to_string(end - column);
      paths[size_t(color)] += "M" + std::to_string(column) + "," + std::to_string(row) + "h" + run;
    }
  }
  out_ += "<g fill=\"none\" shape-rendering=\"crispEdges\" transform=\"scale(" +
          number_text(width_ / double(columns), 9) + "," + number_text(height_ / double(rows), 9) +
          ") translate(0,0.5)\">\n";
  for (size_t i = 0; i < paths.size(); ++i) {
    const std::string color = i < LEVELS ? color_at(map.map, double(i) / (LEVELS - 1)) : MISSING;
    if (!paths[i].empty()) out_ += "<path stroke=\"" + color + "\" d=\"" + paths[i] + "\"/>\n";
  }
  out_ += "</g>\n";
}

void PanelPainter::paint_color_bar(int number) {
  const std::string name = "bar" + std::to_string(number);
  constexpr int STOPS = 8;  // the ramp's own colours
  out_ += "<linearGradient id=\"" + name + "\" x1=\"0\" y1=\"1\" x2=\"0\" y2=\"0\">";
  for (int i = 0; i <= STOPS; ++i) {
    out_ += "<stop offset=\"" + number_text(double(i) / STOPS, 4) + "\" stop-color=\"" +
            color_at(panel_.map_->map, double(i) / STOPS) + "\"/>";
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

// How much of the curves lies in a rectangle: lengths in steps of 4 pixels, a point without a line like three of them.
double PanelPainter::covered(Point corner, double width, double height) const {
  const auto inside = [&](double x, double y) {
    return x > corner.x && x < corner.x + width && y > corner.y && y < corner.y + height;
  };
  double sum = 0;
  for (size_t line = 0; line < curves_.size(); ++line) {
    const std::vector<Point>& curve = curves_[line];
    const LineStyle& style = panel_.lines_[line].style;
    for (size_t i = 0; i < curve.size(); ++i) {
      if (curve[i].gap()) continue;
      if (!style.joined || style.markers) sum += inside(curve[i].x, curve[i].y) ? 3 : 0;
      if (!style.joined || i == 0 || curve[i - 1].gap()) continue;
      const Point &from = curve[i - 1], &to = curve[i];
      const int parts = 1 + static_cast<int>(std::min(std::hypot(to.x - from.x, to.y - from.y), 2000.0) / 4);
      for (int part = 1; part <= parts; ++part) {
        sum += inside(from.x + (to.x - from.x) * part / parts, from.y + (to.y - from.y) * part / parts);
      }
    }
  }
  return sum;
}

// Where the legend hides least; corners first, then what is near the right and the top.
Point PanelPainter::legend_place(double width, double height) const {
  constexpr double GAP = 8;
  constexpr int STEPS = 8;
  Point best = {width_ - width - GAP, GAP};
  double least = std::numeric_limits<double>::infinity();
  for (int row = 0; row <= STEPS; ++row) {
    for (int column = STEPS; column >= 0; --column) {
      const Point place = {GAP + (width_ - width - 2 * GAP) * column / STEPS,
                           GAP + (height_ - height - 2 * GAP) * row / STEPS};
      const bool corner = row % STEPS == 0 && column % STEPS == 0;
      const double cost =
          covered({place.x - GAP / 2, place.y - GAP / 2}, width + GAP, height + GAP) + (corner ? 0 : 0.5);
      if (cost >= least) continue;
      least = cost;
      best = place;
    }
  }
  return best;
}

void PanelPainter::paint_legend() {
  constexpr double ROW = 17, SWATCH = 22, BORDER = 7;
  double words = 0, rows = 0;
  for (const Panel::Line& line : panel_.lines_) {
    if (line.name.empty()) continue;
    words = std::max(words, width_of(line.name, SMALL));
    ++rows;
  }
  if (rows == 0) return;
  const double width = SWATCH + words + 3 * BORDER, height = rows * ROW + BORDER;
  const Point place = legend_place(width, height);
  out_ +=
      rectangle(place.x, place.y, width, height, " rx=\"3\" fill=\"#FFFFFF\" fill-opacity=\"0.85\" stroke=\"#E6E6E6\"");
  const double x = place.x + BORDER;
  double y = place.y + BORDER / 2 + ROW / 2;
  for (const Panel::Line& line : panel_.lines_) {
    if (line.name.empty()) continue;
    if (line.style.joined) {
      out_ += stroke_of(line.style, std::max(line.style.width, 2.0)) + "M" + pixels(x) + "," + pixels(y) + "h" +
              pixels(SWATCH) + "\"/>\n";
    }
    if (line.style.markers || !line.style.joined) {
      out_ += fill_of(line.style) + marker({x + SWATCH / 2, y}, size_t(line.style.color)) + "\"/>\n";
    }
    out_ += text_element(x + SWATCH + BORDER, y + 4, line.name, "");
    y += ROW;
  }
}

Figure::Figure(std::string title) : title_(std::move(title)) {}

Panel& Figure::panel(const std::string& title) {
  panels_.emplace_back();
  panels_.back().title_ = title;
  return panels_.back();
}

Figure& Figure::columns(int count) {
  columns_ = std::max(1, count);
  return *this;
}

Figure& Figure::panel_size(double width, double height) {
  width_ = width;
  height_ = height;
  return *this;
}

Figure& Figure::caption(const std::string& words) {
  caption_ = words;
  return *this;
}

std::string Figure::svg() const {
  std::vector<PanelPainter> painters;
  for (const Panel& panel : panels_) painters.emplace_back(panel, width_, height_);
  const size_t most = columns_ > 0 ? size_t(columns_) : painters.size() == 4 ? 2 : 3;
  const size_t columns = std::max<size_t>(1, std::min(most, painters.size()));
  const size_t rows = (painters.size() + columns - 1) / columns;
  // The margins of a column are those of its widest panel, of a row those of its highest, so that axes stand in line.
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
  double y = title_.empty() ? MARGIN : MARGIN + LARGE + 10, width = width_of(title_, LARGE) + 2 * MARGIN;
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
         " viewBox=\"0 0 " + pixels(width) + " " + pixels(height) + "\">\n<title>" + escaped(title_) + "</title>\n" +
         style_sheet() + rectangle(0, 0, width, height, " fill=\"#FFFFFF\"") + body + "</svg>\n";
}

void Figure::save(const std::string& path) const { write_file_atomically(path, svg()); }

}  // namespace petroglyph
