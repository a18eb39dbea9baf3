// What the runs of a study of scaling gave: tables, parabolas and power laws, curves.
#pragma once

#include <string>
#include <vector>

#include "analysis/scaling_settings.h"
#include "train/study.h"

namespace petroglyph {

// Prints, and leaves its files in the study's folder.
void report_scaling(const std::string& folder, const ScalingSettings& settings, const std::vector<StudyRun>& runs);

}  // namespace petroglyph
