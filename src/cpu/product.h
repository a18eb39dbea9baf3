// The matrix product behind every linear operation.
#pragma once

#include "ops.h"

namespace petroglyph {

// The contract cuts every fma chain of a product after this many terms, so that a GPU may give each piece to another
// block: 1024 rows of a weight's gradient.
constexpr int64_t CHUNK = 1024;

// A matrix in any layout: element (i,k) is data[i·row + k·column].
struct View {
  const real* data;
  int64_t row, column;
};

// c (M,N) = a (M,K) · b (K,N) + bias, starting from zero or from what c holds. A chain's sum is always added to its start,
// so that a product that leaves out terms with a factor zero has the same bits (0 + −0 = 0).
struct Product {
  real* c;
  int64_t c_row;
  View a, b;
  int64_t M, N, K;
  Into into;
  const real* bias = nullptr;  // (N)
};

// Does it all on the calling thread, with PACKED_SIZE reals of scratch.
void multiply(const Product& p, real* scratch);
extern const int64_t PACKED_SIZE;

}  // namespace petroglyph
