// The report of a scaling study: tables, parabolas, power laws and curves.
#pragma once

#include <string>
#include <vector>

#include "analysis/scaling_settings.h"
#include "figures/figure.h"
#include "train/study.h"

namespace petroglyph {

struct ScalingFigure {
  std::string file;  // "loss.svg"
  Figure figure;
};
// what: compute, context or dct, as in the settings
std::vector<ScalingFigure> scaling_figures(const std::string& what, const std::vector<StudyRun>& runs);

// Prints the report and writes its files into the study's folder.
void report_scaling(const std::string& folder, const ScalingSettings& settings, const std::vector<StudyRun>& runs);

}  // namespace petroglyph
