// The subcommands of ./inspect, and what they share: common options, the opened checkpoint, its text, a forward pass,
// the output files.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "tasks/language_modeling.h"
#include "train/checkpoint.h"
#include "train/device.h"

namespace petroglyph {

// Each takes the arguments after its name on the command line and returns the exit status.
int inspect_attention(const std::vector<std::string>& words);
int inspect_clusters(const std::vector<std::string>& words);
int inspect_counts(const std::vector<std::string>& words);
int inspect_heatmap(const std::vector<std::string>& words);
int inspect_info(const std::vector<std::string>& words);
int inspect_lemma1(const std::vector<std::string>& words);
int inspect_neurons(const std::vector<std::string>& words);
int inspect_positions(const std::vector<std::string>& words);
int inspect_receptive_field(const std::vector<std::string>& words);

void declare_out(Options& options, std::string* out);
// Of --out, or else the folder of the checkpoint. Throws Error before long work if it cannot be a folder.
std::string output_folder(const std::string& out, const std::string& checkpoint);

struct InspectionSettings {
  std::vector<std::string> checkpoints;
  std::string out, device = "auto";
  int threads = 0;

  // Declares CHECKPOINT (described by `which`), --out, --device and --threads.
  void declare(Options& options, const std::string& which);
  std::unique_ptr<Ops> make_ops() const { return make_device(device, threads); }
  std::string folder() const { return output_folder(out, checkpoints[0]); }
};

// A checkpoint written by one of `programs`, and its model. Throws Error for another program's checkpoint.
struct OpenedCheckpoint {
  OpenedCheckpoint(const std::string& file_or_folder, const std::vector<std::string>& programs, Ops& ops);

  std::string given;  // the path, as the user wrote it
  SafetensorsFile file;
  RunState state;
  std::unique_ptr<Model> model;
};

// Opens all checkpoints before the first is inspected, so that an error in the last one is reported at once.
template <class Subject, class Settings>
std::vector<std::unique_ptr<Subject>> open_all(const Settings& settings, Ops& ops) {
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const std::string& path : settings.checkpoints)
    subjects.push_back(std::make_unique<Subject>(path, settings, ops));
  return subjects;
}

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

// The logits of tokens (T). `on_device` holds the tokens; it must live as long as the results of this pass are used.
const real* forward(Model& model, Ops& ops, Tokens& on_device, const std::vector<int32_t>& tokens);

// Writes files (name, content) into a folder and prints "saved FOLDER (a.csv, a.svg)". An older file with other content
// stays as NAME.before.
void save_files(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace petroglyph
