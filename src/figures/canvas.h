// A bitmap canvas: coloured squares, images magnified to visible pixels, and small text.
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

  // Parts outside the canvas are not drawn.
  void fill(int x, int y, int width, int height, Rgb color);
  // `columns` × `rows` cells of `scale` × `scale` pixels; color(column, row) gives the colour of a cell.
  void cells(int x, int y, int columns, int rows, int scale, const std::function<Rgb(int, int)>& color);
  // Draws capital letters, digits and common punctuation; any other character is a blank.
  void write(int x, int y, const std::string& words, Rgb color);

  std::string as_png() const;
  void save_png(const std::string& path) const;

 private:
  int width_, height_;
  std::vector<uint8_t> rgb_;
};

// A colour from black over red and yellow to white, for a value from 0 to 1.
Rgb heat_color(double value);

}  // namespace petroglyph
