// Language modelling: from the tokens of a window, each token's next one.
//
//   input    c_0  c_1 … c_(T−1)      T tokens of the corpus
//   target   c_1  c_2 … c_T          the same, one further; or c_T alone, for models that answer once, at the window's end
//
// The corpus is cut into disjoint windows (only the last target of one is the first input of the next); what is left
// over at its end does not count. An epoch has every window once, in an order of its own (shuffle.h), and the next
// epoch follows within the same step: so a step's batch depends on the seed and the step alone.
#pragma once

#include <memory>

#include "tasks/corpus.h"
#include "tasks/task.h"

namespace petroglyph {

enum class Targets { ALL, LAST };

class LanguageModeling final : public Task {
 public:
  // A step takes `samples_a_step` windows of `training`. Evaluation takes its windows from `validation`: the same ones
  // at every step and with every seed, scattered over it. An Error where one of them has no whole window, after its
  // name.
  LanguageModeling(std::shared_ptr<const Corpus> training, const std::string& training_name,
                   std::shared_ptr<const Corpus> validation, const std::string& validation_name, int context,
                   int64_t samples_a_step, Targets targets = Targets::ALL);

  int context() const { return context_; }
  // Training windows from the stream "train", validation windows from any other.
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override;

  int64_t training_windows() const { return windows(*training_); }
  int64_t evaluation_samples() const override { return windows(*validation_); }

 private:
  int64_t windows(const Corpus& corpus) const { return (corpus.size() - 1) / context_; }
  void check(const Corpus& corpus, const std::string& name) const;

  std::shared_ptr<const Corpus> training_, validation_;
  int context_;
  int64_t samples_a_step_;
  Targets targets_;
};

}  // namespace petroglyph
