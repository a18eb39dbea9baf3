// Shared parts of the subcommands of ./inspect: common options, the opened checkpoint, a forward pass, the output
// files.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/options.h"
#include "train/checkpoint.h"
#include "train/device.h"

namespace petroglyph {

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

// The logits of tokens (B,T). `on_device` holds the tokens; it must live as long as the results of this pass are used.
const real* forward(Model& model, Ops& ops, Tokens& on_device, const std::vector<int32_t>& tokens, int batch = 1);

// Writes files (name, content) into a folder and prints "saved FOLDER (a.csv, a.svg)". An older file with other content
// stays as NAME.before.
void save_files(const std::string& folder, const std::vector<std::pair<std::string, std::string>>& files);

}  // namespace petroglyph
