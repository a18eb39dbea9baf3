// Shared parts of the subcommands of ./inspect: the options of commands that inspect several checkpoints, the opened
// checkpoint, and the output folder. In the folder of --out, an existing file is replaced only with --force. In the
// folder of the checkpoint, an existing file with other content is kept under another name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"
#include "figures/figure.h"
#include "train/checkpoint.h"
#include "train/device.h"

namespace petroglyph {

class OutputFolder {
 public:
  // `out`: the value of --out. If it is empty, the folder is `otherwise`, which is next to the checkpoint. Throws
  // Error before the computation if one of the files `names` may not be written.
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

struct InspectionSettings {
  std::vector<std::string> checkpoints;
  std::string out, device = "auto";
  int threads = 0;
  bool force = false;

  // Declares CHECKPOINT (described by `which`), --out, --force, --device and --threads.
  void declare(Options& options, const std::string& which);
  std::unique_ptr<Ops> make_ops() const { return make_device(device, threads); }
  // The output folder: next to the first checkpoint, unless --out names another one.
  OutputFolder output(const std::vector<std::string>& names) const;
};

// A checkpoint written by one of `programs`, and its model. Throws Error for another program's checkpoint.
struct OpenedCheckpoint {
  OpenedCheckpoint(const std::string& file_or_folder, const std::vector<std::string>& programs, Ops& ops);

  SafetensorsFile file;
  RunState state;
  std::unique_ptr<Model> model;
};

// Opens every checkpoint before the first one is inspected, so that an error in the last one is reported at once.
template <class Subject, class Settings, class Use>
void for_each_checkpoint(const Settings& settings, Ops& ops, Use use) {
  for (const std::string& checkpoint : settings.checkpoints) Subject(checkpoint, settings, ops);
  for (const std::string& checkpoint : settings.checkpoints) {
    Subject subject(checkpoint, settings, ops);
    use(checkpoint, subject);
  }
}

}  // namespace petroglyph
