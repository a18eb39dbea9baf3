// Lemma 1 of the RegularGPT paper (appendix C): two linear layers with a relu between them multiply two matrices of 0 and 1,
// because relu(a + b − 1) = a·b for such numbers. What a string does to an automaton's states is such a matrix, and the matrix of
// two strings, one behind the other, is the product of theirs: so an MLP can combine what two vectors say of two strings.
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

// (states,states): row q is 1 at the state to which the string leads from q, 0 elsewhere.                   (eq. 2)
std::vector<int> transition_matrix(const Automaton& automaton, const SymbolString& string);

}  // namespace petroglyph
