// How every main() handles errors: one line, and the right exit status.
#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"

namespace petroglyph {

constexpr int INTERRUPTED_STATUS = 130;  // what a shell expects after Ctrl-C

// In a child of process `parent`: when that process ends, however it ends, the child gets a SIGTERM, which lets a run
// save and stop. Only on Linux; elsewhere the folder's lock keeps the next process out until the child ends
// (base/folder_lock.h).
void end_with_parent(int parent);

// How the user calls a program of the project: "./train_copy".
std::string called(const std::string& program);

// Whether everything printed could be written: notices a full disk.
inline bool flush_output() { return std::fflush(stdout) == 0 && !std::ferror(stdout); }

// What run_program() begins with. Standard streams that were closed become /dev/null: otherwise the next file that is
// opened would get their numbers, and the printed text. A file that grows beyond the shell's limit is an error, not the
// end. name: for the line of a program that runs out of memory or whose file was cut short while it was read.
void begin_program(const char* name);

// Prints it in one line, whatever bytes of a file or of a command line it contains; returns `status`.
int complain(const char* name, const std::string& sentence, int status);

// Runs body(), which returns the exit status.
template <class Body>
int run_program(const char* name, Body body) {
  begin_program(name);
  try {
    const int status = body();
    if (flush_output() || status != 0) return status;
    return complain(name, "cannot write to the standard output", 1);
  } catch (const UsageError& error) {
    return complain(name, error.what(), 2);
  } catch (const std::filesystem::filesystem_error& error) {  // such as a name too long
    return complain(name, error.path1().empty() ? error.what() : error.path1().string() + ": " + error.code().message(),
                    1);
  } catch (const std::exception& error) {
    return complain(name, error.what(), 1);
  }
}

// The same for body(words), the words of the command line without the program's name.
template <class Body>
int run_program(const char* name, int argc, char** argv, Body body) {
  return run_program(name, [&] { return body(std::vector<std::string>(argv + (argc > 0), argv + argc)); });
}

}  // namespace petroglyph
