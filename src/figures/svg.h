// The elements of an SVG file as text: numbers formatted identically on every machine, and text escaped for XML.
#pragma once

#include <cmath>
#include <functional>
#include <string>

namespace petroglyph {

constexpr double SMALL = 11, MEDIUM = 12, LARGE = 15;  // sizes of letters, in pixels

struct Point {
  double x, y;  // NaN: a gap
  bool gap() const { return std::isnan(x); }
};

// A coordinate in hundredths of a pixel: precise enough, and identical on every machine.
std::string pixels(double value);
std::string attribute(const char* name, double value);
// The approximate width of the text; the font of the viewer is unknown.
double width_of(const std::string& words, double size);
std::string text_element(double x, double y, const std::string& words, const std::string& attributes);
std::string line_element(double x1, double y1, double x2, double y2);
std::string rectangle(double x, double y, double width, double height, const std::string& attributes);
// Columns × rows of coloured cells that fill a rectangle: the cells of a heat map, the pixels of a picture.
// color(column, row): 0xRRGGBB.
std::string cells(Point corner, double width, double height, size_t columns, size_t rows,
                  const std::function<int(size_t, size_t)>& color);
// The whole file.
std::string svg_file(const std::string& title, double width, double height, const std::string& body);

}  // namespace petroglyph
