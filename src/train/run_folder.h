// The folders that runs lie in: their names, who may begin one, what is found in one.
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

// The run of this name, which is meant where --resume has none; throws UsageError where there are several, NAME-2 and on.
std::string only_run(const std::string& name);

// Throws Error where the folder of a run is there already; the message says whether a process is at work there, and whether the
// run can go on.
void check_new_run(const std::string& folder);

// The NAME of several runs in runs/NAME/: --name, or the first free one, or with --resume the only one there is. Throws Error if the
// folder holds a single run.
std::string name_of_runs(const RunSettings& settings, const std::string& otherwise);

// Throws Error: this folder has no checkpoint to go on with; the message says what there is.
[[noreturn]] void refuse_without_checkpoint(const std::string& folder);

}  // namespace petroglyph
