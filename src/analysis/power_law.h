// Scaling laws from runs at fixed compute (mlps_for_nlp, section 3; method 2 of "Training Compute-Optimal Large Language Models"):
// at each budget C = 6ND the loss against log N is about a parabola, its minimum says how many parameters N and tokens D
// that budget is best spent on, and these follow power laws N_opt ∝ C^a, D_opt ∝ C^b.
#pragma once

#include <vector>

namespace petroglyph {

struct ScalingPoint {
  double budget;      // C, operations of training
  double parameters;  // N
  double loss;
};

// c₀ + c₁x + c₂x²
struct Parabola {
  double c0, c1, c2;

  double at(double x) const { return c0 + x * (c1 + x * c2); }
  double minimum() const { return -c1 / (2 * c2); }  // where c₂ > 0
};
// Least squares; throws Error for fewer than three different xs.
Parabola fit_parabola(const std::vector<double>& xs, const std::vector<double>& ys);

struct Line {
  double slope, intercept;
  double at(double x) const { return intercept + slope * x; }
};
// Least squares; throws Error for fewer than two different xs.
Line fit_line(const std::vector<double>& xs, const std::vector<double>& ys);

// What the runs of one budget say; all in x = log10 N.
struct BudgetFit {
  double budget;
  Parabola parabola;
  double parameters, tokens, loss;  // N_opt; D_opt = C / 6 N_opt; the loss there. NaN where the parabola has no minimum
  bool inside;                      // N_opt lies between the smallest and the largest N that was tried
};

struct PowerLaws {
  std::vector<BudgetFit> budgets;  // ascending
  // log10 of N_opt, D_opt and the loss against log10 C, over the budgets that have a minimum; NaN where fewer than two have.
  Line parameters, tokens, loss;
};
PowerLaws fit_power_laws(const std::vector<ScalingPoint>& points);

}  // namespace petroglyph
