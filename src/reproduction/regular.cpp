// "Transformer Working Memory Enables Regular Language Reasoning …": to come.

#include "reproduction/experiment.h"

namespace petroglyph {

std::vector<Experiment> regular_experiments() { return {}; }

}  // namespace petroglyph
