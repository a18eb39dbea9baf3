// The folders of runs: their names, whether a run may start in one, which runs are in one.
#pragma once

#include <string>
#include <vector>

namespace petroglyph {

struct RunSettings;

// A name is a folder's, not a path; throws UsageError.
void check_run_name(const std::string& name);
// The first of runs/NAME, runs/NAME-2, … that is not there yet.
std::string free_run_name(const std::string& name);

// The folders of runs with a checkpoint in a folder; of more than four the first ones, and "…".
std::vector<std::string> runs_in(const std::string& folder);

// The NAME of a run, or of several runs in runs/NAME/: --name, or `otherwise`, for a new run the first free one. The
// first rank alone calls it.
std::string name_of_run(const RunSettings& settings, const std::string& otherwise);

// Throws Error if the folder of a run exists already.
void check_new_run(const std::string& folder);

// The same name on all ranks. Throws Error if the folder holds a single run.
std::string name_of_runs(const RunSettings& settings, const std::string& otherwise);

// Throws Error: this folder has no checkpoint to resume from; the message says what is there.
[[noreturn]] void refuse_without_checkpoint(const std::string& folder);

}  // namespace petroglyph
