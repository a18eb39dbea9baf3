#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/checksum.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "math/random.h"

namespace petroglyph {

Trainer::Trainer(Model& model, const Task& task, Optimizer& optimizer, Ops& ops, uint64_t seed, int batch,
                 int accumulate, int shards, std::shared_ptr<Ranks> ranks)
    : model_(model),
      task_(task),
      optimizer_(optimizer),
      ops_(ops),
      seed_(seed),
      batch_(batch / shards),
      accumulate_(accumulate),
      shards_(shards),
      ranks_(std::move(ranks)),
      tree_(ops, *ranks_, parts_here(), model.parameters.padded_size()) {}

std::vector<Batch> Trainer::batches_of(int64_t step) const {
  std::vector<Batch> batches;
  const int here = parts_here() * accumulate_, first = ranks_->rank() * here;
  for (int b = first; b < first + here; ++b)
    batches.push_back(task_.batch(seed_, stream_of("train"), static_cast<uint32_t>(step), b * batch_, batch_));
  return batches;
}

// All operations are queued on the device, and the next step's batches are made while it works. Only the last line
// waits. Of a shard's `accumulate_` batches the gradients are added up by backward(); of all shards and ranks by the
// tree.
Measures Trainer::step(int64_t step, double learning_rate) {
  const std::vector<Batch> batches = take_batches(step);                // of this rank's shards, one after the other
  const real scale = 1 / static_cast<real>(targets_of_ranks(batches));  // the loss is the mean over all targets
  for (size_t b = 0; b < batches.size(); ++b) {
    if (is_first_of_shard(b)) model_.parameters.zero_gradients();
    const Input input = upload(batches[b]);
    const real* const logits = model_.forward(input);
    const real* const dlogits = loss(batches[b], input, logits, b, scale);
    model_.backward(input, dlogits);
    if (is_last_of_shard(b)) tree_.add(model_.parameters.gradients().data());
  }
  optimizer_.step(step, learning_rate);  // clips the gradient by its global norm, then AdamW
  make_batches(step + 1);
  return collect_parts(batches);
}

std::vector<Batch> Trainer::take_batches(int64_t step) {
  if (next_step_ != step) return batches_of(step);
  next_step_ = -1;
  return std::move(next_);
}

void Trainer::make_batches(int64_t step) {
  next_ = batches_of(step);
  next_step_ = step;
}

int64_t Trainer::targets_of_ranks(const std::vector<Batch>& batches) {
  int64_t counted = 0, of_all = 0;
  for (const Batch& batch : batches) counted += batch.counted;
  for (const int64_t of_rank : ranks_->gather(counted)) of_all += of_rank;
  return of_all;
}

// Rank r takes the batches r, r + R, ….
std::vector<Trainer::Sums> Trainer::evaluate_some(const Task& task, int64_t step, int samples, int at_once,
                                                  Progress* progress) {
  const int64_t stride = int64_t(ranks_->count()) * at_once;
  std::vector<Sums> sums;
  for (int64_t begin = int64_t(ranks_->rank()) * at_once; begin < samples && !interrupted(); begin += stride) {
    const int begins = static_cast<int>(begin);
    const Batch batch = task.batch(seed_, stream_of("evaluate"), static_cast<uint32_t>(step), begins,
                                   std::min(at_once, samples - begins));
    forward_loss(batch, 0);
    sums.push_back(collect(task, batch, 0));
    if (progress) progress->show(std::min<int64_t>(samples, begin + stride), "");
  }
  return sums;
}

bool Trainer::is_finite_at(int64_t step) {
  bool finite = true;
  for (const Batch& batch : batches_of(step)) {
    if (!finite) break;
    forward_loss(batch, 0);
    finite = std::isfinite(static_cast<double>(slots_[0].total.download()[0]));
  }
  return !ranks_->any(!finite);
}

// What the batches say is added in their order.
std::optional<Measures> Trainer::evaluate(const Task& task, int64_t step, int samples, int at_once,
                                          Progress* progress) {
  if (at_once == 0) at_once = batch_;
  const int R = ranks_->count(), batches = (samples + at_once - 1) / at_once;
  std::vector<Sums> mine = evaluate_some(task, step, samples, at_once, progress);
  if (ranks_->any(interrupted())) return std::nullopt;
  const size_t each = static_cast<size_t>((batches + R - 1) / R);
  mine.resize(each);
  const std::vector<Sums> all = ranks_->gather(mine);
  Sums total;
  for (int b = 0; b < batches; ++b) total.add(all[static_cast<size_t>(b % R) * each + static_cast<size_t>(b / R)]);
  return total.mean();
}

namespace {

void absorb(Checksum& checksum, const Batch& batch) {
  checksum.update(batch.tokens.data(), batch.tokens.size() * sizeof batch.tokens[0]);
  checksum.update(batch.patches.data(), batch.patches.size() * sizeof(real));
  checksum.update(batch.targets.data(), batch.targets.size() * sizeof batch.targets[0]);
  checksum.update(batch.sets.data(), batch.sets.size() * sizeof(real));
}

}  // namespace

uint64_t Trainer::some_samples(int64_t step) const {
  constexpr int SAMPLES = 64;
  const auto first = static_cast<uint32_t>(step);
  Checksum samples;
  for (int i = 0; i < SAMPLES; ++i) {
    absorb(samples, task_.batch(seed_, stream_of("train"), first + static_cast<uint32_t>(i), 0, 1));
    absorb(samples, task_.batch(seed_, stream_of("evaluate"), first, i, 1));
  }
  return samples.value();
}

void Trainer::check_ranks(int64_t step) {
  if (ranks_->count() == 1) return;
  ranks_->check_same(some_samples(step), "its samples: are the files the same?");
  const Batch batch = task_.batch(seed_, stream_of("train"), static_cast<uint32_t>(step), 0, 1);
  model_.parameters.zero_gradients();
  const Input input = upload(batch);
  const real* const logits = model_.forward(input);
  model_.backward(input, loss(batch, input, logits, 0, 1 / static_cast<real>(batch.counted)));
  const std::vector<real> gradients = model_.parameters.gradients().download();
  Checksum learned;
  learned.update(gradients.data(), gradients.size() * sizeof(real));
  ranks_->check_same(learned.value(), "the gradient of one sample: are the builds of the same sources?");
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

void Trainer::forward_loss(const Batch& batch, size_t slot) {
  const Input input = upload(batch);
  loss(batch, input, model_.forward(input), slot, 0);
}

const real* Trainer::loss(const Batch& batch, const Input& input, const real* logits, size_t slot, real scale) {
  const int V = model_.classes();
  const int64_t rows = static_cast<int64_t>(batch.sets.empty() ? batch.targets.size() : batch.sets.size() / V);
  if (rows != model_.logit_rows(input)) throw Error("the task has another number of answers than the model");
  if (slots_.size() <= slot) slots_.resize(slot + 1);
  Slot& s = slots_[slot];
  s.total.resize(ops_, {1});
  losses_.resize(ops_, {rows});
  partial_.resize(ops_, {rows / 1024 + 2});
  if (scale > 0) dlogits_.resize(ops_, {rows, V});
  real* const dlogits = scale > 0 ? dlogits_.data() : nullptr;
  batch.sets.empty() ? cross_entropy(batch, dlogits, logits, s, scale)
                     : squared_error(batch, dlogits, logits, s, scale);
  ops_.sum(s.total.data(), partial_.data(), losses_.data(), rows);
  return dlogits;
}

void Trainer::cross_entropy(const Batch& batch, real* dlogits, const real* logits, Slot& slot, real scale) {
  const int V = model_.classes();
  const int64_t rows = losses_.size();
  for (const int32_t target : batch.targets)
    if (target < -1 || target >= V)
      throw Error(text("target %d: expected one of the model's classes, 0 to %d", target, V - 1));
  slot.best.resize(ops_, {rows});
  targets_.resize(ops_, {rows});
  targets_.upload(batch.targets);
  ops_.argmax(slot.best.data(), logits, rows, V);
  ops_.cross_entropy(losses_.data(), dlogits, logits, targets_.data(), scale, rows, V);
}

void Trainer::squared_error(const Batch& batch, real* dlogits, const real* logits, Slot& slot, real scale) {
  const int V = model_.classes();
  const int64_t rows = losses_.size();
  slot.logits.resize(ops_, {rows, V});
  ops_.copy(slot.logits.data(), 0, logits, 0, slot.logits.bytes(), 1);
  sets_.resize(ops_, {rows, V});
  sets_.upload(batch.sets);
  ops_.sigmoid_squared_error(losses_.data(), dlogits, logits, sets_.data(), scale, rows, V);
}

std::vector<int32_t> Trainer::predictions(const Batch& batch, size_t slot) const {
  if (batch.sets.empty()) return slots_[slot].best.download();
  std::vector<int32_t> yes;
  for (const real x : slots_[slot].logits.download()) yes.push_back(x >= 0);  // σ(x) ≥ 1/2
  return yes;
}

void Trainer::Sums::add(const Sums& other) {
  loss += other.loss;
  accuracy += other.accuracy;
  counted += other.counted;
  samples += other.samples;
  tokens += other.tokens;
}

Measures Trainer::Sums::mean() const {
  return {loss / static_cast<double>(counted), accuracy / static_cast<double>(samples), tokens};
}

Trainer::Sums Trainer::collect(const Task& task, const Batch& batch, size_t slot) const {
  return {static_cast<double>(slots_[slot].total.download()[0]),
          task.accuracy(batch, predictions(batch, slot)) * batch.size, batch.counted, batch.size,
          static_cast<int64_t>(batch.size) * batch.length};
}

// A part's batches in their order, the parts and then the ranks by the gradients' tree.
Measures Trainer::collect_parts(const std::vector<Batch>& batches) const {
  Sums sum;
  std::vector<double> losses, accuracies;
  for (size_t slot = 0; slot < batches.size();) {
    Sums part;
    for (int a = 0; a < accumulate_; ++a, ++slot) part.add(collect(task_, batches[slot], slot));
    losses.push_back(part.loss);
    accuracies.push_back(part.accuracy);
    sum.add(part);
  }
  sum.loss = GradientTree::sum(losses);
  sum.accuracy = GradientTree::sum(accuracies);
  losses.clear();
  accuracies.clear();
  Sums total;
  for (const Sums& of_rank : ranks_->gather(sum)) {
    losses.push_back(of_rank.loss);
    accuracies.push_back(of_rank.accuracy);
    total.add(of_rank);
  }
  total.loss = GradientTree::sum(losses);
  total.accuracy = GradientTree::sum(accuracies);
  return total.mean();
}

}  // namespace petroglyph
