// Formats numbers in hundredths of a pixel and escapes text as XML requires.
#include "figures/svg.h"

#include <algorithm>
#include <cstdlib>

#include "base/text.h"

namespace petroglyph {

namespace {

size_t letters(const std::string& words) {
  return size_t(std::count_if(words.begin(), words.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string pixels(double value) {
  const long long hundredths = std::llround(std::clamp(value, -1e6, 1e6) * 100);
  const long long part = std::llabs(hundredths) % 100;
  std::string out = (hundredths < 0 ? "-" : "") + std::to_string(std::llabs(hundredths) / 100);
  if (part > 0) out += "." + std::to_string(part / 10);
  if (part % 10 > 0) out += std::to_string(part % 10);
  return out;
}

std::string attribute(const char* name, double value) { return std::string(" ") + name + "=\"" + pixels(value) + "\""; }

double width_of(const std::string& words, double size) { return 0.6 * size * double(letters(words)); }

std::string text_element(double x, double y, const std::string& words, const std::string& attributes) {
  return "<text" + attribute("x", x) + attribute("y", y) + attributes + ">" + markup_text(words) + "</text>\n";
}

std::string line_element(double x1, double y1, double x2, double y2) {
  return "<line" + attribute("x1", x1) + attribute("y1", y1) + attribute("x2", x2) + attribute("y2", y2) + "/>\n";
}

std::string rectangle(double x, double y, double width, double height, const std::string& attributes) {
  return "<rect" + attribute("x", x) + attribute("y", y) + attribute("width", width) + attribute("height", height) +
         attributes + "/>\n";
}

}  // namespace petroglyph
