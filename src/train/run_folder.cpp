#include "train/run_folder.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "train/run.h"

namespace petroglyph {

std::vector<std::string> runs_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& name : names_in(folder))
    if (is_there(folder + "/" + name + "/model.safetensors") && is_there(folder + "/" + name + "/log.csv"))
      names.push_back(name);
  constexpr size_t MOST = 4;
  if (names.size() > MOST) names.resize(MOST), names.push_back("…");
  return names;
}

void check_run_name(const std::string& name) {
  const bool good = !name.empty() && name[0] != '.' && name[0] != '-' &&
                    std::all_of(name.begin(), name.end(),
                                [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
  if (!good)
    throw UsageError("--name " + name +
                     ": expected letters, digits, '-', '_' and '.', the first of them no '.' and no '-'");
}

std::string free_run_name(const std::string& name) {
  std::string candidate = name;
  for (int i = 2; is_there("runs/" + candidate); ++i) candidate = name + "-" + std::to_string(i);
  return candidate;
}

std::string name_of_run(const RunSettings& settings, const std::string& otherwise) {
  const std::string name = !settings.name.empty() ? settings.name
                           : settings.resume      ? otherwise
                                                  : free_run_name(otherwise);
  check_run_name(name);
  return name;
}

void check_new_run(const std::string& folder) {
  if (is_there(folder))
    throw Error(folder + ": exists already; choose another --name, or continue this run with --resume");
}

std::string name_of_runs(const RunSettings& settings, const std::string& otherwise) {
  return settings.ranks->from_first([&] {
    const std::string name = name_of_run(settings, otherwise), folder = "runs/" + name;
    if (settings.resume && !is_there(folder)) throw Error(folder + ": there is no such folder to continue");
    if (is_there(folder + "/model.safetensors"))
      throw Error(folder +
                  ": a single run is in this folder, expected a folder of several runs; choose another --name");
    return name;
  });
}

void refuse_without_checkpoint(const std::string& folder) {
  const std::string several = join(runs_in(folder), ", ");
  if (!several.empty())
    throw Error(folder + ": several runs are in this folder (" + several +
                "); to continue them repeat the command that started them, with --name");
  if (is_there(folder + "/previous.safetensors"))
    throw Error(folder + ": model.safetensors is missing; the checkpoint before it, previous.safetensors, is there");
  throw Error(folder + ": there is no checkpoint to resume from in this folder; another --name starts another run");
}

}  // namespace petroglyph
