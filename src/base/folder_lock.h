// One process at a time writes into a folder. The system holds the lock and lets go of it when the process ends, however it
// ends; the file, FOLDER/.lock, stays and says whose lock it was.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace petroglyph {

class FolderLock {
 public:
  // Throws Error where another process holds the lock, and names it. Where that one has died and its children still save what
  // they have, waits for them: a child inherits the lock.
  explicit FolderLock(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

  // Throws Error where the folder was moved, removed or replaced since: its name may be another run's now.
  void check() const;

 private:
  int descriptor_ = -1;
  std::string folder_;
  dev_t device_ = 0;
  ino_t number_ = 0;
};

// Held while a file or folder is made that must not be there yet, and looked for once more: of two processes that make something in
// one folder the second waits here until the first has done so, and says so, and finds it. Where the system cannot lock the folder
// itself nobody waits.
class MakingLock {
 public:
  explicit MakingLock(const std::string& path);
  MakingLock(const MakingLock&) = delete;
  MakingLock& operator=(const MakingLock&) = delete;
  ~MakingLock();

 private:
  int descriptor_;
};

// Of the folder that the file lies in, where it has one already: a run's. Throws Error where another process is at work there.
std::optional<FolderLock> lock_of_run(const std::string& file);

}  // namespace petroglyph
