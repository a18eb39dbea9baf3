// A task: batches that are functions of (seed, step) alone, and the accuracy of a model's answers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "math/numerics.h"

namespace petroglyph {

struct Batch {
  int size = 0, length = 0;      // B, T
  std::vector<int32_t> tokens;   // (B,T); empty where the model reads patches
  std::vector<real> patches;     // (B,T,P) of images
  std::vector<int32_t> targets;  // one for each row of logits, (B,T) or (B); −1 where it does not count
  std::vector<real>
      sets;             // or, in their place, several yes or no a row: (B,T,V) of 1 and 0; −1 where it does not count
  int64_t counted = 0;  // targets, or entries of sets, that do
};

class Task {
 public:
  virtual ~Task() = default;
  // The samples first … first+count−1 of a step. Training and evaluation draw from different `stream`s (random.h).
  virtual Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const = 0;
  // The different samples that an evaluation can take.
  virtual int64_t evaluation_samples() const { return std::numeric_limits<int64_t>::max(); }
  // The mean over the samples of how right the answers are, 0 to 1. best: the likeliest class of each row of logits; of sets,
  // 1 or 0 for each of their entries.
  // By default the part of the counted targets that is right.
  virtual double accuracy(const Batch& batch, const std::vector<int32_t>& best) const;
  // The accuracy of answers at random, for figures; 0: none worth a line.
  virtual double chance() const { return 0; }
  // What is minimized, for figures: of sets, another.
  virtual std::string loss_name() const { return "cross-entropy (nats)"; }
};

}  // namespace petroglyph
