// Tokenizer and context in the checkpoint of a model of text. In a separate file, so that programs without text link no
// tokenizer.
#pragma once

#include <memory>

#include "tokenizers/tokenizer.h"
#include "train/checkpoint.h"

namespace petroglyph {

// Throws Error, which begins with `origin`, if a model has fewer tokens than its tokenizer.
void check_vocabulary(const RunState& state, int tokens, const std::string& origin);

// The context that a model was trained with, in tokens; 0 if its file does not state it.
int learned_context(const RunState& state);

// The tokenizer of a model of text; throws Error if there is none, or if it has tokens that the model does not have. A
// model may have more, such as padding up to a round number.
std::unique_ptr<Tokenizer> load_tokenizer(const SafetensorsFile& file, const RunState& state);

}  // namespace petroglyph
