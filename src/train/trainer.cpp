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
      tree_(ops, *ranks_, parts_here(), model.parameters.room()) {}

std::vector<Batch> Trainer::batches_of(int64_t step) const {
  std::vector<Batch> batches;
  const int here = parts_here() * accumulate_, first = ranks_->rank() * here;
  for (int b = first; b < first + here; ++b)
    batches.push_back(task_.batch(seed_, stream_of("train"), static_cast<uint32_t>(step), b * batch_, batch_));
  return batches;
}

// A step only puts work on the device's queue; what waits for all of it, the loss that is shown, comes when all is there and the
// next step's batches are made.
Measures Trainer::step(int64_t step, double learning_rate) {
  const std::vector<Batch> batches = next_step_ == step ? std::move(next_) : batches_of(step);
  next_step_ = -1;
  int64_t counted = 0, of_all = 0;
  for (const Batch& batch : batches) counted += batch.counted;
  for (const int64_t of_rank : ranks_->gather(counted)) of_all += of_rank;
  for (int b = 0; b < static_cast<int>(batches.size()); ++b) {
    if (b % accumulate_ == 0) model_.parameters.zero_gradients();
    enqueue(batches[static_cast<size_t>(b)], b, 1 / static_cast<real>(of_all));
    if ((b + 1) % accumulate_ == 0) tree_.add(model_.parameters.gradients().data());
  }
  optimizer_.step(step, learning_rate);
  next_ = batches_of(step + 1);
  next_step_ = step + 1;
  return collect_parts(batches);
}

int as_many_as(int batch, double longer) { return std::max(1, static_cast<int>(batch / std::max(1.0, longer))); }

// Rank r takes the batches r, r + R, ….
std::vector<Trainer::Sums> Trainer::evaluate_some(const Task& task, int64_t step, int samples, int at_once,
                                                  Progress* progress) {
  constexpr size_t QUEUED = 64;  // batches that a device is given before it is asked for answers
  const int64_t stride = int64_t(ranks_->count()) * at_once;
  std::vector<Batch> batches;
  std::vector<Sums> sums;
  const auto collect_all = [&](int64_t end) {
    for (size_t slot = 0; slot < batches.size(); ++slot) sums.push_back(collect(task, batches[slot], slot));
    batches.clear();
    if (progress) progress->show(std::min<int64_t>(samples, end), "");
  };
  for (int64_t begin = int64_t(ranks_->rank()) * at_once; begin < samples; begin += stride) {
    if (interrupted()) return sums;
    const int begins = static_cast<int>(begin);
    batches.push_back(task.batch(seed_, stream_of("evaluate"), static_cast<uint32_t>(step), begins,
                                 std::min(at_once, samples - begins)));
    enqueue(batches.back(), static_cast<int>(batches.size()) - 1, 0);
    if (batches.size() == QUEUED) collect_all(begin + stride);
  }
  collect_all(samples);
  return sums;
}

bool Trainer::is_finite_at(int64_t step) {
  bool finite = true;
  for (const Batch& batch : batches_of(step)) {
    if (!finite) break;
    enqueue(batch, 0, 0);
    finite = std::isfinite(static_cast<double>(total_[0].download()[0]));
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
  enqueue(batch, 0, 1 / static_cast<real>(batch.counted));
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
  return {static_cast<double>(total_[slot].download()[0]), task.accuracy(batch, guesses(batch, slot)) * batch.size,
          batch.counted, batch.size, static_cast<int64_t>(batch.size) * batch.length};
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
