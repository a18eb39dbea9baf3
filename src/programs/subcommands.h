// A program of several subcommands, each with options of its own: PROGRAM SUBCOMMAND …
#pragma once

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "base/version.h"

namespace petroglyph {

struct Subcommand {
  const char *name, *purpose;
  std::function<int(const std::vector<std::string>& words)> run;
};

// main(): runs the subcommand that the first word names. about: what the program does, for --help.
inline int run_subcommand(const std::string& program, const std::string& about,
                          const std::vector<Subcommand>& subcommands, int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "--help";
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  if (name == "--version") return std::puts(version().c_str()), 0;
  std::vector<std::string> names;
  std::string list;
  for (const Subcommand& subcommand : subcommands) {
    if (name == subcommand.name) return subcommand.run(words);
    names.push_back(subcommand.name);
    list += text("  %-18s %s\n", subcommand.name, subcommand.purpose);
  }
  if (name != "--help" && name != "-h")
    throw UsageError("unknown subcommand " + name + ", expected one of " + join(names, ", "));
  std::printf("Usage: %s SUBCOMMAND [options]\n%s `%s SUBCOMMAND --help` lists a subcommand's options.\n\n%s",
              program.c_str(), about.c_str(), program.c_str(), list.c_str());
  return 0;
}

}  // namespace petroglyph
