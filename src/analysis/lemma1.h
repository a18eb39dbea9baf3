// Lemma 1 of the RegularGPT paper (appendix C): two linear layers with a ReLU between them multiply two matrices of 0
// and 1, because relu(a + b − 1) = a·b for such numbers. The map of an automaton's states by a string is such a
// matrix. The matrix of the concatenation of two strings is the product of their matrices. So an MLP can combine the
// vectors of two strings.
//
// Section 7.2: attention with two heads brings the two matrices to one position. With zero queries, the scalars r_0 =
// −∞, r_1 = 0 make one head select the vector one step of its layer back (A). r_0 = 0, r_1 = −∞ make the other head
// select its own position's vector (B). The concatenation of the heads is [A, B]. Attention and MLP, repeated in
// ⌈log₂ T⌉ layers, compose a string of T symbols: a RegularGPT with hand-made weights.
#pragma once

#include <cstddef>
#include <vector>

#include "tasks/regular_languages.h"

namespace petroglyph {

// (n,n) matrices of 0 and 1 are stored row by row; [A, B] is one behind the other.
class MatrixProductNetwork {
 public:
  explicit MatrixProductNetwork(int n);

  const std::vector<int>& first() const { return first_; }    // W1 (2n²,n³) of 0 and 1
  const std::vector<int>& second() const { return second_; }  // W2 (n³,n²)

  // relu([A, B] W1 − 1), n³ numbers: number i·n² + j·n + k is A_ik B_kj.
  std::vector<int> hidden(const std::vector<int>& both) const;
  // hidden([A, B]) W2 = AB
  std::vector<int> multiply(const std::vector<int>& both) const;

 private:
  size_t n_;
  std::vector<int> first_, second_;
};

// [A, B], computed by the two heads from a chunk of C = 2 vectors A and B.
std::vector<int> concatenated_by_two_heads(const std::vector<int>& a, const std::vector<int>& b);

// (states): the state that the string leads to from each state.
std::vector<int> state_map(const Automaton& automaton, const SymbolString& string);
// (states,states): row q is 1 at the state that the string leads to from q, and 0 elsewhere.                  (eq. 2)
std::vector<int> transition_matrix(const Automaton& automaton, const SymbolString& string);
// The same matrix, computed by layers of two heads and `network` from the matrices of single symbols, one or more.
// Identity matrices pad the first chunk.
std::vector<int> composed_by_layers(const MatrixProductNetwork& network, const Automaton& automaton,
                                    const SymbolString& string);

}  // namespace petroglyph
