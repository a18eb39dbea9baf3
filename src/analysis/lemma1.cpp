#include "analysis/lemma1.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

// A head with zero queries: the scores are r alone, and softmax(r) weights the chunk's vectors; r_0 is the score of
// the last one (eq. 1).
std::vector<int> concatenated_by_two_heads(const std::vector<std::vector<int>>& chunk) {
  constexpr double NEVER = -std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> heads = {{NEVER, 0}, {0, NEVER}};  // r_0, r_1 of each
  std::vector<int> both;
  for (const std::vector<double>& r : heads) {
    const double sum = std::exp(r[0]) + std::exp(r[1]);
    const std::vector<int>&before = chunk.at(0), &own = chunk.at(1);
    for (size_t i = 0; i < own.size(); ++i)
      both.push_back(static_cast<int>((std::exp(r[0]) * own[i] + std::exp(r[1]) * before[i]) / sum));
  }
  return both;
}

std::vector<int> composed_by_layers(const MatrixProductNetwork& network, const Automaton& automaton,
                                    const SymbolString& string) {
  const std::vector<int> identity = transition_matrix(automaton, {});
  const size_t squares = identity.size();
  std::vector<std::vector<int>> layer;
  for (const int32_t symbol : string) layer.push_back(transition_matrix(automaton, {symbol}));
  if (layer.empty()) return identity;
  while (layer.size() > 1) {
    if (layer.size() % 2 == 1) layer.insert(layer.begin(), identity);
    std::vector<std::vector<int>> above;
    for (size_t i = 0; i < layer.size(); i += 2) {
      const std::vector<int> both = concatenated_by_two_heads({layer[i], layer[i + 1]});
      above.push_back(network.multiply({both.begin(), both.begin() + static_cast<std::ptrdiff_t>(squares)},
                                       {both.begin() + static_cast<std::ptrdiff_t>(squares), both.end()}));
    }
    layer = std::move(above);
  }
  return layer[0];
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
