// A page for a browser in a run's folder: its progress, curves and options. It reloads itself during the run.
#pragma once

#include <string>
#include <vector>

#include "train/checkpoint.h"

namespace petroglyph {

struct RunPage {
  std::string name, status;  // "copy", "step 1,200 of 2,000  ETA 0:12"
  bool running = true;
  std::vector<std::string> sample = {};          // lines of text that the model wrote
  std::vector<std::string> without_effect = {};  // options that are not listed
};

// Writes FOLDER/index.html, with the figures that are in the folder.
void write_run_page(const std::string& folder, const RunPage& page, const RunState& state);

// The page of several runs: their figures, and a link to each run's page.
void write_runs_page(const std::string& folder, const std::string& title, const std::vector<std::string>& runs);

}  // namespace petroglyph
