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

// The run that --resume continues without --name; throws UsageError if there are several: NAME, NAME-2 and so on.
std::string only_run(const std::string& name);

// Throws Error if the folder of a run exists already; the message says whether a process is at work there, and whether
// the run can be resumed.
void check_new_run(const std::string& folder);

// The NAME of several runs in runs/NAME/: --name, or the first free one, or with --resume the only one there is. Throws
// Error if the folder holds a single run.
std::string name_of_runs(const RunSettings& settings, const std::string& otherwise);

// Throws Error: this folder has no checkpoint to resume from; the message says what is there.
[[noreturn]] void refuse_without_checkpoint(const std::string& folder);

}  // namespace petroglyph
