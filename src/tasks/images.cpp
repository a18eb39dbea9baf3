#include "tasks/images.h"

#include "math/random.h"

namespace petroglyph {

namespace {

// Mean and standard deviation from the authors' code (github.com/FrankCuiCN/causal-relation-networks,
// src_cifar5m/dataset_all/dataset_cifar5m.py). The means are those of CIFAR-10's channels. The deviations are the mean
// over the images of each image's own deviation; many programs use them with CIFAR-10. The deviation over all pixels of
// all images is 0.247, 0.243, 0.262.
constexpr real MEAN[Picture::CHANNELS] = {real(0.4914), real(0.4822), real(0.4465)};
constexpr real DEVIATION[Picture::CHANNELS] = {real(0.2023), real(0.1994), real(0.2010)};

}  // namespace

void write_patches(const Picture& picture, real* patches) {
  constexpr int SIDE = Images::PATCH_SIDE, ACROSS = Images::PATCHES_A_SIDE;
  for (int row = 0; row < Picture::SIDE; ++row)
    for (int column = 0; column < Picture::SIDE; ++column) {
      const int patch = row / SIDE * ACROSS + column / SIDE;
      const int pixel = row % SIDE * SIDE + column % SIDE;
      real* values = patches + patch * Images::PATCH_SIZE + pixel * Picture::CHANNELS;
      for (int c = 0; c < Picture::CHANNELS; ++c)
        values[c] = (static_cast<real>(picture.at(row, column, c)) / 255 - MEAN[c]) / DEVIATION[c];
    }
}

Batch Images::batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const {
  constexpr size_t NUMBERS = static_cast<size_t>(PATCHES) * PATCH_SIZE;
  Batch batch;
  batch.size = count;
  batch.length = PATCHES;
  batch.patches.resize(static_cast<size_t>(count) * NUMBERS);
  batch.counted = count;
  for (int b = 0; b < count; ++b) {
    const Picture one = picture(seed, stream, step, first + b);
    batch.targets.push_back(one.label);
    write_patches(one, &batch.patches[static_cast<size_t>(b) * NUMBERS]);
  }
  return batch;
}

Picture Augmentation::apply(const Picture& picture, uint64_t seed, uint32_t step, int index) const {
  if (!flip && crop == 0) return picture;
  const Random4 random = philox(seed, stream_of("augmentation"), step, static_cast<uint64_t>(index));
  const bool mirrored = flip && random.word[0] >> 31 != 0;
  const auto shift = [&](uint32_t bits) {
    return static_cast<int>(below(bits, static_cast<uint32_t>(2 * crop + 1))) - crop;
  };
  const int down = shift(random.word[1]), right = shift(random.word[2]);
  Picture result;
  result.label = picture.label;
  for (int row = 0; row < Picture::SIDE; ++row)
    for (int column = 0; column < Picture::SIDE; ++column) {
      const int from_row = row - down, moved = column - right;
      const int from_column = mirrored ? Picture::SIDE - 1 - moved : moved;
      if (from_row < 0 || from_row >= Picture::SIDE || from_column < 0 || from_column >= Picture::SIDE) continue;
      for (int c = 0; c < Picture::CHANNELS; ++c) result.at(row, column, c) = picture.at(from_row, from_column, c);
    }
  return result;
}

}  // namespace petroglyph
