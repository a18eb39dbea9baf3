#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "math/random.h"

namespace petroglyph {

Trainer::Trainer(Model& model, const Task& task, Optimizer& optimizer, Ops& ops, uint64_t seed, int batch,
                 int accumulate)
    : model_(model),
      task_(task),
      optimizer_(optimizer),
      ops_(ops),
      seed_(seed),
      batch_(batch),
      accumulate_(accumulate) {}

// A step only puts work on the device's queue; the one wait, for the loss that is shown, comes when all of it is there.
Measures Trainer::step(int64_t step, double learning_rate) {
  std::vector<Batch> batches;
  int64_t counted = 0;
  for (int a = 0; a < accumulate_; ++a) {
    batches.push_back(task_.batch(seed_, stream_of("train"), static_cast<uint32_t>(step), a * batch_, batch_));
    counted += batches.back().counted;
  }
  model_.parameters.zero_gradients();
  for (int a = 0; a < accumulate_; ++a) enqueue(batches[static_cast<size_t>(a)], a, 1 / static_cast<real>(counted));
  optimizer_.step(step, learning_rate);
  return collect(task_, batches);
}

bool Trainer::is_finite_at(int64_t step) {
  for (int a = 0; a < accumulate_; ++a) {
    enqueue(task_.batch(seed_, stream_of("train"), static_cast<uint32_t>(step), a * batch_, batch_), 0, 0);
    if (!std::isfinite(static_cast<double>(total_[0].download()[0]))) return false;
  }
  return true;
}

Measures Trainer::evaluate(const Task& task, int64_t step, int samples, int at_once) {
  std::vector<Batch> batches;
  const int most = at_once > 0 ? at_once : batch_;
  for (int first = 0; first < samples; first += most) {
    batches.push_back(
        task.batch(seed_, stream_of("evaluate"), static_cast<uint32_t>(step), first, std::min(most, samples - first)));
    enqueue(batches.back(), static_cast<int>(batches.size()) - 1, 0);
  }
  return collect(task, batches);
}

Input Trainer::upload(const Batch& batch) {
  if (!batch.patches.empty()) {
    patches_.resize(ops_, {static_cast<int64_t>(batch.patches.size())});
    patches_.upload(batch.patches);
    return {nullptr, batch.size, batch.length, patches_.data()};
  }
  model_.check_tokens(batch.tokens);
  tokens_.resize(ops_, {batch.size, batch.length});
  tokens_.upload(batch.tokens);
  return {tokens_.data(), batch.size, batch.length};
}

void Trainer::enqueue(const Batch& batch, int slot, real scale) {
  const int V = model_.classes();
  const int64_t rows = static_cast<int64_t>(batch.sets.empty() ? batch.targets.size() : batch.sets.size() / V);
  const size_t slots = static_cast<size_t>(slot) + 1;
  if (best_.size() < slots) {
    best_.resize(slots);
    logits_.resize(slots);
    total_.resize(slots);
  }
  Tensor& total = total_[static_cast<size_t>(slot)];
  total.resize(ops_, {1});
  losses_.resize(ops_, {rows});
  partial_.resize(ops_, {rows / 1024 + 2});
  if (scale > 0) dlogits_.resize(ops_, {rows, V});
  const Input input = upload(batch);
  if (rows != model_.logit_rows(input)) throw Error("the task has another number of answers than the model");
  judge(batch, slot, model_.forward(input), rows, scale);
  ops_.sum(total.data(), partial_.data(), losses_.data(), rows);
  if (scale > 0) model_.backward(input, dlogits_.data());
}

void Trainer::judge(const Batch& batch, int slot, const real* logits, int64_t rows, real scale) {
  const int V = model_.classes();
  real* const dlogits = scale > 0 ? dlogits_.data() : nullptr;
  if (!batch.sets.empty()) {
    Tensor& kept = logits_[static_cast<size_t>(slot)];
    kept.resize(ops_, {rows, V});
    ops_.copy(kept.data(), 0, logits, 0, kept.bytes(), 1);
    sets_.resize(ops_, {rows, V});
    sets_.upload(batch.sets);
    ops_.sigmoid_squared_error(losses_.data(), dlogits, logits, sets_.data(), scale, rows, V);
    return;
  }
  for (const int32_t target : batch.targets)
    if (target < -1 || target >= V)
      throw Error(text("target %d is none of the model's answers, 0 to %d", target, V - 1));
  Tokens& best = best_[static_cast<size_t>(slot)];
  best.resize(ops_, {rows});
  targets_.resize(ops_, {rows});
  targets_.upload(batch.targets);
  ops_.argmax(best.data(), logits, rows, V);
  ops_.cross_entropy(losses_.data(), dlogits, logits, targets_.data(), scale, rows, V);
}

std::vector<int32_t> Trainer::guesses(const Batch& batch, size_t slot) const {
  if (batch.sets.empty()) return best_[slot].download();
  std::vector<int32_t> yes;
  for (const real x : logits_[slot].download()) yes.push_back(x >= 0);  // σ(x) ≥ 1/2
  return yes;
}

Measures Trainer::collect(const Task& task, const std::vector<Batch>& batches) const {
  Measures sum;
  int64_t counted = 0, samples = 0, tokens = 0;
  for (size_t slot = 0; slot < batches.size(); ++slot) {
    const Batch& batch = batches[slot];
    sum.loss += static_cast<double>(total_[slot].download()[0]);
    sum.accuracy += task.accuracy(batch, guesses(batch, slot)) * batch.size;
    counted += batch.counted;
    samples += batch.size;
    tokens += static_cast<int64_t>(batch.size) * batch.length;
  }
  return {sum.loss / static_cast<double>(counted), sum.accuracy / static_cast<double>(samples), tokens};
}

}  // namespace petroglyph
