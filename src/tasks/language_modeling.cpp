#include "tasks/language_modeling.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/shuffle.h"

namespace petroglyph {

LanguageModeling::LanguageModeling(std::shared_ptr<const Corpus> training, const std::string& training_name,
                                   std::shared_ptr<const Corpus> validation, const std::string& validation_name,
                                   int context, int64_t samples_a_step, Targets targets)
    : training_(std::move(training)),
      validation_(std::move(validation)),
      context_(context),
      samples_a_step_(samples_a_step),
      targets_(targets) {
  check(*training_, training_name);
  check(*validation_, validation_name);
}

void LanguageModeling::check(const Corpus& corpus, const std::string& name) const {
  if (windows(corpus) > 0) return;
  throw Error(name + ": " + counted(corpus.size(), "token") + (corpus.size() == 1 ? " is" : " are") +
              " less than a window of the context and its next token, " + with_commas(context_ + 1) +
              ": expected a longer text, a smaller --context, or a larger --val-part");
}

Batch LanguageModeling::batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const {
  const bool train = stream == stream_of("train");
  const Corpus& corpus = train ? *training_ : *validation_;
  const auto all = static_cast<uint64_t>(windows(corpus)), T = static_cast<uint64_t>(context_);
  Batch batch;
  batch.size = count;
  batch.length = context_;
  const auto answers = targets_ == Targets::ALL ? T : 1;
  batch.counted = count * static_cast<int64_t>(answers);
  batch.tokens.resize(static_cast<size_t>(count) * T);
  batch.targets.resize(static_cast<size_t>(batch.counted));
  std::vector<int32_t> window(T + 1);
  for (int b = 0; b < count; ++b) {
    const uint64_t before = train ? uint64_t(step) * static_cast<uint64_t>(samples_a_step_) : 0;
    const uint64_t sample = before + static_cast<uint64_t>(first + b);
    const auto epoch = train ? static_cast<uint32_t>(sample / all) : 0;
    const uint64_t place = shuffled(sample % all, all, train ? seed : 0, stream_of("order"), epoch);
    corpus.read(static_cast<int64_t>(place * T), context_ + 1, window.data());
    std::copy_n(window.begin(), T, batch.tokens.begin() + static_cast<std::ptrdiff_t>(b * T));
    std::copy_n(window.end() - static_cast<std::ptrdiff_t>(answers), answers,
                batch.targets.begin() + static_cast<std::ptrdiff_t>(b * answers));
  }
  return batch;
}

}  // namespace petroglyph
