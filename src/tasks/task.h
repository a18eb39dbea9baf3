// A task generates batches, each a deterministic function of (seed, step), and computes the accuracy of a model's
// answers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "math/numerics.h"

namespace petroglyph {

struct Batch {
  int size = 0, length = 0;      // B, T
  std::vector<int32_t> tokens;   // (B,T); empty if the model reads patches
  std::vector<real> patches;     // (B,T,P), for images
  std::vector<int32_t> targets;  // one for each row of logits, (B,T) or (B); −1: does not count
  std::vector<real>
      sets;             // in place of targets, several yes/no labels a row: (B,T,V) of 1 and 0; −1: it does not count
  int64_t counted = 0;  // targets, or entries of sets, that count
};

class Task {
 public:
  virtual ~Task() = default;
  // The samples first … first+count−1 of a step. Training and evaluation draw from different `stream`s (random.h).
  virtual Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const = 0;
  // The number of distinct samples for an evaluation.
  virtual int64_t evaluation_samples() const { return std::numeric_limits<int64_t>::max(); }
  // The mean accuracy over the samples, from 0 to 1. best: the likeliest class of each row of logits; for sets, 1 or
  // 0 for each entry. The default is the fraction of the counted targets that are correct.
  virtual double accuracy(const Batch& batch, const std::vector<int32_t>& best) const {
    int64_t right = 0;
    for (size_t i = 0; i < best.size(); ++i) right += batch.targets[i] >= 0 && batch.targets[i] == best[i];
    return batch.counted > 0 ? static_cast<double>(right) / static_cast<double>(batch.counted) : 0;
  }
  // The accuracy of random answers, for figures; 0: not drawn.
  virtual double chance() const { return 0; }
  // The name of the loss, for figures; tasks with sets have another loss.
  virtual std::string loss_name() const { return "cross-entropy (nats)"; }
};

}  // namespace petroglyph
