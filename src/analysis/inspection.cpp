#include "analysis/inspection.h"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

void declare_out(Options& options, std::string* out) {
  options.add("out", out, "default: beside the checkpoint; an older file of the same name stays as NAME.before")
      .placeholder("FOLDER");
}

std::string output_folder(const std::string& out, const std::string& checkpoint) {
  if (!out.empty()) return check_folder(out), out;
  const std::string beside = std::filesystem::path(checkpoint_path(checkpoint)).parent_path().string();
  return beside.empty() ? "." : beside;
}

void InspectionSettings::declare(Options& options, const std::string& which) {
  options.positional("CHECKPOINT", &checkpoints, which);
  declare_out(options, &out);
  declare_device(options, &device, &threads);
}

OpenedCheckpoint::OpenedCheckpoint(const std::string& file_or_folder, const std::vector<std::string>& programs,
                                   Ops& ops)
    : file(checkpoint_path(file_or_folder)), state(read_run_state(file)) {
  if (std::find(programs.begin(), programs.end(), state.program) == programs.end())
    throw Error(file.path() + ": a checkpoint of " + state.program + ", expected one of " + join(programs, " or "));
  model = load_model(file, state, ops);
}

const real* forward(Model& model, Ops& ops, Tokens& on_device, const std::vector<int32_t>& tokens, int batch) {
  const auto count = static_cast<int64_t>(tokens.size());
  model.check_tokens(tokens);
  on_device.resize(ops, {count});
  on_device.upload(tokens);
  return model.forward({on_device.data(), batch, static_cast<int>(count / batch)});
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
