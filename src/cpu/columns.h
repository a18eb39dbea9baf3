// Sums over the rows of a matrix (N,D), one for each column: gradients of biases, gains and position tables. The loop
// that defines the order is chain_sum() in reference/sums.h.
#pragma once

#include <algorithm>

#include "cpu/loops.h"
#include "cpu/product.h"

namespace petroglyph {

// to_c += Σ_n term for the columns c < D: rows ascending, cut every CHUNK rows. add(sum, n, c) returns the sum after it
// has added the term of row n.
template <class Add>
void sum_columns(const Threads& threads, real* to, int64_t N, int64_t D, Add add,
                 const char* caller = __builtin_FUNCTION()) {
  constexpr int64_t COLUMNS = 64;  // of one task
  const auto some_columns = [&](int64_t begin, int64_t end, int) {
    real sum[COLUMNS];
    for (int64_t chunk = 0; chunk < N; chunk += CHUNK) {
      std::fill_n(sum, end - begin, real(0));
      for (int64_t n = chunk; n < std::min(chunk + CHUNK, N); ++n)
        for (int64_t c = begin; c < end; ++c) sum[c - begin] = add(sum[c - begin], n, c);
      for (int64_t c = begin; c < end; ++c) to[c] += sum[c - begin];
    }
  };
  parallel(threads, D, COLUMNS, N * D * PASS, some_columns, caller);
}

}  // namespace petroglyph
