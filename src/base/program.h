// What every main() does with errors: one line, and the right exit status.
#pragma once

#include <cstdio>
#include <filesystem>
#include <new>
#include <string>

#include "base/error.h"

namespace petroglyph {

constexpr int INTERRUPTED_STATUS = 130;  // what a shell expects after Ctrl-C

// What a process needs before it opens its first file: standard streams that were closed become /dev/null, for else a file of ours
// would get their numbers and what is printed; a file that grows beyond the shell's limit is an error, not the end.
void prepare_process();

// In a child of process `parent`: it gets a SIGTERM, which lets a run save and stop, as soon as that process has ended, however it
// ended. Where the system cannot do that, the folder's lock alone keeps the next process out (base/folder_lock.h).
void end_with_parent(int parent);

// What was printed has also arrived: a full disk is noticed.
inline bool flush_output() { return std::fflush(stdout) == 0 && !std::ferror(stdout); }

// Runs body(), which returns the exit status.
template <class Body>
int run_program(const char* name, Body body) {
  prepare_process();
  try {
    const int status = body();
    if (flush_output() || status != 0) return status;
    std::fprintf(stderr, "%s: cannot write to the standard output\n", name);
    return 1;
  } catch (const UsageError& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  } catch (const std::bad_alloc&) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: out of memory\n", name);
  } catch (const std::filesystem::filesystem_error& error) {  // such as a name too long
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s: %s\n", name, error.path1().c_str(), error.code().message().c_str());
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", name, error.what());
  }
  return 1;
}

}  // namespace petroglyph
