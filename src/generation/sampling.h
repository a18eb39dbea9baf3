// Draws the next token from a model's logits, bit-identically on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "math/numerics.h"

namespace petroglyph {

struct Sampling {
  double temperature = 1;  // divides the logits; 0 takes the likeliest token
  int top_k = 0;           // only the k likeliest tokens; 0: all
  double top_p = 1;        // only the likeliest tokens whose probabilities together reach this value
};

// Draws one of V tokens. u: uniformly random, 0 ≤ u < 1. Equally likely tokens are ordered by their numbers.
int32_t draw_token(const std::vector<real>& logits, const Sampling& settings, real u);

}  // namespace petroglyph
