// Inspects models: ./inspect SUBCOMMAND …; each subcommand is one file, analysis/inspect_*.cpp.

#include "analysis/inspection.h"
#include "programs/subcommands.h"

namespace petroglyph {
namespace {

const std::vector<Subcommand> SUBCOMMANDS = {
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

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  return run_program("inspect",
                     [&] { return run_subcommand("inspect", "Shows what models compute.", SUBCOMMANDS, argc, argv); });
}
