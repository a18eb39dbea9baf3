#include "analysis/inspection.h"

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

OutputFolder::OutputFolder(const std::string& out, bool force, const std::string& otherwise,
                           const std::vector<std::string>& names)
    : folder_(out.empty() ? otherwise : out), chosen_(!out.empty()), force_(force) {
  if (std::filesystem::exists(folder_) && !std::filesystem::is_directory(folder_))
    throw Error((chosen_ ? "--out " : "") + folder_ + ": is no folder");
  if (chosen_ && !is_there(folder_)) check_folder(folder_);
  for (const std::string& name : names) check(name);
}

void OutputFolder::check(const std::string& name) const {
  if (!chosen_) return;
  const std::string path = folder_ + "/" + name;
  check_replaced(path, force_);
  if (is_there(folder_)) check_writable(path);
}

void OutputFolder::save(const std::string& name, std::string_view content) {
  make_folder(folder_);
  check(name);
  const std::string path = folder_ + "/" + name;
  chosen_ ? write_file_atomically(path, content) : write_keeping(path, content);
  saved_.push_back(name);
}

std::string OutputFolder::summary() const { return "saved " + folder_ + " (" + join(saved_, ", ") + ")"; }

void InspectionSettings::declare(Options& options, const std::string& which) {
  options.positional("CHECKPOINT", &checkpoints, which);
  options.add("out", &out, "default: the folder of the first checkpoint").placeholder("FOLDER");
  declare_force(options, &force);
  declare_device(options, &device, &threads);
}

OutputFolder InspectionSettings::output(const std::vector<std::string>& names) const {
  const std::string folder = std::filesystem::path(checkpoint_path(checkpoints[0])).parent_path().string();
  return OutputFolder(out, force, folder.empty() ? "." : folder, names);
}

OpenedCheckpoint::OpenedCheckpoint(const std::string& file_or_folder, const std::vector<std::string>& programs,
                                   Ops& ops)
    : file(checkpoint_path(file_or_folder)), state(read_run_state(file)) {
  if (std::find(programs.begin(), programs.end(), state.program) == programs.end())
    throw Error(file.path() + ": a checkpoint of " + state.program + ", expected one of " + join(programs, " or "));
  model = load_model(file, state, ops);
}

}  // namespace petroglyph
