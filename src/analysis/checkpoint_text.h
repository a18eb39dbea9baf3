// The text on which an inspection evaluates a trained model.
#pragma once

#include <memory>
#include <string>

#include "base/options.h"
#include "tasks/language_modeling.h"
#include "train/checkpoint.h"

namespace petroglyph {

// The context length, in tokens, with which a text model was trained (train_text) or converted (convert).
int context_of(const RunState& state);

// The length of a window: `given` (--length), or if it is 0 `otherwise`, at most as long as the model reads. Throws
// UsageError if the model, from the file `path`, does not read as many tokens as are given.
int window_length(const Model& model, const std::string& path, int given, int otherwise);

// Declares --text for a program that needs such windows.
void declare_windows_text(Options& options, std::string* text);

// The name of that file or of the text that the run was evaluated on: "val.txt", "the end of data.txt", "the
// stories".
std::string name_of_text(const RunState& state, const std::string& text);

// Windows of `length` tokens from the random stream "evaluate". They come from the file `text`, encoded by the
// model's own tokenizer. If `text` is empty, they come from the text that the run was evaluated on. Stories are
// generated with sixteen bytes for each requested token. Throws Error if the text is too short or does not exist.
std::unique_ptr<LanguageModeling> windows_of_text(const SafetensorsFile& file, const RunState& state,
                                                  const std::string& text, int length, int windows);

}  // namespace petroglyph
