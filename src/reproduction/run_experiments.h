// Experiments one after the other, as ./reproduce run has them.
#pragma once

#include <string>

#include "reproduction/run_options.h"

namespace petroglyph {

// Runs what the options name, or tries it where they ask for a dry run, and prints each experiment's table. One that fails does not
// keep the others from being run. `programs` is the folder of the other programs. The exit status: 0, or INTERRUPTED_STATUS. Throws
// UsageError where the only one that is named lacks its data, and Error, after all have had their turn, where one failed.
int run_experiments(const RunOptions& given, const std::string& programs);

}  // namespace petroglyph
