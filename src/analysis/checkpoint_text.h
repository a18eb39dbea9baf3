// The text that a trained model is looked at with.
#pragma once

#include <memory>
#include <string>

#include "base/options.h"
#include "tasks/language_modeling.h"
#include "train/checkpoint.h"

namespace petroglyph {

// The context that a model of text, of train_text or convert, learned or was made with: tokens.
int context_of(const RunState& state);

// --text of a program that asks for such windows.
void declare_windows_text(Options& options, std::string* text);

// That file, or what its run was evaluated on, in words: "val.txt", "the end of data.txt", "the stories".
std::string name_of_text(const RunState& state, const std::string& text);

// Windows of `length` tokens, of the stream "evaluate": of the file `text`, in the model's own tokens; or, where that is empty, of
// what its run was evaluated on. Of stories sixteen bytes are told for each token that is wanted. Throws Error where the text is too
// short, or is not there.
std::unique_ptr<LanguageModeling> windows_of_text(const SafetensorsFile& file, const RunState& state,
                                                  const std::string& text, int length, int windows);

}  // namespace petroglyph
