// What a model's outputs make of the order of its inputs, measured: the questions of "Why Are Positional Encodings
// Nonessential for Deep Autoregressive Transformers?", section 3.
#pragma once

#include <cstdint>

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

enum class Pass { PARALLEL, STREAM };  // all positions at once, or one token after another

// Over `trials` random sequences of `length` different tokens, each with a random permutation. The model reads out every
// position. Throws Error where vocab < length or length < 3.
OrderSensitivity order_sensitivity(Model& model, Ops& ops, int vocab, int length, int trials, uint64_t seed,
                                   Pass pass = Pass::PARALLEL);

}  // namespace petroglyph
