// Preloaded into a program by failing_calls.cpp: its N-th allocation fails, or its N-th call that reaches a file or a
// process.
//
//   FAIL_KIND   memory or calls
//   FAIL_AT     N, from 1 at the start of the program, before main(); 0: none fails, all are counted
//   FAIL_STAYS  1: every later one of the kind fails, too
//   FAIL_LOG    this file gets how many there were, and the name of the one that failed
//
// Only for glibc, whose allocator has second names.

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
}

namespace {

bool begun = false, of_memory = false, stays = false;
long fails_at = 0, seen = 0;
const char* failed = "none";

bool fails(bool memory, const char* name) {
  if (!begun || memory != of_memory) return false;
  ++seen;
  if (fails_at == 0 || (stays ? seen < fails_at : seen != fails_at)) return false;
  failed = name;
  errno = memory ? ENOMEM : EIO;
  return true;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

__attribute__((destructor)) void end() {
  begun = false;
  const char* path = getenv("FAIL_LOG");
  if (!path) return;
  char line[128];
  const int size = snprintf(line, sizeof line, "%ld %s\n", seen, failed);
  const long log = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (log >= 0) syscall(SYS_write, log, line, size_t(size)), syscall(SYS_close, log);
}

}  // namespace

extern "C" {

// Calls the constructors of the program's static objects, then main().
int __libc_start_main(int (*main)(int, char**, char**), int words, char** word, void (*init)(), void (*fini)(),
                      void (*loader)(), void* stack) {
  const char *kind = getenv("FAIL_KIND"), *at = getenv("FAIL_AT"), *more = getenv("FAIL_STAYS");
  const auto start = next<decltype(&__libc_start_main)>("__libc_start_main");
  of_memory = kind && strcmp(kind, "memory") == 0;
  fails_at = at ? atol(at) : 0;
  stays = more && *more == '1';
  begun = kind != nullptr;
  return start(main, words, word, init, fini, loader, stack);
}

void* malloc(size_t size) { return fails(true, "malloc") ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails(true, "calloc") ? nullptr : __libc_calloc(count, size); }
void* realloc(void* at, size_t size) { return fails(true, "realloc") ? nullptr : __libc_realloc(at, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return fails(true, "aligned_alloc") ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** at, size_t alignment, size_t size) {
  void* const got = fails(true, "posix_memalign") ? nullptr : __libc_memalign(alignment, size);
  if (got) *at = got;
  return got ? 0 : ENOMEM;
}

// A call of a fixed list of arguments, which gives `otherwise` where it fails.
#define CALL(type, name, parameters, arguments, otherwise)        \
  type name parameters {                                          \
    static const auto original = next<type(*) parameters>(#name); \
    if (fails(false, #name)) return otherwise;                    \
    return original arguments;                                    \
  }
#define OPEN(name)                                                            \
  int name(const char* path, int how, ...) {                                  \
    va_list more;                                                             \
    va_start(more, how);                                                      \
    const int mode = how & O_CREAT ? va_arg(more, int) : 0;                   \
    va_end(more);                                                             \
    static const auto original = next<int (*)(const char*, int, ...)>(#name); \
    return fails(false, #name) ? -1 : original(path, how, mode);              \
  }

OPEN(open)
OPEN(open64)
CALL(FILE*, fopen, (const char* path, const char* mode), (path, mode), nullptr)
CALL(FILE*, fopen64, (const char* path, const char* mode), (path, mode), nullptr)
CALL(DIR*, opendir, (const char* path), (path), nullptr)
CALL(struct dirent*, readdir, (DIR * folder), (folder), nullptr)
CALL(struct dirent64*, readdir64, (DIR * folder), (folder), nullptr)
CALL(int, stat, (const char* path, struct stat* at), (path, at), -1)
CALL(int, stat64, (const char* path, struct stat64* at), (path, at), -1)
CALL(int, lstat, (const char* path, struct stat* at), (path, at), -1)
CALL(int, lstat64, (const char* path, struct stat64* at), (path, at), -1)
CALL(int, fstat, (int file, struct stat* at), (file, at), -1)
CALL(int, fstat64, (int file, struct stat64* at), (file, at), -1)
CALL(ssize_t, read, (int file, void* to, size_t size), (file, to, size), -1)
CALL(ssize_t, pread, (int file, void* to, size_t size, off_t at), (file, to, size, at), -1)
CALL(ssize_t, pread64, (int file, void* to, size_t size, off64_t at), (file, to, size, at), -1)
CALL(ssize_t, write, (int file, const void* from, size_t size), (file, from, size), -1)
CALL(ssize_t, pwrite, (int file, const void* from, size_t size, off_t at), (file, from, size, at), -1)
CALL(ssize_t, pwrite64, (int file, const void* from, size_t size, off64_t at), (file, from, size, at), -1)
CALL(int, ftruncate, (int file, off_t size), (file, size), -1)
CALL(int, ftruncate64, (int file, off64_t size), (file, size), -1)
CALL(int, fsync, (int file), (file), -1)
CALL(int, flock, (int file, int how), (file, how), -1)
CALL(int, rename, (const char* from, const char* to), (from, to), -1)
CALL(int, link, (const char* from, const char* to), (from, to), -1)
CALL(int, unlink, (const char* path), (path), -1)
CALL(int, mkdir, (const char* path, mode_t mode), (path, mode), -1)
CALL(pid_t, fork, (), (), -1)
void* mmap(void* at, size_t size, int protection, int how, int file, off_t offset) {
  static const auto original = next<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  return file >= 0 && fails(false, "mmap") ? MAP_FAILED : original(at, size, protection, how, file, offset);
}

}  // extern "C"
