// Formats numbers in hundredths of a pixel and escapes text as XML requires.
#include "figures/svg.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/text.h"

namespace petroglyph {

namespace {

size_t letters(const std::string& words) {
  return size_t(std::count_if(words.begin(), words.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

constexpr const char* REACH = ".04";  // the overlap, as a fraction of a cell

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

// One path for each colour, in units of cells. A run of equal cells in a row is one line as thick as the row. Each
// line overlaps the adjacent cells slightly, because otherwise white gaps appear where edges are rounded to pixels.
std::string cells(Point corner, double width, double height, size_t columns, size_t rows,
                  const std::function<int(size_t, size_t)>& color) {
  std::map<int, std::string> paths;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t column = 0, end; column < columns; column = end) {
      const int here = color(column, row);
      for (end = column + 1; end < columns && color(end, row) == here;) ++end;
      paths[here] += text("M%zu,%zuh%zu%s", column, row, end - column, REACH);
    }
  }
  std::string out = "<g fill=\"none\" shape-rendering=\"crispEdges\" transform=\"translate(" + pixels(corner.x) + "," +
                    pixels(corner.y) + ") scale(" + number_text(width / double(columns), 9) + "," +
                    number_text(height / double(rows), 9) + ") translate(0,0.5)\" stroke-width=\"1" + REACH + "\">\n";
  for (const auto& [value, path] : paths) out += text("<path stroke=\"#%06X\" d=\"", value) + path + "\"/>\n";
  return out + "</g>\n";
}

std::string svg_file(const std::string& title, double width, double height, const std::string& body) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\"" + attribute("width", width) + attribute("height", height) +
         " viewBox=\"0 0 " + pixels(width) + " " + pixels(height) + "\">\n<title>" + markup_text(title) + "</title>\n" +
         style_sheet() + rectangle(0, 0, width, height, " fill=\"#FFFFFF\"") + body + "</svg>\n";
}

}  // namespace petroglyph
