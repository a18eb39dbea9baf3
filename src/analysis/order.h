// What a model's outputs make of the order of its inputs, measured: the questions of "Why Are Positional Encodings
// Nonessential for Deep Autoregressive Transformers?", section 3; and where its attention looks.
#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace petroglyph {

// Distances between outputs are relative to their norm; what a mathematician calls equal is apart by rounding only.
struct OrderSensitivity {
  // The outputs of permuted inputs, permuted back, against those of the inputs: the largest distance. Rounding only: the
  // model sees a set ("permutation invariant").
  double moved = 0;
  // The last output, after a permutation of all inputs before it: the largest distance.
  double last = 0;
  // Outputs at and after the first position where permuted inputs differ: the smallest distance. Far from rounding: "fully
  // position-sensitive".
  double later = 0;
};

enum class LogitsFrom { PARALLEL, DECODING };  // all positions at once, or one token after another

// Over `trials` random sequences of `length` different tokens, each with a random permutation. The model reads out every
// position. Throws Error where vocab < length or length < 3. Of fewer trials where it is interrupted.
OrderSensitivity order_sensitivity(Model& model, Ops& ops, int vocab, int length, int trials, uint64_t seed,
                                   LogitsFrom pass = LogitsFrom::PARALLEL);

// Of a layer's attention: the mean of all heads and of all positions but the first, which has nowhere else to look.
struct Look {
  double own = 0;      // the weight on the new input
  double entropy = 0;  // as a part of that of looking everywhere alike
};
// map: (heads,T,T), of causal attention; T is 2 at least.
Look look_of(const std::vector<real>& map, int heads, int T);
// Of a layer, the mean over the first `windows` samples of the last forward pass.
Look mean_look(Model& model, size_t layer, int windows, int heads, int T);
// The weight on the new input of who looks everywhere alike.
double alike_weight(int T);

}  // namespace petroglyph
