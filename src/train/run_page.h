// A page for a browser in a run's folder: how far it is, its curves, its options. While the run goes on it reloads itself.
#pragma once

#include <string>

#include "train/checkpoint.h"

namespace petroglyph {

struct RunPage {
  std::string name, status;  // "copy", "step 1,200 of 2,000  ETA 0:12"
  bool running = true;
};

// Writes FOLDER/index.html.
void write_run_page(const std::string& folder, const RunPage& page, const RunState& state);

}  // namespace petroglyph
