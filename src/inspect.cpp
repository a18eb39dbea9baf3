// Looks into models: ./inspect SUBCOMMAND …, one file each: analysis/inspect_*.cpp.

#include <algorithm>
#include <cstdio>

#include "error.h"
#include "analysis/inspect.h"
#include "program.h"
#include "text.h"

namespace petroglyph {
namespace {

struct Subcommand {
  const char *name, *purpose;
  int (*run)(const std::vector<std::string>& words);
};

constexpr Subcommand SUBCOMMANDS[] = {
    {"heatmap", "where a model of images looks", inspect_heatmap},
    {"neurons", "what the neurons of an MLP language model's first layer compute", inspect_neurons},
    {"positions", "what models with and without positional encodings make of the order of their inputs", inspect_positions},
};

void help() {
  std::printf("Usage: inspect SUBCOMMAND [options]\nLooks into models; `inspect SUBCOMMAND --help` says how.\n\n");
  for (const Subcommand& subcommand : SUBCOMMANDS) std::printf("  %-18s %s\n", subcommand.name, subcommand.purpose);
}

int inspect(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  const std::string name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h") return help(), 0;
  std::vector<std::string> names;
  for (const Subcommand& subcommand : SUBCOMMANDS) {
    if (name == subcommand.name) return subcommand.run(words);
    names.push_back(subcommand.name);
  }
  throw UsageError("unknown subcommand " + name + ", expected one of " + join(names, ", "));
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("inspect", [&] { return petroglyph::inspect(argc, argv); });
}
