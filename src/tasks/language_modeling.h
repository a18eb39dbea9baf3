// Language modelling: predict the next token after each token of a window.
//
//   input    c_0  c_1 … c_(T−1)      T tokens of the corpus
//   target   c_1  c_2 … c_T          the same, shifted by one; or only c_T, for models with one answer a window
//
// The corpus is divided into disjoint windows (only the last target of one is the first input of the next); an
// incomplete window at its end is not used. An epoch has every window once, in its own random order (shuffle.h). The
// next epoch can begin within a step. So a step's batch depends only on the seed and the step.
#pragma once

#include <memory>

#include "tasks/corpus.h"
#include "tasks/task.h"

namespace petroglyph {

enum class Targets { ALL, LAST };

class LanguageModeling final : public Task {
 public:
  // A step uses `samples_a_step` windows of `training`. Evaluation uses windows of `validation`, scattered over it:
  // the same windows at every step and with every seed. Throws an Error, which begins with the text's name, if one of
  // the texts has no complete window.
  LanguageModeling(std::shared_ptr<const Corpus> training, const std::string& training_name,
                   std::shared_ptr<const Corpus> validation, const std::string& validation_name, int context,
                   int64_t samples_a_step, Targets targets = Targets::ALL);

  int context() const { return context_; }
  // The stream "train" gives training windows, any other stream validation windows.
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
