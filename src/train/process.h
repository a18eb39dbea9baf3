// A part of a program in a process of its own, which shares nothing with it any more.
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
  end_with_parent(parent);  // who kills the program ends its processes, which save and stop
  const int status = run_program(program.c_str(), body);
  std::fflush(stdout);
  _exit(status);
}

}  // namespace petroglyph
