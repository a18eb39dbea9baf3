// A picture to draw into: squares of colour, pictures magnified so that each pixel is seen, small words.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace petroglyph {

struct Rgb {
  uint8_t red, green, blue;
};

class Canvas {
 public:
  static constexpr int LETTER_WIDTH = 8, LETTER_HEIGHT = 10;

  Canvas(int width, int height, Rgb background);

  int width() const { return width_; }
  int height() const { return height_; }
  Rgb at(int x, int y) const;

  // What lies outside the canvas is left out.
  void fill(int x, int y, int width, int height, Rgb color);
  // `columns` × `rows` cells of `scale` pixels a side; color(column, row) is a cell's.
  void cells(int x, int y, int columns, int rows, int scale, const std::function<Rgb(int, int)>& color);
  // Letters, which are all capitals, digits and the usual marks; another character is a gap.
  void write(int x, int y, const std::string& words, Rgb color);

  std::string as_png() const;
  void save_png(const std::string& path) const;

 private:
  int width_, height_;
  std::vector<uint8_t> rgb_;
};

// From black through red and yellow to white, for 0 to 1.
Rgb heat_color(double value);

}  // namespace petroglyph
