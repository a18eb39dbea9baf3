// One training step and one evaluation.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/progress.h"
#include "models/model.h"
#include "tasks/task.h"
#include "train/gradient_tree.h"
#include "train/optimizer.h"
#include "train/ranks.h"

namespace petroglyph {

struct Measures {
  double loss = 0;      // mean over the targets that count: cross-entropy in nats; of sets, the squared error
  double accuracy = 0;  // the task's, 0 to 1
  int64_t tokens = 0;   // that the model read; of images, patches
};

class Trainer {
 public:
  // batch: samples that go through the model at a time; a step takes `accumulate` batches and averages.
  // shards: a step's samples are split into so many parts, the same number for each rank. Each part's gradient is
  // computed as if it were alone, in `accumulate` batches of batch/shards, and they are added by one tree
  // (gradient_tree.h): the result does not depend on the number of ranks.
  Trainer(Model& model, const Task& task, Optimizer& optimizer, Ops& ops, uint64_t seed, int batch, int accumulate,
          int shards = 1, std::shared_ptr<Ranks> ranks = one_rank());

  // One update from the fresh samples of `step`; measured on these samples before it.
  Measures step(int64_t step, double learning_rate);
  // Whether the loss on the samples of `step` is finite, before any update from them.
  bool is_finite_at(int64_t step);
  // On `samples` samples of a task that training never sees, the same for the same step, `at_once` at a time; 0: a
  // part's batch. By all ranks together; their number does not change the bits. `progress` counts samples. Nothing
  // where a signal stops it.
  std::optional<Measures> evaluate(const Task& task, int64_t step, int samples, int at_once = 0,
                                   Progress* progress = nullptr);
  // A checksum of a sample of each of the 64 steps from this one, and of 64 samples of this step's evaluation.
  uint64_t some_samples(int64_t step) const;
  // Throws Error where the ranks do not get the same samples, or not the same gradient from one of them.
  void check_ranks(int64_t step);

 private:
  // What a batch leaves on the device until the host reads it.
  struct Slot {
    Tensor total;   // (1): the sum of its losses
    Tokens best;    // of every row of logits, the best class
    Tensor logits;  // where the batch has sets
  };

  // The batches of a step that this rank takes, and how many targets count in those of all ranks.
  std::vector<Batch> batches_of(int64_t step) const;
  std::vector<Batch> take_batches(int64_t step);  // those of make_batches(step), if it was called
  void make_batches(int64_t step);
  int64_t targets_of_ranks(const std::vector<Batch>& batches);
  bool is_first_of_shard(size_t batch) const { return batch % static_cast<size_t>(accumulate_) == 0; }
  bool is_last_of_shard(size_t batch) const { return is_first_of_shard(batch + 1); }

  Input upload(const Batch& batch);
  // The losses of a batch, against its targets or sets: their sum and the predictions go to `slot`. Returns scale times
  // the gradient of that sum with respect to the logits; null where scale is 0.
  const real* loss(const Batch& batch, const Input& input, const real* logits, size_t slot, real scale);
  void cross_entropy(const Batch& batch, real* dlogits, const real* logits, Slot& slot, real scale);
  void squared_error(const Batch& batch, real* dlogits, const real* logits, Slot& slot, real scale);
  void forward_loss(const Batch& batch, size_t slot);  // without gradient
  // What one batch left in its slot, as sums over its targets and its samples. Waits for the device.
  struct Sums {
    double loss = 0, accuracy = 0;
    int64_t counted = 0, samples = 0, tokens = 0;

    void add(const Sums& other);
    Measures mean() const;
  };
  Sums collect(const Task& task, const Batch& batch, size_t slot) const;
  Measures collect_parts(const std::vector<Batch>& batches) const;
  // The batches of one evaluation that this rank takes.
  std::vector<Sums> evaluate_some(const Task& task, int64_t step, int samples, int at_once, Progress* progress);
  int parts_here() const { return shards_ / ranks_->count(); }
  std::vector<int32_t> predictions(const Batch& batch, size_t slot) const;

  Model& model_;
  const Task& task_;
  Optimizer& optimizer_;
  Ops& ops_;
  uint64_t seed_;
  int batch_, accumulate_, shards_;  // batch_: of one part
  std::shared_ptr<Ranks> ranks_;
  GradientTree tree_;
  std::vector<Batch> next_;  // of step next_step_, made while the device works
  int64_t next_step_ = -1;   // −1: none
  Tokens tokens_, targets_;
  Tensor patches_, losses_, dlogits_, partial_;
  Tensor sets_;
  std::vector<Slot> slots_;
};

}  // namespace petroglyph
