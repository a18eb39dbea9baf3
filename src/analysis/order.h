// Measures how a model's outputs depend on the order of its inputs: the questions of "Why Are Positional Encodings
// Nonessential for Deep Autoregressive Transformers?", section 3. It also measures where the model's attention is
// concentrated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"
#include "tasks/task.h"

namespace petroglyph {

// Distances between outputs are relative to the norm of the outputs. Outputs that are mathematically equal differ by
// rounding only.
struct OrderSensitivity {
  // The largest distance between the outputs of the original inputs and the outputs of permuted inputs, permuted
  // back. If it is rounding only, the model treats its input as a set ("permutation invariant").
  double moved = 0;
  // The largest distance of the last output after a permutation of all inputs before it.
  double last = 0;
  // The smallest distance of the outputs at and after the first position where the permuted inputs differ. If it is
  // far above rounding, the model is "fully position-sensitive".
  double later = 0;
};

// Uses `trials` random sequences of `length` different tokens, each with a random permutation. The model must have
// logits at every position; 3 ≤ length ≤ vocab.
OrderSensitivity order_sensitivity(Model& model, Ops& ops, int vocab, int length, int trials, uint64_t seed);

// Attention statistics of one layer: the mean over all heads and over all positions except the first, which can
// attend only to itself.
struct Look {
  double own = 0;      // the attention weight on the current input
  double entropy = 0;  // the entropy, relative to that of uniform attention
};
// map: (heads,T,T), causal attention weights; T ≥ 2.
Look look_of(const std::vector<real>& map, int heads, int T);
// For each layer, the mean over the first `windows` evaluation samples of a task.
std::vector<Look> mean_looks(Model& model, Ops& ops, const Task& task, uint64_t seed, int windows, int layers,
                             int heads);
// A row for each layer, and the values under uniform attention over T positions.
void print_looks(const std::vector<Look>& looks, int T);
std::string look_cells(const Look& look);  // of a CSV file
// The mean weight on the current input under uniform attention.
double alike_weight(int T);

}  // namespace petroglyph
