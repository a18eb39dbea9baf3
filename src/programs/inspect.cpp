// Inspects models: ./inspect SUBCOMMAND …; each subcommand is one file, analysis/inspect_*.cpp.

#include <algorithm>
#include <cstdio>

#include "analysis/inspect.h"
#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "base/version.h"

namespace petroglyph {
namespace {

struct Subcommand {
  const char *name, *purpose;
  int (*run)(const std::vector<std::string>& words);
};

constexpr Subcommand SUBCOMMANDS[] = {
    {"attention", "where the layers of a Transformer of text look", inspect_attention},
    {"clusters", "what the layers of a model of regular languages make of a string", inspect_clusters},
    {"counts", "what tables of the last few tokens would get on a text: a yardstick for models", inspect_counts},
    {"heatmap", "where a model of images looks", inspect_heatmap},
    {"info", "what a checkpoint is, of ours or any safetensors file: model, sizes, step, options, tensors",
     inspect_info},
    {"lemma1", "an MLP that multiplies matrices of 0 and 1, and so composes what strings do to states", inspect_lemma1},
    {"neurons", "what the neurons of an MLP language model's first layer compute", inspect_neurons},
    {"positions", "what models with and without positional encodings make of the order of their inputs",
     inspect_positions},
    {"receptive-field", "how far back a model of text or regular languages looks", inspect_receptive_field},
};

void help() {
  std::printf(
      "Usage: inspect SUBCOMMAND [options]\nShows what models compute; `inspect SUBCOMMAND --help` lists a "
      "subcommand's options.\n\n");
  for (const Subcommand& subcommand : SUBCOMMANDS) std::printf("  %-18s %s\n", subcommand.name, subcommand.purpose);
}

int inspect(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 2), argv + argc);
  const std::string name = argc > 1 ? argv[1] : "--help";
  if (name == "--help" || name == "-h") return help(), 0;
  if (name == "--version") return std::puts(version().c_str()), 0;
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
