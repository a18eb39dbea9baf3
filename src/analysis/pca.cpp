#include "analysis/pca.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

struct Component {
  std::vector<double> direction;  // (columns)
  std::vector<double> scores;     // (rows): the centered points in this direction
  double square = 0;              // of the scores
};

void rotate(std::vector<double>& a, std::vector<double>& b, double c, double s) {
  for (size_t i = 0; i < a.size(); ++i) {
    const double old = a[i];
    a[i] = c * old - s * b[i];
    b[i] = s * old + c * b[i];
  }
}

// The coordinate axes.
std::vector<Component> axes(const std::vector<double>& x, size_t rows, size_t columns) {
  std::vector<Component> all(columns);
  for (size_t c = 0; c < columns; ++c) {
    all[c].direction.resize(columns);
    all[c].direction[c] = 1;
    for (size_t r = 0; r < rows; ++r) all[c].scores.push_back(x[r * columns + c]);
    const double mean = std::accumulate(all[c].scores.begin(), all[c].scores.end(), 0.0) / static_cast<double>(rows);
    for (double& score : all[c].scores) score -= mean;
  }
  return all;
}

// Rotates two directions in their plane so that the scores of one are orthogonal to those of the other. With
// tan 2φ = 2 a·b / (b·b − a·a) there are two angles. The smaller one is used, because the larger one would exchange the
// directions in every sweep. Returns false if they are orthogonal already, up to rounding errors.
bool make_orthogonal(Component& a, Component& b, double total) {
  const double aa = dot(a.scores, a.scores), bb = dot(b.scores, b.scores), ab = dot(a.scores, b.scores);
  if (std::abs(ab) <= 1e-14 * std::sqrt(aa * bb) + 1e-20 * total) return false;
  const double theta = (bb - aa) / (2 * ab);
  const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1), s = t * c;
  rotate(a.scores, b.scores, c, s);
  rotate(a.direction, b.direction, c, s);
  return true;
}

bool by_magnitude(double a, double b) { return std::abs(a) < std::abs(b); }

}  // namespace

// Jacobi's rotations of pairs of directions (Hestenes 1958). Sweeps over all pairs make the scores of all directions
// orthogonal, with quadratic convergence at the end.
PrincipalComponents principal_components(const std::vector<double>& x, int rows, int columns, int components) {
  if (rows < 2) throw Error(text("principal components of %d points, expected two or more", rows));
  if (components < 1 || components > columns)
    throw Error(text("%d principal components of points with %d coordinates", components, columns));
  const size_t R = static_cast<size_t>(rows), C = static_cast<size_t>(columns), K = static_cast<size_t>(components);
  std::vector<Component> all = axes(x, R, C);
  double total = 0;
  for (const Component& one : all) total += dot(one.scores, one.scores);
  constexpr int SWEEPS = 60;  // ten are typical
  bool rotated = true;
  for (int sweep = 0; sweep < SWEEPS && rotated; ++sweep) {
    rotated = false;
    for (size_t p = 0; p < C; ++p)
      for (size_t q = p + 1; q < C; ++q) rotated |= make_orthogonal(all[p], all[q], total);
  }
  for (Component& one : all) one.square = dot(one.scores, one.scores);
  const auto smaller = [](const Component& a, const Component& b) { return a.square < b.square; };

  PrincipalComponents result;
  result.scores.resize(R * K);
  for (size_t k = 0; k < K; ++k) {
    std::swap(all[k], *std::max_element(all.begin() + static_cast<std::ptrdiff_t>(k), all.end(), smaller));
    const std::vector<double>& direction = all[k].direction;
    const double sign = *std::max_element(direction.begin(), direction.end(), by_magnitude) < 0 ? -1 : 1;
    for (const double entry : direction) result.loadings.push_back(sign * entry);
    for (size_t r = 0; r < R; ++r) result.scores[r * K + k] = sign * all[k].scores[r];
    result.explained.push_back(total > 0 ? all[k].square / total : 0);
  }
  return result;
}

}  // namespace petroglyph
