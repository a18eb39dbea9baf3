// Lemma 1 of the RegularGPT paper (appendix C): two linear layers with a relu between them multiply two matrices of 0 and 1,
// because relu(a + b − 1) = a·b for such numbers. What a string does to an automaton's states is such a matrix, and the matrix of
// two strings, one behind the other, is the product of theirs: so an MLP can combine the vectors of two strings.
//
// Section 7.2: an attention of two heads brings the two matrices to one place. With queries of zero, the scalars r_0 = −∞, r_1 = 0 let
// one head take the vector one step of its layer back (A), r_0 = 0, r_1 = −∞ let the other take its own place's (B), and the heads'
// concatenation is [A, B]. Attention, MLP, and the same again in ⌈log₂ T⌉ layers compose a string of T symbols: a RegularGPT by hand.
#pragma once

#include <cstdint>
#include <vector>

#include "tasks/regular_languages.h"

namespace petroglyph {

// (n,n) matrices are written row after row.
class MatrixProductNetwork {
 public:
  // Throws Error for n below 1 or so large that W1 would have more than 2³¹ entries.
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

// [Flat(A), Flat(B)] of a chunk of C = 2 vectors {Flat(A), Flat(B)}, by the two heads.
std::vector<int> concatenated_by_two_heads(const std::vector<std::vector<int>>& chunk);

// (states,states): row q is 1 at the state to which the string leads from q, 0 elsewhere.                   (eq. 2)
std::vector<int> transition_matrix(const Automaton& automaton, const SymbolString& string);
// The same matrix by layers of two heads and `network`, from the matrices of single symbols; identities fill the first chunk.
std::vector<int> composed_by_layers(const MatrixProductNetwork& network, const Automaton& automaton,
                                    const SymbolString& string);

}  // namespace petroglyph
