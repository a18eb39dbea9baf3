#include "analysis/pca.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

// A symmetric matrix that is being diagonalized, and the product of the rotations applied so far.
class Rotations {
 public:
  Rotations(std::vector<double>& matrix, std::vector<double>& vectors, int n) : a_(matrix), v_(vectors), n_(n) {}

  double& a(int i, int j) { return a_[static_cast<size_t>(i) * n_ + j]; }
  double& v(int i, int j) { return v_[static_cast<size_t>(i) * n_ + j]; }

  double off_diagonal() {
    double sum = 0;
    for (int i = 0; i < n_; ++i)
      for (int j = i + 1; j < n_; ++j) sum += a(i, j) * a(i, j);
    return sum;
  }

  // Rotates coordinates p and q so that entry (p,q) becomes zero. With tan 2φ = 2 a_pq / (a_qq − a_pp) there are two
  // angles. The smaller one is used, because the larger one would exchange the axes in every sweep.
  void rotate(int p, int q) {
    if (a(p, q) == 0) return;
    const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
    const double t = (theta < 0 ? -1 : 1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
    const double c = 1 / std::sqrt(t * t + 1), s = t * c;
    const auto turn = [&](double& x, double& y) {
      const double old = x;
      x = c * old - s * y;
      y = s * old + c * y;
    };
    for (int k = 0; k < n_; ++k) turn(a(k, p), a(k, q));
    for (int k = 0; k < n_; ++k) turn(a(p, k), a(q, k));
    for (int k = 0; k < n_; ++k) turn(v(p, k), v(q, k));
    a(p, q) = a(q, p) = 0;
  }

 private:
  std::vector<double>&a_, &v_;
  int n_;
};

}  // namespace

Eigen symmetric_eigen(std::vector<double> matrix, int n) {
  const size_t size = static_cast<size_t>(n);
  std::vector<double> vectors(size * size);
  for (size_t i = 0; i < size; ++i) vectors[i * size + i] = 1;
  Rotations rotations(matrix, vectors, n);
  double norm = 0;
  for (const double x : matrix) norm += x * x;
  constexpr int SWEEPS = 60;       // ten are typical
  constexpr double SMALL = 1e-32;  // relative to the squared norm: 1e-16 of the norm, a rounding error
  for (int sweep = 0; sweep < SWEEPS && rotations.off_diagonal() > SMALL * norm; ++sweep)
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) rotations.rotate(p, q);

  std::vector<size_t> order(size);
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    const double a = matrix[i * size + i], b = matrix[j * size + j];
    return a != b ? a > b : i < j;
  });
  Eigen eigen;
  for (const size_t i : order) {
    eigen.values.push_back(matrix[i * size + i]);
    eigen.vectors.insert(eigen.vectors.end(), &vectors[i * size], &vectors[i * size] + size);
  }
  return eigen;
}

namespace {

void center_columns(std::vector<double>& x, size_t rows, size_t columns) {
  for (size_t c = 0; c < columns; ++c) {
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) sum += x[r * columns + c];
    for (size_t r = 0; r < rows; ++r) x[r * columns + c] -= sum / static_cast<double>(rows);
  }
}

// xᵀx of the centered points: the covariance up to a constant factor
std::vector<double> covariance(const std::vector<double>& x, size_t rows, size_t columns) {
  std::vector<double> matrix(columns * columns);
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < columns; ++i)
      for (size_t j = 0; j < columns; ++j) matrix[i * columns + j] += x[r * columns + i] * x[r * columns + j];
  return matrix;
}

void fix_sign(double* vector, size_t n) {
  const double* largest =
      std::max_element(vector, vector + n, [](double a, double b) { return std::abs(a) < std::abs(b); });
  if (*largest >= 0) return;
  for (size_t i = 0; i < n; ++i) vector[i] = -vector[i];
}

}  // namespace

PrincipalComponents principal_components(std::vector<double> x, int rows, int columns, int components) {
  if (rows < 2) throw Error(text("principal components of %d points, expected two or more", rows));
  if (components < 1 || components > columns)
    throw Error(text("%d principal components of points with %d coordinates", components, columns));
  const size_t R = static_cast<size_t>(rows), C = static_cast<size_t>(columns), K = static_cast<size_t>(components);
  center_columns(x, R, C);
  const Eigen eigen = symmetric_eigen(covariance(x, R, C), columns);
  const double total = std::accumulate(eigen.values.begin(), eigen.values.end(), 0.0);
  PrincipalComponents result;
  result.loadings.assign(eigen.vectors.begin(), eigen.vectors.begin() + static_cast<std::ptrdiff_t>(K * C));
  result.scores.resize(R * K);
  for (size_t k = 0; k < K; ++k) {
    double* direction = &result.loadings[k * C];
    fix_sign(direction, C);
    for (size_t r = 0; r < R; ++r)
      result.scores[r * K + k] = std::inner_product(direction, direction + C, &x[r * C], 0.0);
    result.explained.push_back(total > 0 ? eigen.values[k] / total : 0);
  }
  return result;
}

}  // namespace petroglyph
