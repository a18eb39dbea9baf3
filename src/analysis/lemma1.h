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

#include <cstdint>
#include <vector>

#include "tasks/regular_languages.h"

namespace petroglyph {

// (n,n) matrices are stored row by row.
class MatrixProductNetwork {
 public:
  // Throws Error if n is below 1, or if W1 would have more than 2³¹ entries.
  explicit MatrixProductNetwork(int n);

  int n() const { return n_; }
  const std::vector<int>& first() const { return first_; }    // W1 (2n²,n³) of 0 and 1
  const std::vector<int>& second() const { return second_; }  // W2 (n³,n²)

  // relu([A, B] W1 − 1), n³ numbers: number i·n² + j·n + k is A_ik B_kj.
  std::vector<int> hidden(const std::vector<int>& a, const std::vector<int>& b) const;
  // hidden(A, B) W2 = AB
  std::vector<int> multiply(const std::vector<int>& a, const std::vector<int>& b) const;

 private:
  int n_;
  std::vector<int> first_, second_;
};

// [Flat(A), Flat(B)], computed by the two heads from a chunk of C = 2 vectors {Flat(A), Flat(B)}.
std::vector<int> concatenated_by_two_heads(const std::vector<std::vector<int>>& chunk);

// (states,states): row q is 1 at the state that the string leads to from q, and 0 elsewhere.                  (eq. 2)
std::vector<int> transition_matrix(const Automaton& automaton, const SymbolString& string);
// The same matrix, computed by layers of two heads and `network` from the matrices of single symbols. Identity
// matrices pad the first chunk.
std::vector<int> composed_by_layers(const MatrixProductNetwork& network, const Automaton& automaton,
                                    const SymbolString& string);

}  // namespace petroglyph
