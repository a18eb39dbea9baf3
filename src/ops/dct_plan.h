// What the heads of a sliding cosine transform look like, and their tables of cosines and sines, on a device.
#pragma once

#include <vector>

#include "ops/ops.h"
#include "ops/tensor.h"

namespace petroglyph {

class DctPlan {
 public:
  DctPlan() = default;
  // windows t, frequencies k ≤ t of each head; head_width channels each; longest: the positions of the longest sequence
  DctPlan(Memory& memory, const std::vector<int64_t>& windows, const std::vector<int64_t>& frequencies, int head_width,
          int longest);

  // `positions` of each of the batch's sequences, after `before` others.
  DctShape shape(int batch, int positions, int before = 0) const;
  int longest() const { return longest_; }

 private:
  Array<DctHead> heads_;
  Tensor waves_;
  DctShape shape_{};
  int longest_ = 0;
};

}  // namespace petroglyph
