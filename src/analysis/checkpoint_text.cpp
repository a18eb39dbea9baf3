#include "analysis/checkpoint_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/stories.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

int context_of(const RunState& state) {
  const bool trained = state.program == "train_text";
  return static_cast<int>((trained ? state.options : state.config).at("context").integer());
}

int window_length(const Model& model, const std::string& path, int given, int otherwise) {
  if (given > model.longest())
    throw UsageError(
        text("--length %d: %s reads %s at most", given, path.c_str(), counted(model.longest(), "token").c_str()));
  return given > 0 ? given : std::min(otherwise, model.longest());
}

void declare_windows_text(Options& options, std::string* text) {
  options.add("text", text, "where windows are from; default: what the run was evaluated on, or stories of our own")
      .placeholder("FILE");
}

namespace {

// A run of train_text stores the options that name its texts.
std::string option_of(const RunState& state, const std::string& text, const char* name) {
  return state.program == "train_text" && text.empty() ? state.options.at(name).string() : "";
}

}  // namespace

std::string name_of_text(const RunState& state, const std::string& text) {
  const std::string data = option_of(state, text, "data"), validation = option_of(state, text, "val");
  if (!text.empty() || !validation.empty()) return text + validation;
  return data.empty() ? "the stories" : "the end of " + data;
}

std::unique_ptr<LanguageModeling> windows_of_text(const SafetensorsFile& file, const RunState& state,
                                                  const std::string& text, int length, int windows) {
  const auto tokenizer = load_tokenizer(file, state);
  const bool own = state.program == "train_text" && text.empty();  // the run's options name its texts
  if (own) refuse_foreign_paths(file, state, {"val", "data"});
  const std::string data = option_of(state, text, "data"), validation = option_of(state, text, "val");
  const std::string path = !text.empty() ? text : validation.empty() ? data : validation;
  std::shared_ptr<const Corpus> corpus;
  const std::string name = name_of_text(state, text);
  if (path.empty()) {
    corpus = encode_corpus(
        tell_stories(2, stream_of("stories"), size_t(16) * static_cast<size_t>(length) * static_cast<size_t>(windows)),
        "the stories", *tokenizer);
  } else {
    const Json* const format = own ? state.options.find("format") : nullptr;
    corpus = open_corpus(path, *tokenizer, format ? format->string() : "auto");
    if (own && validation.empty()) {  // the end of the text, which the run was not trained on
      const auto kept =
          static_cast<int64_t>(state.options.at("val-part").number() * static_cast<double>(corpus->size()));
      corpus = std::make_shared<CorpusPart>(corpus, corpus->size() - kept, corpus->size());
    }
  }
  return std::make_unique<LanguageModeling>(corpus, name, corpus, name, length, 1);
}

}  // namespace petroglyph
