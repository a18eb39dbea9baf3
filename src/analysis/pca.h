// Principal component analysis: the directions of largest variance of a set of points.
#pragma once

#include <vector>

namespace petroglyph {

struct PrincipalComponents {
  // (components,columns): the directions, largest variance first, of length one; each with the sign that makes its
  // entry of largest magnitude positive
  std::vector<double> loadings;
  std::vector<double> scores;     // (rows,components): the centered points in these directions
  std::vector<double> explained;  // (components): the fraction of the variance
};

// PCA of the rows of x (rows,columns). The columns are centered, not scaled. Throws Error if there are fewer than two
// rows or more components than columns.
PrincipalComponents principal_components(const std::vector<double>& x, int rows, int columns, int components);

}  // namespace petroglyph
