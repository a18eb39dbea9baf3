// Classification of images of 32 × 32 pixels, split into the 2 × 2 patches that image models read.
//
// A patch is 12 numbers: its pixels row by row, with red, green and blue of each, normalized as (value/255 −
// mean)/std of the channel. The 256 patches are also in row order. The whole preprocessing, including mean and std,
// is that of the authors' code (see images.cpp).
#pragma once

#include <array>

#include "tasks/task.h"

namespace petroglyph {

struct Picture {
  static constexpr int SIDE = 32, CHANNELS = 3;
  int label = 0;
  std::array<uint8_t, SIDE * SIDE * CHANNELS> rgb{};  // row by row; red, green and blue of a pixel side by side

  uint8_t& at(int row, int column, int channel) { return rgb[index(row, column, channel)]; }
  uint8_t at(int row, int column, int channel) const { return rgb[index(row, column, channel)]; }

 private:
  static size_t index(int row, int column, int channel) {
    return static_cast<size_t>((row * SIDE + column) * CHANNELS + channel);
  }
};

class Images : public Task {
 public:
  static constexpr int PATCH_SIDE = 2, PATCHES_A_SIDE = Picture::SIDE / PATCH_SIDE;
  static constexpr int PATCHES = PATCHES_A_SIDE * PATCHES_A_SIDE;
  static constexpr int PATCH_SIZE = PATCH_SIDE * PATCH_SIDE * Picture::CHANNELS;

  explicit Images(std::vector<std::string> class_names) : class_names_(std::move(class_names)) {}

  const std::vector<std::string>& class_names() const { return class_names_; }
  int classes() const { return static_cast<int>(class_names_.size()); }

  // The picture `index` of a step: a deterministic function of these four arguments.
  virtual Picture picture(uint64_t seed, uint32_t stream, uint32_t step, int index) const = 0;
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const final;
  double chance() const final { return 1.0 / classes(); }

 private:
  std::vector<std::string> class_names_;
};

// The input of a model for a picture: PATCHES × PATCH_SIZE numbers.
void write_patches(const Picture& picture, real* patches);

// Random augmentation of a training image, with new random values for each use.
struct Augmentation {
  bool flip = false;  // mirrored left to right with probability 1/2
  int crop = 0;       // shifted by up to this many pixels in both directions; new pixels are black

  Picture apply(const Picture& picture, uint64_t seed, uint32_t step, int index) const;
};

}  // namespace petroglyph
