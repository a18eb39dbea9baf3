// Several runs that belong together, in runs/NAME/, and what defined them:
//
//   runs/NAME/group.json    the program, the words of its command line, and what shaped the runs; --resume goes on with just that
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/folder_lock.h"
#include "base/json.h"
#include "base/options.h"
#include "train/run.h"

namespace petroglyph {

class Group {
 public:
  // Finds the folder. With --resume locks it and holds `options` against those of before: one that shapes the runs, or is among
  // `fixed`, and is given with another value, is an Error.
  Group(const RunSettings& settings, Options& options, const std::string& otherwise,
        const std::vector<std::string>& words, const std::vector<std::string>& fixed);

  const std::string& name() const { return name_; }
  std::string folder() const { return "runs/" + name_; }
  // Of the command line that the runs are made by: those of the beginning, and behind them those of now, which win.
  const std::vector<std::string>& words() const { return words_; }
  // Once the first run is found to be right, and before it writes: the first rank makes and locks the folder, and writes what
  // defines the group, or on a resume what is new.
  void begin();
  // Throws Error where the folder was moved, removed or replaced since.
  void check() const {
    if (lock_) lock_->check();
  }

 private:
  void go_on(Options& options);

  std::shared_ptr<Ranks> ranks_;
  std::string program_, name_;
  std::vector<std::string> words_, fixed_;
  Json definition_;
  std::optional<FolderLock> lock_;
  bool changed_ = true;  // what begin() writes
};

// What an option was in the command line that began the group runs/NAME; empty where there is no such group.
std::string option_of_group(Ranks& ranks, const std::string& name, const std::string& option);

}  // namespace petroglyph
