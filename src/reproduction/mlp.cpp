// "MLPs for NLP": to come.

#include "reproduction/experiment.h"

namespace petroglyph {

std::vector<Experiment> mlp_experiments() { return {}; }

}  // namespace petroglyph
