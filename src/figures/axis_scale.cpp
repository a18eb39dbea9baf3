// Round tick values, computed with powers of ten only, so that every machine draws the same figure.
#include "figures/axis_scale.h"

#include <array>

#include "base/text.h"

namespace petroglyph {

namespace {

double power_of_ten(int exponent) { return *parse_number("1e" + std::to_string(exponent)); }

std::string superscript(int number) {
  constexpr std::array<const char*, 10> DIGITS = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string out = number < 0 ? "⁻" : "";
  for (char digit : std::to_string(std::abs(number))) out += DIGITS[size_t(digit - '0')];
  return out;
}

// 0.50, −3, 20k: `value` in units of `unit`, with a Unicode minus sign.
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

}  // namespace

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
  // A range that nearly touches zero is easier to read if it starts at zero.
  const bool from_zero = data.low >= 0 && data.low < 0.2 * data.high && margin > 0;
  return {from_zero ? 0 : data.low - extra, data.high + extra};
}

std::vector<Tick> linear_ticks(Span span, int count, bool whole) {
  const double width = span.high - span.low;
  int exponent = static_cast<int>(std::floor(std::log10(width / count))) - 1, factor = 1;
  while (exponent < 308 && width > 1.3 * count * factor * power_of_ten(exponent)) {
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

namespace {

// The multiples 1 to 9 of powers of ten that get a label. The first set that gives an axis three labels is used.
const std::vector<std::vector<int>> LABELLED = {{1}, {1, 3}, {1, 2, 5}, {1, 2, 3, 5, 7}, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
constexpr size_t FEWEST_LABELS = 3;

bool inside(Span span, double value) { return value >= span.low * (1 - 1e-9) && value <= span.high * (1 + 1e-9); }

std::string log_label(int factor, int exponent, bool plain) {
  const double value = factor * power_of_ten(exponent);
  if (plain) return tick_label(value, value >= 1e6 ? 1e6 : value >= 1e4 ? 1e3 : 1, std::max(0, -exponent));
  return (factor > 1 ? std::to_string(factor) + "×" : "") + "10" + superscript(exponent);
}

}  // namespace

std::vector<Tick> log_ticks(Span span, int count) {
  const int first = static_cast<int>(std::floor(std::log10(span.low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(span.high) - 1e-9));
  const double decades = std::log10(span.high / span.low);
  if (decades < 0.8) return linear_ticks(span, std::max(static_cast<int>(FEWEST_LABELS), count), false);
  const bool plain = first >= -4 && last <= 7;
  const int stride = std::max(1, static_cast<int>(std::ceil(decades / count)));
  std::vector<Tick> ticks;
  for (const std::vector<int>& labelled : LABELLED) {
    ticks.clear();
    size_t labels = 0;
    for (int exponent = first; exponent <= last; ++exponent) {
      for (int factor = 1; factor < (stride > 1 ? 2 : 10); ++factor) {
        const double value = factor * power_of_ten(exponent);
        if (!inside(span, value)) continue;
        const bool chosen = std::find(labelled.begin(), labelled.end(), factor) != labelled.end();
        const bool shown = chosen && (factor > 1 || exponent % stride == 0);
        ticks.push_back({value, shown ? log_label(factor, exponent, plain) : ""});
        labels += shown;
      }
    }
    if (labels >= FEWEST_LABELS || stride > 1) break;
  }
  return ticks;
}

}  // namespace petroglyph
