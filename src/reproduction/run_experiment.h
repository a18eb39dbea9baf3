// Runs the commands of an experiment, and resumes interrupted ones.
//
//   runs/reproduce-quick-NAME/        runs.csv, the output of the runs, and the tables and pictures that the pages need
//   runs/reproduce-quick-NAME.RUN/    the run itself
#pragma once

#include <string>
#include <vector>

#include "reproduction/experiment.h"

namespace petroglyph {

// programs: the folder with the other programs; device: the --device of those that compute. Finished runs are not
// repeated. Returns the exit status: 0, or INTERRUPTED_STATUS. Throws Error if a command fails.
int run_plan(const Plan& plan, const std::string& programs, const std::string& device);

bool has_device(const PlannedRun& run);  // whether its command has --device

std::string folder_of(const Plan& plan);  // runs/reproduce-quick-copy-curves
// "./train_copy --length 16 … --name reproduce-quick-copy-curves.train", as a user would type it.
std::vector<std::string> command_words(const Plan& plan, const PlannedRun& run);
std::string command_line(const Plan& plan, const PlannedRun& run);

}  // namespace petroglyph
