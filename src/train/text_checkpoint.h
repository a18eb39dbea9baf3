// What a checkpoint of a model of text has beside its weights. A file of its own: programs without text link no tokenizer.
#pragma once

#include <memory>

#include "tokenizers/tokenizer.h"
#include "train/checkpoint.h"

namespace petroglyph {

// Throws Error, which opens with `origin`, where a model has fewer tokens than its tokenizer.
void check_vocabulary(const RunState& state, int tokens, const std::string& origin);

// The tokens of the windows that a model learned from; 0 where its file does not say so.
int learned_context(const RunState& state);

// The tokenizer of a model of text; throws Error where there is none, or where it has tokens that the model has not. A model may
// have more, such as those that fill up a round number.
std::unique_ptr<Tokenizer> load_tokenizer(const SafetensorsFile& file, const RunState& state);

}  // namespace petroglyph
