#include "train/run_folder.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"
#include "base/program.h"
#include "base/text.h"
#include "train/run.h"

namespace petroglyph {

namespace {

constexpr size_t LONGEST_NAME = 200;  // a file system takes 255 bytes, and NAME.before-2 must fit too

// The last row of a run that has ended speaks of an evaluation alone.
std::string steps_in(const CsvTable& log) {
  const std::vector<double>& losses = log.column("loss");
  const auto steps = std::count_if(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  return counted(steps, "step");
}

std::vector<std::string> some_of(std::vector<std::string> names) {
  constexpr size_t MOST = 4;
  if (names.size() > MOST) names.resize(MOST), names.push_back("…");
  return names;
}

}  // namespace

std::vector<std::string> runs_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const std::string& name : names_in(folder))
    if (is_there(folder + "/" + name + "/model.safetensors") && is_there(folder + "/" + name + "/log.csv"))
      names.push_back(name);
  return some_of(names);
}

void check_run_name(const std::string& name) {
  const bool good = !name.empty() && name[0] != '.' && name[0] != '-' &&
                    std::all_of(name.begin(), name.end(),
                                [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
  if (name.size() > LONGEST_NAME)
    throw UsageError(text("--name %s…: %zu letters long, expected at most %zu", name.substr(0, 16).c_str(), name.size(),
                          LONGEST_NAME));
  if (!good)
    throw UsageError("--name " + name +
                     ": expected letters, digits, '-', '_' and '.', the first of them no '.' and no '-'");
}

std::string free_run_name(const std::string& name) {
  std::string candidate = name;
  for (int i = 2; is_there("runs/" + candidate); ++i) candidate = name + "-" + std::to_string(i);
  return candidate;
}

std::string only_run(const std::string& name) {
  const auto is_one = [&](const std::string& run) {  // NAME, or NAME-2 and on, which free_run_name made of it
    const int64_t number = parse_integer(run.substr(std::min(run.size(), name.size() + 1))).value_or(0);
    return run == name || (number > 1 && run == name + "-" + std::to_string(number));
  };
  std::vector<std::string> runs;
  for (const std::string& run : names_in("runs"))
    if (is_one(run) && std::filesystem::is_directory("runs/" + run)) runs.push_back(run);
  if (runs.size() > 1)
    throw UsageError("--resume: there are several runs, expected --name with one of " + join(some_of(runs), ", "));
  return runs.empty() ? name : runs[0];
}

void check_new_run(const std::string& folder) {
  if (!is_there(folder)) return;
  if (!std::filesystem::is_directory(folder))
    throw Error(folder + ": exists already and is no folder; choose another --name");
  const auto has = [&](const char* file) { return is_there(folder + "/" + file); };
  if (!has("model.safetensors") && !has("previous.safetensors"))
    throw Error(folder + ": this folder exists already and has no checkpoint to resume from; choose another --name");
  throw Error(folder + ": this run exists already; continue it with --resume, or choose another --name");
}

std::string name_of_runs(const RunSettings& settings, const std::string& otherwise) {
  return settings.ranks->from_first([&] {
    std::string name = settings.name;
    if (name.empty()) name = settings.resume ? only_run(otherwise) : free_run_name(otherwise);
    check_run_name(name);
    if (settings.resume && !is_there("runs/" + name))
      throw Error("runs/" + name + ": there is no such folder to continue");
    if (is_there("runs/" + name + "/model.safetensors"))
      throw Error("runs/" + name +
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
  const std::string log = folder + "/log.csv";
  const std::string rows = is_there(log) ? ", only a log of " + steps_in(read_csv(log)) : "";
  throw Error(folder + ": there is no checkpoint to resume from in this folder" + rows +
              "; another --name starts another run");
}

}  // namespace petroglyph
