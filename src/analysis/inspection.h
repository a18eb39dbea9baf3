// What the subcommands of ./inspect share: the options of those that look into one checkpoint after another, the opened checkpoint,
// and the folder of their files. In the folder of --out a file that is there is replaced with --force alone; in the folder
// of the checkpoint one that says something else is kept under another name.
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

struct InspectionSettings {
  std::vector<std::string> checkpoints;
  std::string out, device = "auto";
  int threads = 0;
  bool force = false;

  // CHECKPOINT, described by `which`, --out, --force, --device and --threads.
  void declare(Options& options, const std::string& which);
  std::unique_ptr<Ops> make_ops() const { return make_device(device, threads); }
  // Beside the first checkpoint unless --out names another folder.
  OutputFolder output(const std::vector<std::string>& names) const;
};

// A checkpoint of one of `programs`, and its model. Throws Error for another program's.
struct OpenedCheckpoint {
  OpenedCheckpoint(const std::string& file_or_folder, const std::vector<std::string>& programs, Ops& ops);

  SafetensorsFile file;
  RunState state;
  std::unique_ptr<Model> model;
};

// Opens every checkpoint before the first is looked into: what is wrong with the last shows at once.
template <class Subject, class Settings, class Use>
void for_each_checkpoint(const Settings& settings, Ops& ops, Use use) {
  for (const std::string& checkpoint : settings.checkpoints) Subject(checkpoint, settings, ops);
  for (const std::string& checkpoint : settings.checkpoints) {
    Subject subject(checkpoint, settings, ops);
    use(checkpoint, subject);
  }
}

}  // namespace petroglyph
