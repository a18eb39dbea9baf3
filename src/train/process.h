// Runs a part of a program in another process, which shares no memory with it.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/program.h"

namespace petroglyph {

// Runs body(), which returns the exit status, and gives the number of its process.
template <class Body>
pid_t in_a_process(const std::string& program, Body body) {
  std::fflush(stdout);
  std::fflush(stderr);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw Error(program + ": cannot start a process: " + std::strerror(errno));
  if (child > 0) return child;
  end_with_parent(parent);  // if the program is killed, its processes save and stop
  const int status = run_program(program.c_str(), body);
  std::fflush(stdout);
  _exit(status);
}

}  // namespace petroglyph
