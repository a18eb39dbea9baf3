// Linear layers and embeddings: everything whose weight is a matrix.

#include <algorithm>

#include "reference/reference.h"
#include "reference/sums.h"

namespace petroglyph {

// ---- Linear layers --------------------------------------------------------------------------------------------------

void Reference::linear(real* y, const real* x, const real* weight, const real* bias, int64_t N, int in, int out,
                       Into into) {
  for (int64_t n = 0; n < N; ++n)
    for (int64_t o = 0; o < out; ++o) {
      const real start = into == Into::ADD ? y[n * out + o] : 0;
      y[n * out + o] = chain_dot(start, x + n * in, weight + o * in, in);
      if (bias) y[n * out + o] += bias[o];
    }
}

void Reference::linear_backward_input(real* dx, const real* dy, const real* weight, int64_t N, int in, int out,
                                      Into into) {
  for (int64_t n = 0; n < N; ++n)
    for (int64_t i = 0; i < in; ++i) {
      const real start = into == Into::ADD ? dx[n * in + i] : 0;
      dx[n * in + i] = chain_dot(start, dy + n * out, {weight + i, in}, out);
    }
}

void Reference::linear_backward_weight(real* dweight, real* dbias, const real* dy, const real* x, int64_t N, int in,
                                       int out) {
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i)
      dweight[o * in + i] = chain_dot(dweight[o * in + i], {dy + o, out}, {x + i, in}, N);
  if (dbias) add_row_backward(dbias, dy, N, out);
}

void Reference::add_row_backward(real* drow, const real* dy, int64_t N, int D) {
  for (int64_t c = 0; c < D; ++c)
    drow[c] = chain_sum(drow[c], N, [&](real sum, int64_t n) { return sum + dy[n * D + c]; });
}

// ---- Embeddings -----------------------------------------------------------------------------------------------------

void Reference::embedding(real* x, const real* token_table, const real* position_table, const int32_t* tokens,
                          int first, int B, int T, int D) {
  for (int64_t n = 0; n < int64_t{B} * T; ++n)
    for (int64_t c = 0; c < D; ++c) x[n * D + c] = token_table[tokens[n] * int64_t{D} + c];
  if (position_table) add_positions(x, position_table, first, B, T, D);
}

namespace {

// table[v·row + c·column] += Σ_n dx_nc over the rows n of dx (N,D) whose token is v, in `chain` order. A chunk without
// v adds nothing.
void add_by_token(real* table, int64_t row, int64_t column, const real* dx, const int32_t* tokens, int64_t N, int D,
                  int V) {
  for (int64_t v = 0; v < V; ++v)
    for (int64_t chunk = 0; chunk < N; chunk += CHAIN) {
      const int64_t end = std::min(chunk + CHAIN, N);
      if (std::find(tokens + chunk, tokens + end, v) == tokens + end) continue;
      for (int64_t c = 0; c < D; ++c) {
        real sum = 0;
        for (int64_t n = chunk; n < end; ++n)
          if (tokens[n] == v) sum += dx[n * D + c];
        table[v * row + c * column] += sum;
      }
    }
}

}  // namespace

void Reference::embedding_backward(real* dtoken_table, real* dposition_table, const real* dx, const int32_t* tokens,
                                   int B, int T, int D, int V) {
  add_by_token(dtoken_table, D, 1, dx, tokens, int64_t{B} * T, D, V);
  if (dposition_table) add_positions_backward(dposition_table, dx, B, T, D);
}

void Reference::linear_one_hot(real* y, const real* weight, const real* bias, const int32_t* tokens, int64_t N, int V,
                               int out) {
  for (int64_t n = 0; n < N; ++n)
    for (int64_t o = 0; o < out; ++o) y[n * out + o] = weight[o * V + tokens[n]] + bias[o];
}

void Reference::linear_one_hot_backward(real* dweight, real* dbias, const real* dy, const int32_t* tokens, int64_t N,
                                        int V, int out) {
  add_by_token(dweight, 1, V, dy, tokens, N, out, V);
  add_row_backward(dbias, dy, N, out);
}

// ---- Positions ------------------------------------------------------------------------------------------------------

void Reference::add_positions(real* x, const real* position_table, int first, int B, int T, int D) {
  for (int64_t n = 0; n < int64_t{B} * T; ++n)
    for (int64_t c = 0; c < D; ++c) x[n * D + c] += position_table[(first + n % T) * D + c];
}

void Reference::add_positions_backward(real* dposition_table, const real* dx, int B, int T, int D) {
  for (int64_t t = 0; t < T; ++t)
    for (int64_t c = 0; c < D; ++c)
      dposition_table[t * D + c] =
          chain_sum(dposition_table[t * D + c], B, [&](real sum, int64_t b) { return sum + dx[(b * T + t) * D + c]; });
}

void Reference::append_class_token(real* x, const real* patches, const real* cls, const real* position_table, int B,
                                   int T, int D) {
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t c = 0; c < D; ++c) x[(b * T + t) * D + c] = t + 1 < T ? patches[(b * (T - 1) + t) * D + c] : cls[c];
  add_positions(x, position_table, 0, B, T, D);
}

void Reference::append_class_token_backward(real* dpatches, real* dcls, real* dposition_table, const real* dx, int B,
                                            int T, int D) {
  for (int64_t b = 0; b < B; ++b) std::copy_n(dx + b * T * D, int64_t{T - 1} * D, dpatches + b * (T - 1) * D);
  for (int64_t c = 0; c < D; ++c)
    dcls[c] = chain_sum(dcls[c], B, [&](real sum, int64_t b) { return sum + dx[(b * T + T - 1) * D + c]; });
  add_positions_backward(dposition_table, dx, B, T, D);
}

}  // namespace petroglyph
