// Where an inspection leaves its files. In the folder of --out a file that is there is replaced with --force alone; in the folder
// of the checkpoint one that says something else is kept under another name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "figures/figure.h"

namespace petroglyph {

class OutputFolder {
 public:
  // `out` as it was given, or empty; `otherwise` is then the folder: beside the checkpoint. Throws Error, before anything is
  // computed, where one of `names` may not be written.
  OutputFolder(const std::string& out, bool force, const std::string& otherwise, const std::vector<std::string>& names);

  void save(const std::string& name, std::string_view content);
  void save(const std::string& name, const Figure& figure) { save(name, figure.svg()); }
  // "saved FOLDER (a.csv, a.svg)"
  std::string summary() const;

 private:
  void check(const std::string& name) const;

  std::string folder_;
  bool chosen_, force_;
  std::vector<std::string> saved_;
};

// --out and --force of a program whose files lie beside its first checkpoint unless they say otherwise.
void declare_output_folder(Options& options, std::string* out, bool* force);

// The folder that a checkpoint lies in.
std::string folder_of_checkpoint(const std::string& file_or_folder);

}  // namespace petroglyph
