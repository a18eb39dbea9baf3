// What test/golden.txt holds: a fingerprint of every operation of the table and of every model after a few steps, which
// every build and every device must reproduce.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cases.h"
#include "check.h"
#include "models/model.h"
#include "ops/ops.h"
#include "tasks/copying.h"
#include "train/optimizer.h"
#include "train/trainer.h"

namespace petroglyph {

constexpr uint64_t FINGERPRINT_SEED = 13;

using MakeOps = std::function<std::unique_ptr<Ops>()>;

// A small run of train_copy's kind: strings of 5 letters, a model as wide as a vector and a bit.
struct SmallRun {
  explicit SmallRun(std::unique_ptr<Ops> device, int accumulate = 1, int batch = 8, int shards = 1,
                    const std::shared_ptr<Ranks>& ranks = one_rank());
  void steps(int64_t first, int64_t last);
  std::string fingerprint() const;

  Copying task;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Model> model;
  Optimizer optimizer;
  Trainer trainer;
};

// A model after three steps on one batch, which are everything that a model's training consists of, and the losses of the
// last step.
struct Trained {
  std::unique_ptr<Model> model;
  std::vector<real> losses;
};
Trained trained(const ModelCase& row, Ops& ops, uint64_t seed);

// Name and fingerprint of everything, computed on this device.
std::vector<std::pair<std::string, std::string>> all_fingerprints(const MakeOps& make);

// Rows with infinities or NaN in which the reference has fewer NaN than all other devices (OpCase::skips_pairs).
enum class NanSpread { COMPARED, LEFT_OUT };
void against_golden(Test& test, const MakeOps& make, NanSpread nan_spread = NanSpread::COMPARED);

}  // namespace petroglyph
