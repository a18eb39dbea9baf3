// Principal component analysis: the directions of largest variance of a set of points, from the eigenvectors of their
// covariance matrix.
#pragma once

#include <vector>

namespace petroglyph {

struct Eigen {
  std::vector<double> values;   // largest first
  std::vector<double> vectors;  // (n,n): one eigenvector a row, of length one, orthogonal to each other
};

// Eigenvalues and eigenvectors of a symmetric matrix (n,n), by Jacobi's rotations (1846). Each rotation makes one
// pair of entries zero. Sweeps over all pairs make the off-diagonal entries vanish, with quadratic convergence at the
// end. A sweep takes n³ operations, and about ten sweeps are needed.
Eigen symmetric_eigen(std::vector<double> matrix, int n);

struct PrincipalComponents {
  std::vector<double>
      loadings;  // (components,columns): the directions, largest variance first, of length one; each with the
                 // sign that makes its entry of largest magnitude positive
  std::vector<double> scores;     // (rows,components): the centered points in these directions
  std::vector<double> explained;  // (components): the fraction of the variance
};

// PCA of the rows of x (rows,columns). The columns are centered, not scaled. Throws Error if there are fewer than two
// rows or more components than columns.
PrincipalComponents principal_components(std::vector<double> x, int rows, int columns, int components);

}  // namespace petroglyph
