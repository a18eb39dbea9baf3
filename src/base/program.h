// What every main() does with errors: one line, and the right exit status.
#pragma once

#include <cstdio>
#include <new>
#include <string>

#include "base/error.h"

namespace petroglyph {

constexpr int INTERRUPTED_STATUS = 130;  // what a shell expects after Ctrl-C

// What was printed has also arrived: a full disk is noticed.
inline bool flush_output() { return std::fflush(stdout) == 0 && !std::ferror(stdout); }

// Runs body(), which returns the exit status.
template <class Body>
int run_program(const char* name, Body body) {
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
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", name, error.what());
  }
  return 1;
}

}  // namespace petroglyph
