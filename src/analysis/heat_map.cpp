#include "analysis/heat_map.h"

#include <algorithm>
#include <numeric>

#include "figures/figure.h"
#include "figures/svg.h"

namespace petroglyph {

namespace {

constexpr double TILE = 96, GAP = 8, LINE = 14;  // pixels of a picture, between two, and of a line of text
constexpr size_t ACROSS = 2;                     // pictures side by side, each with its maps
constexpr const char* WRONG = " style=\"fill:#C81E1E\"";

std::string draw_picture(Point corner, const Picture& picture) {
  return cells(corner, TILE, TILE, Picture::SIDE, Picture::SIDE, [&](size_t column, size_t row) {
    const auto channel = [&](int c) { return picture.at(static_cast<int>(row), static_cast<int>(column), c); };
    return (channel(0) << 16 | channel(1) << 8 | channel(2)) & 0xF8F8F8;  // a smaller file
  });
}

int bright(double part) { return color_at(ColorMap::Sequential, 1 - part); }

std::string draw_map(Point corner, const std::vector<double>& map) {
  constexpr size_t SIDE = Images::PATCHES_A_SIDE;
  const auto [low, high] = std::minmax_element(map.begin(), map.end());
  const double from = *low, range = *high > *low ? *high - *low : 1;
  return cells(corner, TILE, TILE, SIDE, SIDE,
               [&](size_t column, size_t row) { return bright((map[row * SIDE + column] - from) / range); });
}

// The meaning of the maps' colours.
std::string draw_color_bar(double y) {
  constexpr size_t STEPS = 32;
  const double left = GAP + width_of("least ", SMALL);
  return text_element(GAP, y + LINE - 4, "least", "") +
         cells({left, y}, TILE, LINE, STEPS, 1, [](size_t i, size_t) { return bright(double(i) / (STEPS - 1)); }) +
         text_element(left + TILE + GAP, y + LINE - 4, "most of each map", "");
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

std::string heat_map_sheet(Model& model, Ops& ops, const std::vector<std::string>& picture_classes,
                           const std::vector<std::string>& model_classes, const std::vector<Picture>& pictures,
                           const std::vector<size_t>& blocks) {
  const std::string said = "said ";
  double first = TILE;  // the width of a picture with its captions
  for (const std::string& name : picture_classes) first = std::max(first, width_of(name, SMALL));
  for (const std::string& name : model_classes) first = std::max(first, width_of(said + name, SMALL));
  const double group = first + 2 * GAP + double(blocks.size()) * (TILE + GAP), row = TILE + 2 * LINE + GAP;
  const auto map_x = [&](double x, size_t map) { return x + first + GAP + double(map) * (TILE + GAP); };
  const size_t across = std::min(ACROSS, pictures.size());
  std::string body;
  for (size_t column = 0; column < across; ++column)
    for (size_t m = 0; m < blocks.size(); ++m)
      body += text_element(map_x(GAP + double(column) * group, m), LINE, "layer " + std::to_string(blocks[m] + 1), "");
  Tensor patches(ops, {Images::PATCHES, Images::PATCH_SIZE});
  Tokens best(ops, {1});
  std::vector<real> numbers(static_cast<size_t>(patches.size()));
  double y = LINE + GAP;
  for (size_t n = 0; n < pictures.size(); ++n) {
    const Picture& picture = pictures[n];
    write_patches(picture, numbers.data());
    patches.upload(numbers);
    const real* logits = model.forward({nullptr, 1, Images::PATCHES, patches.data()});
    ops.argmax(best.data(), logits, 1, model.classes());
    const int answer = best.download()[0];
    const double x = GAP + double(n % across) * group;
    body += draw_picture({x, y}, picture);
    for (size_t m = 0; m < blocks.size(); ++m) body += draw_map({map_x(x, m), y}, heat_map(model, blocks[m], 0));
    body += text_element(x, y + TILE + LINE, picture_classes.at(static_cast<size_t>(picture.label)), "");
    if (!model_classes.empty())
      body += text_element(x, y + TILE + 2 * LINE, said + model_classes.at(static_cast<size_t>(answer)),
                           answer == picture.label ? "" : WRONG);
    if ((n + 1) % across == 0 || n + 1 == pictures.size()) y += row;
  }
  return svg_file("Heat maps", double(across) * group, y + LINE + GAP, body + draw_color_bar(y));
}

}  // namespace petroglyph
