#include "train/trainer.h"

#include <algorithm>

#include "random.h"

namespace petroglyph {

Trainer::Trainer(Model& model, const Task& task, Optimizer& optimizer, Ops& ops, uint64_t seed, int batch, int accumulate)
    : model_(model), task_(task), optimizer_(optimizer), ops_(ops), seed_(seed), batch_(batch), accumulate_(accumulate) {}

Measures Trainer::step(int64_t step, double learning_rate) {
  std::vector<Batch> batches;
  int64_t counted = 0;
  for (int a = 0; a < accumulate_; ++a) {
    batches.push_back(task_.batch(seed_, stream_of("train"), static_cast<uint32_t>(step), a * batch_, batch_));
    counted += batches.back().counted;
  }
  model_.parameters.zero_gradients();
  Measures sum;
  for (const Batch& batch : batches) {
    const Measures part = pass(batch, 1 / static_cast<real>(counted));
    sum.loss += part.loss;
    sum.accuracy += part.accuracy;
  }
  optimizer_.step(step, learning_rate);
  return {sum.loss / static_cast<double>(counted), sum.accuracy / (accumulate_ * batch_)};
}

Measures Trainer::evaluate(int64_t step, int samples) {
  Measures sum;
  int64_t counted = 0;
  for (int first = 0; first < samples; first += batch_) {
    const Batch batch = task_.batch(seed_, stream_of("evaluate"), static_cast<uint32_t>(step), first,
                                    std::min(batch_, samples - first));
    const Measures part = pass(batch, 0);
    sum.loss += part.loss;
    sum.accuracy += part.accuracy;
    counted += batch.counted;
  }
  return {sum.loss / static_cast<double>(counted), sum.accuracy / samples};
}

Measures Trainer::pass(const Batch& batch, real scale) {
  const int64_t rows = static_cast<int64_t>(batch.targets.size());
  const int V = model_.classes();
  tokens_.resize(ops_, {batch.size, batch.length});
  targets_.resize(ops_, {rows});
  best_.resize(ops_, {rows});
  losses_.resize(ops_, {rows});
  total_.resize(ops_, {1});
  partial_.resize(ops_, {rows / 1024 + 2});
  tokens_.upload(batch.tokens);
  targets_.upload(batch.targets);
  const bool learn = scale > 0;
  if (learn) dlogits_.resize(ops_, {rows, V});

  const Input input{tokens_.data(), batch.size, batch.length};
  const real* logits = model_.forward(input);
  ops_.argmax(best_.data(), logits, rows, V);
  ops_.cross_entropy(losses_.data(), learn ? dlogits_.data() : nullptr, logits, targets_.data(), scale, rows, V);
  ops_.sum(total_.data(), partial_.data(), losses_.data(), rows);
  if (learn) model_.backward(input, dlogits_.data());
  // The only wait of a step, when all its work is on its way.
  return {static_cast<double>(total_.download()[0]), task_.accuracy(batch, best_.download()) * batch.size};
}

}  // namespace petroglyph
