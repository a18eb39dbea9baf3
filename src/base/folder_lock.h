// One process at a time writes into a folder. The system holds the lock and lets go of it when the process ends, however it
// ends; the file, FOLDER/.lock, stays and says whose lock it was.
#pragma once

#include <optional>
#include <string>

namespace petroglyph {

class FolderLock {
 public:
  // Throws Error where another process holds the lock, and names it. Where that one has died and its children still save what
  // they have, waits for them: a child inherits the lock. Throws Error, too, where .lock is not a file of ours: a link, a file with a
  // second name, or one that holds anything but a process's number. It may come from somebody else, and is never written through.
  explicit FolderLock(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

  // Throws Error where the folder was moved, removed or replaced since, or its .lock: the name may be another run's now.
  void check() const;

 private:
  int descriptor_ = -1;
  std::string folder_;
};

// Held while a file or folder is made that must not exist yet, and is looked for once more: of two processes that make one path the
// second waits here, and then finds it. Throws Error after 10 s: whoever may read the folder may hold its lock for ever. On a file
// system without locks nobody waits.
class MakingLock {
 public:
  explicit MakingLock(const std::string& path);
  MakingLock(const MakingLock&) = delete;
  MakingLock& operator=(const MakingLock&) = delete;
  ~MakingLock();

 private:
  int descriptor_;
};

// Throws Error where another process is at work in the folder; writes nothing.
void check_not_locked(const std::string& folder);

// Of the folder that the file lies in, where it has a lock of ours already: a run's. Throws Error where another process is at work
// there.
std::optional<FolderLock> lock_of_run(const std::string& file);

}  // namespace petroglyph
