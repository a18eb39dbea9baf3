// Which experiments the user means, and what they are.
#pragma once

#include <string>
#include <vector>

#include "reproduction/experiment.h"

namespace petroglyph {

// "all", names, and what names begin with: copy for copy-pre-norm and its sisters. Each once, in the order of the table.
// Throws UsageError for a word that means none.
std::vector<const Experiment*> chosen_experiments(const std::vector<std::string>& words);

// Whether it has a plan of this size of its own; of what has no --full the quick one is the papers' size.
bool has_plan(const Experiment& experiment, Scale::Size size);

// What keeps it from being run at this scale; empty: nothing.
std::string lacking(const Experiment& experiment, const Scale& scale);

// On the terminal: all of them, and one with its commands.
void list_experiments();
void list_experiment(const Experiment& experiment);

// Data that an experiment does not use are none of its business.
Scale scale_for(const Experiment& experiment, const Scale& wanted);

}  // namespace petroglyph
