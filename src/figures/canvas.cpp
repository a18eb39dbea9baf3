#include "figures/canvas.h"

#include <algorithm>
#include <cmath>

#include "base/atomic_file.h"
#include "figures/png.h"

namespace petroglyph {

namespace {

constexpr int GLYPH_WIDTH = 3, GLYPH_HEIGHT = 5, MAGNIFIED = 2;
static_assert(Canvas::LETTER_WIDTH == (GLYPH_WIDTH + 1) * MAGNIFIED);
static_assert(Canvas::LETTER_HEIGHT == GLYPH_HEIGHT * MAGNIFIED);

// A glyph has five rows of three dots; each octal digit is one row, from the top.
constexpr int LETTERS[26] = {025755, 065656, 034443, 065556, 074647, 074644, 034553, 055755, 072227,
                             011152, 055655, 044447, 057755, 065555, 025552, 065644, 025563, 065655,
                             034216, 072222, 055557, 055552, 055775, 055255, 055222, 071247};
constexpr int DIGITS[10] = {075557, 026227, 061247, 061216, 055711, 074616, 034652, 071222, 025252, 025316};

int glyph(char c) {
  if (c >= 'a' && c <= 'z') return LETTERS[c - 'a'];
  if (c >= 'A' && c <= 'Z') return LETTERS[c - 'A'];
  if (c >= '0' && c <= '9') return DIGITS[c - '0'];
  switch (c) {
    case '.': return 000002;
    case ',': return 000024;
    case ':': return 002020;
    case '-': return 000700;
    case '/': return 011244;
    case '%': return 051245;
    case '(': return 012221;
    case ')': return 042224;
    case '?': return 071202;
    default: return 0;
  }
}

}  // namespace

Canvas::Canvas(int width, int height, Rgb background)
    : width_(width), height_(height), rgb_(static_cast<size_t>(width) * static_cast<size_t>(height) * 3) {
  fill(0, 0, width, height, background);
}

Rgb Canvas::at(int x, int y) const {
  const uint8_t* pixel = &rgb_[(static_cast<size_t>(y) * static_cast<size_t>(width_) + static_cast<size_t>(x)) * 3];
  return {pixel[0], pixel[1], pixel[2]};
}

void Canvas::fill(int x, int y, int width, int height, Rgb color) {
  for (int row = std::max(y, 0); row < std::min(y + height, height_); ++row)
    for (int column = std::max(x, 0); column < std::min(x + width, width_); ++column) {
      uint8_t* pixel =
          &rgb_[(static_cast<size_t>(row) * static_cast<size_t>(width_) + static_cast<size_t>(column)) * 3];
      pixel[0] = color.red;
      pixel[1] = color.green;
      pixel[2] = color.blue;
    }
}

void Canvas::cells(int x, int y, int columns, int rows, int scale, const std::function<Rgb(int, int)>& color) {
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      fill(x + column * scale, y + row * scale, scale, scale, color(column, row));
}

void Canvas::write(int x, int y, const std::string& words, Rgb color) {
  for (const char c : words) {
    for (int dot = 0; dot < GLYPH_WIDTH * GLYPH_HEIGHT; ++dot)
      if (glyph(c) >> (GLYPH_WIDTH * GLYPH_HEIGHT - 1 - dot) & 1)
        fill(x + dot % GLYPH_WIDTH * MAGNIFIED, y + dot / GLYPH_WIDTH * MAGNIFIED, MAGNIFIED, MAGNIFIED, color);
    x += LETTER_WIDTH;
  }
}

std::string Canvas::as_png() const { return png(width_, height_, rgb_); }

void Canvas::save_png(const std::string& path) const { write_file_atomically(path, as_png()); }

Rgb heat_color(double value) {
  const auto part = [&](int third) {
    return static_cast<uint8_t>(std::lround(255 * std::clamp(3 * value - third, 0.0, 1.0)));
  };
  return {part(0), part(1), part(2)};
}

}  // namespace petroglyph
