// One training step and one evaluation: what every program's loop is made of.
#pragma once

#include <vector>

#include "models/model.h"
#include "tasks/task.h"
#include "train/optimizer.h"

namespace petroglyph {

struct Measures {
  double loss = 0;      // mean over the targets that count: cross-entropy in nats; of sets, the squared error
  double accuracy = 0;  // the task's, 0 to 1
  int64_t tokens = 0;   // that the model read; of images, patches
};

class Trainer {
 public:
  // batch: samples that go through the model at a time; a step takes `accumulate` of them and averages.
  Trainer(Model& model, const Task& task, Optimizer& optimizer, Ops& ops, uint64_t seed, int batch, int accumulate);

  // One update from the fresh samples of `step`; measured on these samples before it.
  Measures step(int64_t step, double learning_rate);
  // Whether the loss on the samples of `step` is finite, before any update from them.
  bool is_finite_at(int64_t step);
  // On `samples` samples of a task that training never sees, the same for the same step, `at_once` at a time; 0: a batch.
  Measures evaluate(const Task& task, int64_t step, int samples, int at_once = 0);

 private:
  Input upload(const Batch& batch);
  // Sends a batch through the model, with a backward pass where scale > 0; its sum of losses and its guesses go to `slot`.
  void enqueue(const Batch& batch, int slot, real scale);
  // Waits for the device and averages what the batches left in their slots.
  Measures collect(const Task& task, const std::vector<Batch>& batches) const;
  // Losses and gradients of one batch, against its targets or sets; keeps the guesses.
  void judge(const Batch& batch, int slot, const real* logits, int64_t rows, real scale);
  std::vector<int32_t> guesses(const Batch& batch, size_t slot) const;

  Model& model_;
  const Task& task_;
  Optimizer& optimizer_;
  Ops& ops_;
  uint64_t seed_;
  int batch_, accumulate_;
  Tokens tokens_, targets_;
  Tensor patches_, losses_, dlogits_, partial_;
  Tensor sets_;
  std::vector<Tokens> best_;    // of each slot: a row of logits each
  std::vector<Tensor> logits_;  // of each slot, where the batch has sets
  std::vector<Tensor> total_;   // of each slot (1)
};

}  // namespace petroglyph
