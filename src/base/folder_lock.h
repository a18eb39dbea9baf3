// One process at a time writes into a folder. The system holds the lock and lets go of it when the process ends, however it
// ends; the file, FOLDER/.lock, stays and says whose lock it was.
#pragma once

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

 private:
  int descriptor_ = -1;
};

// Of the folder that the file lies in, where it has one already: a run's. Throws Error where another process is at work there.
std::optional<FolderLock> lock_of_run(const std::string& file);

}  // namespace petroglyph
