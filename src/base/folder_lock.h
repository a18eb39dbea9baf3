// One process at a time writes into a folder. The system releases the lock when the process ends, however it ends; the
// file, FOLDER/.lock, stays and is never written to.
#pragma once

#include <string>

namespace petroglyph {

class FolderLock {
 public:
  // Throws Error if for three seconds another process holds the lock, or a child of one that has died: a child inherits
  // the lock, and needs a moment to save and end.
  explicit FolderLock(const std::string& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  ~FolderLock();

  // Throws Error where the folder was moved, removed or replaced since, or its .lock: the name may be another run's
  // now.
  void check() const;

 private:
  int descriptor_;
  std::string folder_;
};

}  // namespace petroglyph
