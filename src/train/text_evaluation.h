// Measures of a model of text: perplexity, bits a character, and the loss of a checkpoint on another text.
#pragma once

#include <cstdint>
#include <string>

#include "tasks/language_modeling.h"
#include "tokenizers/tokenizer.h"
#include "train/text_settings.h"
#include "train/trainer.h"

namespace petroglyph {

// Of the targets of so many evaluated samples.
double characters_a_target(const LanguageModeling& task, const Tokenizer& tokenizer, uint64_t seed, int samples);

// "validation loss 1.8764  perplexity 6.53  2.707 bits/character  accuracy 44.6 %"
std::string text_measures(const Measures& measures, double characters_a_token);

// Prints the measures of --evaluate's checkpoint on all of --data, in windows as long as those of its training, or as
// its model reads. Throws UsageError without --data.
void evaluate_checkpoint(const TextRunSettings& given);

}  // namespace petroglyph
