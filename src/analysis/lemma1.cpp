#include "analysis/lemma1.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace petroglyph {

namespace {

// y = x W, W (rows, columns)
std::vector<int> times(const std::vector<int>& x, const std::vector<int>& weight, size_t columns) {
  std::vector<int> y(columns);
  for (size_t row = 0; row < x.size(); ++row)
    for (size_t column = 0; column < columns; ++column) y[column] += x[row] * weight[row * columns + column];
  return y;
}

}  // namespace

MatrixProductNetwork::MatrixProductNetwork(int n) : n_(static_cast<size_t>(n)) {
  const size_t squares = n_ * n_, products = squares * n_;
  first_.resize(2 * squares * products);
  second_.resize(products * squares);
  for (size_t i = 0; i < n_; ++i)
    for (size_t j = 0; j < n_; ++j)
      for (size_t k = 0; k < n_; ++k) {
        const size_t product = i * squares + j * n_ + k;
        first_[(i * n_ + k) * products + product] = 1;            // A_ik
        first_[(squares + k * n_ + j) * products + product] = 1;  // B_kj
        second_[product * squares + i * n_ + j] = 1;
      }
}

std::vector<int> MatrixProductNetwork::hidden(const std::vector<int>& both) const {
  std::vector<int> y = times(both, first_, n_ * n_ * n_);
  for (int& x : y) x = std::max(x - 1, 0);
  return y;
}

std::vector<int> MatrixProductNetwork::multiply(const std::vector<int>& both) const {
  return times(hidden(both), second_, n_ * n_);
}

// A head with zero queries: the scores are r alone, and softmax(r) weights the chunk's vectors; r_0 is the score of
// the last one (eq. 1).
std::vector<int> concatenated_by_two_heads(const std::vector<int>& a, const std::vector<int>& b) {
  constexpr double NEVER = -std::numeric_limits<double>::infinity();
  std::vector<int> both;
  for (const auto& [r0, r1] : {std::pair{NEVER, 0.0}, {0.0, NEVER}})
    for (size_t i = 0; i < a.size(); ++i)
      both.push_back(static_cast<int>((std::exp(r0) * b[i] + std::exp(r1) * a[i]) / (std::exp(r0) + std::exp(r1))));
  return both;
}

std::vector<int> composed_by_layers(const MatrixProductNetwork& network, const Automaton& automaton,
                                    const SymbolString& string) {
  std::vector<std::vector<int>> layer;
  for (const int32_t symbol : string) layer.push_back(transition_matrix(automaton, {symbol}));
  while (layer.size() > 1) {
    if (layer.size() % 2 == 1) layer.insert(layer.begin(), transition_matrix(automaton, {}));  // the identity
    std::vector<std::vector<int>> above;
    for (size_t i = 0; i < layer.size(); i += 2)
      above.push_back(network.multiply(concatenated_by_two_heads(layer[i], layer[i + 1])));
    layer = std::move(above);
  }
  return layer[0];
}

std::vector<int> state_map(const Automaton& automaton, const SymbolString& string) {
  std::vector<int> map;
  for (int q = 0; q < automaton.states(); ++q) {
    int state = q;
    for (const int32_t symbol : string) state = automaton.next(state, symbol);
    map.push_back(state);
  }
  return map;
}

std::vector<int> transition_matrix(const Automaton& automaton, const SymbolString& string) {
  const std::vector<int> map = state_map(automaton, string);
  std::vector<int> matrix(map.size() * map.size());
  for (size_t q = 0; q < map.size(); ++q) matrix[q * map.size() + static_cast<size_t>(map[q])] = 1;
  return matrix;
}

}  // namespace petroglyph
