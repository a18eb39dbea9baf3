#include "analysis/inspection.h"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/stories.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

void declare_out(Options& options, std::string* out) {
  options.add("out", out, "FOLDER",
              "default: beside the checkpoint; an older file of the same name stays as NAME.before");
}

std::string output_folder(const std::string& out, const std::string& checkpoint) {
  if (!out.empty()) return make_folder(out), out;
  const std::string beside = std::filesystem::path(checkpoint_path(checkpoint)).parent_path().string();
  return beside.empty() ? "." : beside;
}

void InspectionSettings::declare(Options& options, const std::string& which) {
  options.positional("CHECKPOINT", &checkpoints, which);
  declare_out(options, &out);
  options.add_device(&device, &threads);
}

OpenedCheckpoint::OpenedCheckpoint(const std::string& file_or_folder, const std::vector<std::string>& programs,
                                   Ops& ops)
    : given(file_or_folder), file(checkpoint_path(given)), state(read_run_state(file)) {
  if (std::find(programs.begin(), programs.end(), state.program) == programs.end())
    throw Error(file.path() + ": a checkpoint of " + state.program + ", expected one of " + join(programs, " or "));
  model = load_model(file, state, ops);
}

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
  options.add("text", text, "FILE",
              "where windows are from; default: what the run was evaluated on, or stories of our own");
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

const real* forward(Model& model, Ops& ops, Tokens& on_device, const std::vector<int32_t>& tokens) {
  model.check_tokens(tokens);
  on_device.resize(ops, {static_cast<int64_t>(tokens.size())});
  on_device.upload(tokens);
  return model.forward({on_device.data(), 1, static_cast<int>(tokens.size())});
}

void save_files(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& files) {
  make_folder(folder);
  std::vector<std::string> names;
  for (const auto& [name, content] : files) {
    write_keeping(folder + "/" + name, content);
    names.push_back(name);
  }
  print("saved %s (%s)\n", folder.c_str(), join(names, ", ").c_str());
}

}  // namespace petroglyph
