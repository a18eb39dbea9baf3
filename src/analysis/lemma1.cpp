#include "analysis/lemma1.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// y = x W, W (rows, columns)
std::vector<int> times(const std::vector<int>& x, const std::vector<int>& weight, int64_t columns) {
  std::vector<int> y(static_cast<size_t>(columns));
  for (size_t row = 0; row < x.size(); ++row)
    for (size_t column = 0; column < y.size(); ++column) y[column] += x[row] * weight[row * y.size() + column];
  return y;
}

void check_matrix(const std::vector<int>& matrix, int n) {
  if (matrix.size() != static_cast<size_t>(n) * n)
    throw Error(text("lemma 1: a matrix of %zu numbers, expected %d×%d", matrix.size(), n, n));
  if (std::any_of(matrix.begin(), matrix.end(), [](int x) { return x != 0 && x != 1; }))
    throw Error("lemma 1: its matrices have the entries 0 and 1 only");
}

}  // namespace

MatrixProductNetwork::MatrixProductNetwork(int n) : n_(n) {
  constexpr int LARGEST = 64;  // 64⁵ · 2 is 2³¹
  if (n < 1 || n > LARGEST) throw Error(text("lemma 1: matrices of %d rows, expected 1 to %d", n, LARGEST));
  const size_t rows = static_cast<size_t>(n), squares = rows * rows, products = squares * rows;
  first_.resize(2 * squares * products);
  second_.resize(products * squares);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < rows; ++j)
      for (size_t k = 0; k < rows; ++k) {
        const size_t product = i * squares + j * rows + k;
        first_[(i * rows + k) * products + product] = 1;            // A_ik
        first_[(squares + k * rows + j) * products + product] = 1;  // B_kj
        second_[product * squares + i * rows + j] = 1;
      }
}

std::vector<int> MatrixProductNetwork::hidden(const std::vector<int>& a, const std::vector<int>& b) const {
  check_matrix(a, n_);
  check_matrix(b, n_);
  std::vector<int> both = a;
  both.insert(both.end(), b.begin(), b.end());
  std::vector<int> y = times(both, first_, static_cast<int64_t>(n_) * n_ * n_);
  for (int& x : y) x = std::max(x - 1, 0);
  return y;
}

std::vector<int> MatrixProductNetwork::multiply(const std::vector<int>& a, const std::vector<int>& b) const {
  return times(hidden(a, b), second_, static_cast<int64_t>(n_) * n_);
}

std::vector<int> transition_matrix(const Automaton& automaton, const SymbolString& string) {
  const int states = automaton.states();
  std::vector<int> matrix(static_cast<size_t>(states) * states);
  for (int q = 0; q < states; ++q) {
    int state = q;
    for (const int32_t symbol : string) state = automaton.next(state, symbol);
    matrix[static_cast<size_t>(q) * states + state] = 1;
  }
  return matrix;
}

}  // namespace petroglyph
