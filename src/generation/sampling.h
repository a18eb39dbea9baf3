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
class Sampler {
 public:
  explicit Sampler(const Sampling& settings) : settings_(settings) {}
  int32_t draw(const std::vector<real>& logits, real u);

 private:
  struct Candidate {
    int32_t token;
    double weight;  // exp((logit − largest) / temperature), with Petroglyph's own exp
  };
  size_t keep_likeliest();

  Sampling settings_;
  std::vector<Candidate> candidates_;
};

}  // namespace petroglyph
