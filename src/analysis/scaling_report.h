// The report of a scaling study: tables, parabolas, power laws and curves.
#pragma once

#include <string>
#include <vector>

#include "train/study.h"

namespace petroglyph {

// Prints the report and writes its files into the study's folder. what: compute, context or dct, as in the settings.
void report_scaling(const std::string& folder, const std::string& what, const std::vector<StudyRun>& runs);

}  // namespace petroglyph
