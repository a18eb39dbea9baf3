#include "base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"

namespace petroglyph {

// Without O_CLOEXEC: a child that outlives this process may still write into the folder, and holds the lock until it
// ends. A folder from somebody else may have anything as its .lock: a link is refused, and a pipe keeps nobody waiting.
FolderLock::FolderLock(const std::string& folder) : folder_(folder) {
  const std::string path = folder + "/.lock";
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_NONBLOCK | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) throw Error(path + ": cannot be opened: " + std::strerror(errno) + "; nothing was changed");
  for (int tries = 0; flock(descriptor_, LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK) {
      std::fprintf(stderr, "note: %s: this file system has no locks (%s): let one process write here\n", folder.c_str(),
                   std::strerror(errno));
      return;
    }
    if (tries == 150) {
      close(descriptor_);
      throw Error(folder + ": another process is at work in this folder, or a child of one; nothing was changed");
    }
    usleep(20000);
  }
}

FolderLock::~FolderLock() { close(descriptor_); }

// By the lock's file: it is open, and so no other file gets its number, as another folder may get that of a removed
// one.
void FolderLock::check() const {
  struct stat here = {}, held = {};
  const bool found = stat((folder_ + "/.lock").c_str(), &here) == 0 && fstat(descriptor_, &held) == 0;
  if (!found || here.st_dev != held.st_dev || here.st_ino != held.st_ino)
    throw Error(folder_ + ": was moved, removed or replaced while this process was at work in it; what it saved went " +
                "with the folder, and it stops");
}

}  // namespace petroglyph
