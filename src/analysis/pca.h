// Principal components: the directions in which points lie farthest apart, from the eigenvectors of their covariance.
#pragma once

#include <vector>

namespace petroglyph {

struct Eigen {
  std::vector<double> values;   // the largest first
  std::vector<double> vectors;  // (n,n): a row each, of length one, orthogonal to the others
};

// Of a symmetric matrix (n,n), by Jacobi's rotations (1846): each one makes a pair of entries zero, and sweeps over all pairs make
// what is off the diagonal vanish, at the end quadratically. n³ operations a sweep and about ten sweeps.
Eigen symmetric_eigen(std::vector<double> matrix, int n);

struct PrincipalComponents {
  std::vector<double>
      loadings;  // (components,columns): the directions, largest variance first, of length one; each with the
                 // sign that makes its entry of largest magnitude positive
  std::vector<double> scores;     // (rows,components): the points, their mean taken off, in these directions
  std::vector<double> explained;  // (components): the share of the variance
};

// Of the rows of x (rows,columns); the columns are centered, not scaled. Throws Error for fewer than two rows or more components
// than columns.
PrincipalComponents principal_components(std::vector<double> x, int rows, int columns, int components);

}  // namespace petroglyph
