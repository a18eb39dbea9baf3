// Linear layers y (N,out) = x (N,in) Wᵀ + bias, embeddings x (B,T,D), and linear layers of one-hot inputs. The loops
// that define them are in reference/linear.cpp.

#include <algorithm>

#include "cpu/columns.h"
#include "cpu/cpu.h"
#include "cpu/loops.h"

namespace petroglyph {

void Cpu::linear(real* y, const real* x, const real* weight, const real* bias, int64_t N, int in, int out, Into into) {
  product({y, out, {x, in, 1}, {weight, 1, in}, N, out, in, into, bias});
}

void Cpu::linear_backward_input(real* dx, const real* dy, const real* weight, int64_t N, int in, int out, Into into) {
  product({dx, in, {dy, out, 1}, {weight, in, 1}, N, in, out, into});
}

void Cpu::linear_backward_weight(real* dweight, real* dbias, const real* dy, const real* x, int64_t N, int in,
                                 int out) {
  product_of_transposed({dweight, in, {dy, 1, out}, {x, in, 1}, out, in, N, Into::ADD}, dbias);
}

void Cpu::add_row_backward(real* drow, const real* dy, int64_t N, int D) {
  sum_columns(threads_, drow, N, D, [&](real sum, int64_t n, int64_t c) { return sum + dy[n * D + c]; });
}

void Cpu::embedding(real* x, const real* token_table, const real* position_table, const int32_t* tokens, int first,
                    int B, int T, int D) {
  parallel_rows(threads_, static_cast<int64_t>(B) * T, 64, int64_t{1} * B * T * D * PASS, [&](int64_t n, int) {
    const real* token = token_table + static_cast<int64_t>(tokens[n]) * D;
    if (!position_table) {
      std::copy_n(token, D, x + n * D);
      return;
    }
    const real* position = position_table + (first + n % T) * D;
    for (int c = 0; c < D; ++c) x[n * D + c] = token[c] + position[c];
  });
}

namespace {

// A table with one row for each token. Column c of row v is data[v·row + c·column].
struct Table {
  real* data;
  int64_t row, column;
};

// table_v += Σ dx_n over the rows n with tokens_n = v, for the columns begin … end−1. The partial sums of one chunk of
// rows are in slots, in the order in which their tokens first occur. So memory and time depend on the number of rows;
// only slot_of is as long as the vocabulary.
void scatter_columns(Table table, const real* dx, const int32_t* tokens, int64_t rows, int D, int64_t begin,
                     int64_t end, std::vector<int>& slot_of, std::vector<int32_t>& token_of, real* sums) {
  const int64_t width = end - begin;
  for (int64_t chunk = 0; chunk < rows; chunk += CHUNK) {
    token_of.clear();
    for (int64_t n = chunk; n < std::min(chunk + CHUNK, rows); ++n) {
      int& slot = slot_of[static_cast<size_t>(tokens[n])];
      if (slot < 0) {
        slot = static_cast<int>(token_of.size());
        token_of.push_back(tokens[n]);
        std::fill_n(sums + slot * width, width, real(0));
      }
      for (int64_t c = begin; c < end; ++c) sums[slot * width + c - begin] += dx[n * D + c];
    }
    for (size_t slot = 0; slot < token_of.size(); ++slot) {
      slot_of[static_cast<size_t>(token_of[slot])] = -1;
      real* row = table.data + static_cast<int64_t>(token_of[slot]) * table.row;
      const real* sum = sums + static_cast<int64_t>(slot) * width;
      for (int64_t c = begin; c < end; ++c) row[c * table.column] += sum[c - begin];
    }
  }
}

constexpr int64_t SCATTER_COLUMNS = 32;  // columns of one task, and of its sums in the scratch

void scatter(const Threads& threads, Table table, const real* dx, const int32_t* tokens, int64_t rows, int D, int V,
             const std::vector<Tensor>& scratch) {
  std::vector<std::vector<int>> slot_of(scratch.size(), std::vector<int>(static_cast<size_t>(V), -1));
  std::vector<std::vector<int32_t>> token_of(scratch.size());
  for (auto& list : token_of) list.reserve(static_cast<size_t>(CHUNK));
  parallel(threads, D, SCATTER_COLUMNS, rows * D * PASS, [&](int64_t begin, int64_t end, int thread) {
    const size_t t = static_cast<size_t>(thread);
    scatter_columns(table, dx, tokens, rows, D, begin, end, slot_of[t], token_of[t], scratch[t].data());
  });
}

}  // namespace

void Cpu::embedding_backward(real* dtoken_table, real* dposition_table, const real* dx, const int32_t* tokens, int B,
                             int T, int D, int V) {
  reserve_scratch(CHUNK * SCATTER_COLUMNS);
  scatter(threads_, {dtoken_table, D, 1}, dx, tokens, static_cast<int64_t>(B) * T, D, V, scratch_);
  if (dposition_table) add_positions_backward(dposition_table, dx, B, T, D);
}

void Cpu::add_positions(real* x, const real* position_table, int first, int B, int T, int D) {
  parallel_rows(threads_, static_cast<int64_t>(B) * T, 64, int64_t{1} * B * T * D * PASS, [&](int64_t n, int) {
    const real* position = position_table + (first + n % T) * D;
    for (int c = 0; c < D; ++c) x[n * D + c] += position[c];
  });
}

void Cpu::add_positions_backward(real* dposition_table, const real* dx, int B, int T, int D) {
  add_row_backward(dposition_table, dx, B, T * D);  // dx (B,T·D)
}

void Cpu::append_class_token(real* x, const real* patches, const real* cls, const real* position_table, int B, int T,
                             int D) {
  parallel_rows(threads_, static_cast<int64_t>(B) * T, 64, int64_t{1} * B * T * D * PASS, [&](int64_t n, int) {
    const int64_t b = n / T, t = n % T;
    const real *row = t == T - 1 ? cls : patches + (n - b) * D, *position = position_table + t * D;
    for (int c = 0; c < D; ++c) x[n * D + c] = row[c] + position[c];
  });
}

void Cpu::append_class_token_backward(real* dpatches, real* dcls, real* dposition_table, const real* dx, int B, int T,
                                      int D) {
  const size_t row = static_cast<size_t>(D) * sizeof(real), T1 = static_cast<size_t>(T) - 1;
  copy(dpatches, T1 * row, dx, (T1 + 1) * row, T1 * row, static_cast<size_t>(B));
  add_positions_backward(dposition_table, dx, B, T, D);
  sum_columns(threads_, dcls, B, D,
              [&](real sum, int64_t b, int64_t c) { return sum + dx[((b + 1) * T - 1) * D + c]; });
}

// ---- One-hot inputs -----------------------------------------------------------------------------------------------

void Cpu::linear_one_hot(real* y, const real* weight, const real* bias, const int32_t* tokens, int64_t N, int V,
                         int out) {
  // The weights of one token are V numbers apart: those of 64 columns stay in the cache for all rows.
  parallel(threads_, out, 64, N * out * PASS, [&](int64_t begin, int64_t end, int) {
    for (int64_t n = 0; n < N; ++n)
      for (int64_t c = begin; c < end; ++c) y[n * out + c] = weight[c * V + tokens[n]] + bias[c];
  });
}

void Cpu::linear_one_hot_backward(real* dweight, real* dbias, const real* dy, const int32_t* tokens, int64_t N, int V,
                                  int out) {
  reserve_scratch(CHUNK * SCATTER_COLUMNS);
  scatter(threads_, {dweight, 1, V}, dy, tokens, N, out, V, scratch_);
  add_row_backward(dbias, dy, N, out);
}

}  // namespace petroglyph
