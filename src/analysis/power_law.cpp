#include "analysis/power_law.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>

namespace petroglyph {

namespace {

constexpr double NONE = std::numeric_limits<double>::quiet_NaN();

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}
double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace

// With u = x − x̄ and q = u² − s·u − m, m = mean u², s = Σu³ / Σu², the polynomials 1, u, q are orthogonal over the
// points. So each coefficient is a single quotient, and there is no cancellation if the xs are large and close
// together.
Parabola fit_parabola(const std::vector<double>& xs, const std::vector<double>& ys) {
  const double center = mean(xs);
  std::vector<double> u, square, q;
  for (const double x : xs) {
    u.push_back(x - center);
    square.push_back(u.back() * u.back());
  }
  const double m = mean(square), s = dot(u, square) / dot(u, u);
  for (size_t i = 0; i < u.size(); ++i) q.push_back(square[i] - s * u[i] - m);
  const double b0 = mean(ys), b1 = dot(u, ys) / dot(u, u), b2 = dot(q, ys) / dot(q, q);
  // b₀ + b₁u + b₂(u² − su − m) in powers of u, then of x
  const double a0 = b0 - b2 * m, a1 = b1 - b2 * s;
  return {a0 - a1 * center + b2 * center * center, a1 - 2 * b2 * center, b2};
}

Line fit_line(const std::vector<double>& xs, const std::vector<double>& ys) {
  const double center = mean(xs);
  std::vector<double> u;
  for (const double x : xs) u.push_back(x - center);
  const double slope = dot(u, ys) / dot(u, u);
  return {slope, mean(ys) - slope * center};
}

namespace {

BudgetFit fit_budget(double budget, const std::vector<double>& sizes, const std::vector<double>& losses) {
  BudgetFit fit{budget, fit_parabola(sizes, losses), NONE, NONE, NONE, false};
  if (!(fit.parabola.c2 > 0)) return fit;
  const double x = fit.parabola.minimum();
  const double parameters = std::pow(10, x);
  if (!std::isfinite(parameters)) return fit;  // numerically a straight line
  const auto [low, high] = std::minmax_element(sizes.begin(), sizes.end());
  fit.parameters = parameters;
  fit.tokens = budget / (6 * fit.parameters);
  fit.loss = fit.parabola.at(x);
  fit.inside = *low <= x && x <= *high;
  return fit;
}

Line law(const std::vector<BudgetFit>& fits, double BudgetFit::*quantity) {
  std::vector<double> xs, ys;
  for (const BudgetFit& fit : fits) {
    if (!(fit.*quantity > 0)) continue;
    xs.push_back(std::log10(fit.budget));
    ys.push_back(std::log10(fit.*quantity));
  }
  return xs.size() < 2 ? Line{NONE, NONE} : fit_line(xs, ys);
}

}  // namespace

PowerLaws fit_power_laws(const std::vector<ScalingPoint>& points) {
  std::map<double, std::pair<std::vector<double>, std::vector<double>>> budgets;  // C: log10 N and losses
  for (const ScalingPoint& point : points) {
    budgets[point.budget].first.push_back(std::log10(point.parameters));
    budgets[point.budget].second.push_back(point.loss);
  }
  PowerLaws laws;
  for (const auto& [budget, runs] : budgets) laws.budgets.push_back(fit_budget(budget, runs.first, runs.second));
  laws.parameters = law(laws.budgets, &BudgetFit::parameters);
  laws.tokens = law(laws.budgets, &BudgetFit::tokens);
  laws.loss = law(laws.budgets, &BudgetFit::loss);
  return laws;
}

}  // namespace petroglyph
