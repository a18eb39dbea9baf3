// Scaling laws from runs at fixed compute (mlps_for_nlp, section 3; method 2 of "Training Compute-Optimal Large
// Language Models"). At each budget C = 6ND the loss is approximately a parabola in log N. Its minimum gives the
// optimal number of parameters N and of tokens D for this budget. These optima follow power laws N_opt ∝ C^a, D_opt ∝
// C^b.
#pragma once

#include <vector>

namespace petroglyph {

struct ScalingPoint {
  double budget;      // C, floating-point operations of training
  double parameters;  // N
  double loss;
};

// c₀ + c₁x + c₂x²
struct Parabola {
  double c0, c1, c2;

  double at(double x) const { return c0 + x * (c1 + x * c2); }
  double minimum() const { return -c1 / (2 * c2); }  // if c₂ > 0
};
// Least squares; NaN for fewer than three different xs.
Parabola fit_parabola(const std::vector<double>& xs, const std::vector<double>& ys);

struct Line {
  double slope, intercept;
  double at(double x) const { return intercept + slope * x; }
};
// Least squares; NaN for fewer than two different xs.
Line fit_line(const std::vector<double>& xs, const std::vector<double>& ys);

// The fit over the runs of one budget, in x = log10 N.
struct BudgetFit {
  double budget;
  Parabola parabola;
  double parameters, tokens, loss;  // N_opt; D_opt = C / 6 N_opt; the loss there. NaN if the parabola has no minimum
  bool inside;                      // N_opt lies between the smallest and the largest N of the runs
};

struct PowerLaws {
  std::vector<BudgetFit> budgets;  // ascending
  // log10 of N_opt, D_opt and the loss against log10 C, over the budgets with a minimum; NaN if fewer than two have
  // one.
  Line parameters, tokens, loss;

  bool found() const { return parameters.slope == parameters.slope; }  // not NaN
};
PowerLaws fit_power_laws(const std::vector<ScalingPoint>& points);

}  // namespace petroglyph
