// The subcommands of ./inspect. Each takes the arguments after its name on the command line and returns the exit
// status.
#pragma once

#include <string>
#include <vector>

namespace petroglyph {

int inspect_attention(const std::vector<std::string>& words);
int inspect_clusters(const std::vector<std::string>& words);
int inspect_counts(const std::vector<std::string>& words);
int inspect_heatmap(const std::vector<std::string>& words);
int inspect_info(const std::vector<std::string>& words);
int inspect_lemma1(const std::vector<std::string>& words);
int inspect_neurons(const std::vector<std::string>& words);
int inspect_positions(const std::vector<std::string>& words);
int inspect_receptive_field(const std::vector<std::string>& words);

}  // namespace petroglyph
