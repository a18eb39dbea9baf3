// One process at a time writes into a folder. The system releases the lock when the process ends, however it ends; the
// file, FOLDER/.lock, stays and holds the number of the process.
#pragma once

#include <optional>
#include <string>

namespace petroglyph {

class FolderLock {
 public:
  // Throws Error, which names the process, if another one holds the lock. If that process has died and its children are
  // still saving, waits for them: a child inherits the lock. Also throws Error if .lock is a link, has a second name,
  // or holds anything but a process's number: it may come from another user, and is then never written to.
  explicit FolderLock(const std::string& folder);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

  // Throws Error where the folder was moved, removed or replaced since, or its .lock: the name may be another run's
  // now.
  void check() const;

 private:
  int descriptor_ = -1;
  std::string folder_;
};

// Held while a file or folder that must not exist yet is checked once more and made: if two processes make one path,
// the second waits here, and then finds it. Throws Error after 10 s, since any process that can read the folder can
// hold its lock for ever. On a file system without locks nobody waits.
class MakingLock {
 public:
  explicit MakingLock(const std::string& path);
  MakingLock(const MakingLock&) = delete;
  MakingLock& operator=(const MakingLock&) = delete;
  ~MakingLock();

 private:
  int descriptor_;
};

// Throws Error if another process is at work in the folder; writes nothing.
void check_not_locked(const std::string& folder);

// Locks the folder that contains the file, if it is a run's: if it has a .lock already. Throws Error if another process
// is at work there.
std::optional<FolderLock> lock_of_run(const std::string& file);

}  // namespace petroglyph
