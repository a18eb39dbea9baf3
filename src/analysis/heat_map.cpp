#include "analysis/heat_map.h"

#include <algorithm>
#include <numeric>

namespace petroglyph {

namespace {

constexpr Rgb WHITE{255, 255, 255}, INK{40, 40, 40}, WRONG{200, 30, 30};
constexpr int TILE = 96, GAP = 8, TITLE = 16, CAPTION = 2 * (Canvas::LETTER_HEIGHT + 3);
constexpr int PIXEL = TILE / Picture::SIDE, CELL = TILE / Images::PATCHES_A_SIDE;
constexpr int MOST_COLUMNS = 2;  // columns of pictures with their maps

void draw_picture(Canvas& canvas, int x, int y, const Picture& picture) {
  canvas.cells(x, y, Picture::SIDE, Picture::SIDE, PIXEL, [&](int column, int row) {
    return Rgb{picture.at(row, column, 0), picture.at(row, column, 1), picture.at(row, column, 2)};
  });
}

void draw_map(Canvas& canvas, int x, int y, const std::vector<double>& map) {
  const auto [low, high] = std::minmax_element(map.begin(), map.end());
  const double from = *low, range = *high > *low ? *high - *low : 1;
  canvas.cells(x, y, Images::PATCHES_A_SIDE, Images::PATCHES_A_SIDE, CELL, [&](int column, int row) {
    return heat_color((map[static_cast<size_t>(row * Images::PATCHES_A_SIDE + column)] - from) / range);
  });
}

// The width of a picture with its captions, wide enough for whole captions.
int caption_width(const std::vector<std::string>& names, const std::string& before) {
  size_t longest = 0;
  for (const std::string& name : names) longest = std::max(longest, before.size() + name.size());
  return static_cast<int>(longest) * Canvas::LETTER_WIDTH;
}

// The legend: the meaning of the maps' colours.
void draw_color_bar(Canvas& canvas, int y) {
  constexpr int HEIGHT = Canvas::LETTER_HEIGHT;
  const std::string least = "least", most = "most of each map";
  int x = GAP;
  canvas.write(x, y, least, INK);
  x += static_cast<int>(least.size() + 1) * Canvas::LETTER_WIDTH;
  for (int i = 0; i < TILE; ++i) canvas.fill(x + i, y, 1, HEIGHT, heat_color(double(i) / (TILE - 1)));
  canvas.write(x + TILE + Canvas::LETTER_WIDTH, y, most, INK);
}

}  // namespace

std::vector<double> heat_map(Model& model, size_t block, int sample) {
  const std::vector<real> maps = model.attention_map(block, sample);
  constexpr size_t T = Images::PATCHES + 1;
  std::vector<double> heat(Images::PATCHES);
  for (size_t row = T - 1; row < maps.size() / T; row += T)  // the row of the last position, in each map
    for (size_t i = 0; i < heat.size(); ++i) heat[i] += static_cast<double>(maps[row * T + i]);
  const double total = std::accumulate(heat.begin(), heat.end(), 0.0);
  for (double& h : heat) h /= total;
  return heat;
}

std::vector<size_t> blocks_to_show(int layers) {
  std::vector<size_t> blocks;
  for (int quarter = 1; quarter <= 4; ++quarter) {
    const int block = (quarter * layers + 3) / 4 - 1;
    if (blocks.empty() || static_cast<size_t>(block) != blocks.back()) blocks.push_back(static_cast<size_t>(block));
  }
  return blocks;
}

namespace {

const char* const SAID = "said ";

// The layout of a sheet.
struct Sheet {
  int count, across, maps;
  int first;  // the width of a picture with its captions

  int group() const { return first + GAP + maps * (TILE + GAP) + GAP; }
  int row() const { return TILE + CAPTION + GAP; }
  int width() const { return across * group(); }
  int bar() const { return TITLE + GAP + (count + across - 1) / across * row(); }
  int height() const { return bar() + Canvas::LETTER_HEIGHT + GAP; }
  int x(int n) const { return n % across * group() + GAP; }
  int y(int n) const { return TITLE + GAP + n / across * row(); }
  int map_x(int n, size_t map) const { return x(n) + first + GAP + static_cast<int>(map) * (TILE + GAP); }
};

}  // namespace

Canvas heat_map_sheet(Model& model, Ops& ops, const std::vector<std::string>& picture_classes,
                      const std::vector<std::string>& model_classes, const std::vector<Picture>& pictures,
                      const std::vector<size_t>& blocks) {
  const int count = static_cast<int>(pictures.size());
  const int first = std::max({TILE, caption_width(picture_classes, ""), caption_width(model_classes, SAID)});
  const Sheet sheet{count, std::min(count, MOST_COLUMNS), static_cast<int>(blocks.size()), first};
  Canvas canvas(sheet.width(), sheet.height(), WHITE);
  for (int column = 0; column < sheet.across; ++column)
    for (size_t m = 0; m < blocks.size(); ++m)
      canvas.write(sheet.map_x(column, m), GAP, "layer " + std::to_string(blocks[m] + 1), INK);
  Tensor patches(ops, {Images::PATCHES, Images::PATCH_SIZE});
  Tokens best(ops, {1});
  std::vector<real> numbers(static_cast<size_t>(patches.size()));
  for (int n = 0; n < count; ++n) {
    const Picture& picture = pictures[static_cast<size_t>(n)];
    write_patches(picture, numbers.data());
    patches.upload(numbers);
    const real* logits = model.forward({nullptr, 1, Images::PATCHES, patches.data()});
    ops.argmax(best.data(), logits, 1, model.classes());
    const int answer = best.download()[0], x = sheet.x(n), y = sheet.y(n);
    draw_picture(canvas, x, y, picture);
    for (size_t m = 0; m < blocks.size(); ++m) draw_map(canvas, sheet.map_x(n, m), y, heat_map(model, blocks[m], 0));
    canvas.write(x, y + TILE + 3, picture_classes.at(static_cast<size_t>(picture.label)), INK);
    if (model_classes.empty()) continue;
    canvas.write(x, y + TILE + 6 + Canvas::LETTER_HEIGHT, SAID + model_classes.at(static_cast<size_t>(answer)),
                 answer == picture.label ? INK : WRONG);
  }
  draw_color_bar(canvas, sheet.bar());
  return canvas;
}

}  // namespace petroglyph
