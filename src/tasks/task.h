// What a model learns from: batches that are functions of (seed, step) alone, and a verdict on its answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace petroglyph {

struct Batch {
  int size = 0, length = 0;      // B, T
  std::vector<int32_t> tokens;   // (B,T)
  std::vector<int32_t> targets;  // (B,T); −1 where the position does not count
  int64_t counted = 0;           // targets that do
};

class Task {
 public:
  virtual ~Task() = default;
  virtual int vocab() const = 0;
  virtual int context() const = 0;  // T of every batch
  // The samples first … first+count−1 of a step. Training and evaluation draw from different `stream`s (random.h).
  virtual Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const = 0;
  // The mean over the samples of how right the answers are, 0 to 1. best (B,T): the likeliest token at each position.
  virtual double accuracy(const Batch& batch, const std::vector<int32_t>& best) const = 0;
};

}  // namespace petroglyph
