// The options of ./reproduce run.
#pragma once

#include <string>
#include <vector>

#include "base/options.h"
#include "reproduction/experiment.h"

namespace petroglyph {

struct RunOptions {
  std::vector<std::string> names;
  bool quick = false, evening = false, full = false;
  Scale scale;
  std::string device = "auto";
  int threads = 0;
  bool quiet = false, dry = false;

  void declare(Options& options);
  // After parsing: the scale's size, and whether what is given fits together. Throws UsageError.
  void finish();
  // Throws an Error where a file or folder that is given cannot be read.
  void check_files() const;
  // The command line that goes on.
  std::string again() const;
};

}  // namespace petroglyph
