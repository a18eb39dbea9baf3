#include "analysis/scaling.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "analysis/power_law.h"
#include "base/atomic_file.h"
#include "base/text.h"
#include "figures/figure.h"

namespace petroglyph {

namespace {

const char* const COMPUTE = "compute C (operations)";
const char* const PARAMETERS = "parameters N";

// The losses at each budget and the fitted parabolas.
void draw_parabolas(Panel& panel, const std::vector<StudyRun>& runs, const std::string& model, const PowerLaws& laws) {
  panel.x(PARAMETERS).y("loss (nats)").log_x();
  int color = 0;
  for (const BudgetFit& fit : laws.budgets) {
    std::vector<double> xs, ys, curve_x, curve_y;
    for (const StudyRun& run : runs)
      if (run.model == model && run.budget == fit.budget) {
        xs.push_back(static_cast<double>(run.parameters));
        ys.push_back(run.loss);
      }
    const auto [low, high] = std::minmax_element(xs.begin(), xs.end());
    constexpr int PIECES = 40;
    for (int i = 0; i <= PIECES; ++i) {
      const double x = std::log10(*low) + i * std::log10(*high / *low) / PIECES;
      curve_x.push_back(std::pow(10, x));
      curve_y.push_back(fit.parabola.at(x));
    }
    LineStyle points = POINTS, curve;
    points.color = curve.color = color++;
    panel.line("C = " + short_number(fit.budget), xs, ys, points).line("", curve_x, curve_y, curve);
  }
}

// The minima of the budgets that have one, and the power law fitted to them.
void draw_law(Panel& panel, const std::string& label, const PowerLaws& laws, double BudgetFit::*quantity,
              const Line& law) {
  std::vector<double> budgets, values, fitted;
  for (const BudgetFit& fit : laws.budgets) {
    if (!std::isfinite(fit.*quantity)) continue;
    budgets.push_back(fit.budget);
    values.push_back(fit.*quantity);
    fitted.push_back(std::pow(10, law.at(std::log10(fit.budget))));
  }
  LineStyle line;
  line.dashed = true;
  panel.x(COMPUTE).y(label).log_x().log_y().line("minima", budgets, values, POINTS);
  panel.line(text("C to the %.2f", law.slope), budgets, fitted, line);
}

// Figure 1: the parabolas, and the two power laws if there are any.
Figure figure_of_model(const std::vector<StudyRun>& runs, const std::string& model, const PowerLaws& laws) {
  Figure figure("Scaling of " + model);
  draw_parabolas(figure.panel("Loss at each budget"), runs, model, laws);
  if (!laws.found()) return figure;
  draw_law(figure.panel("Best size"), PARAMETERS, laws, &BudgetFit::parameters, laws.parameters);
  draw_law(figure.panel("Best number of tokens, C / 6N"), "tokens D", laws, &BudgetFit::tokens, laws.tokens);
  return figure;
}

void print_laws(const std::string& model, const PowerLaws& laws) {
  std::printf("\n%-12s %10s %14s %14s %9s\n", model.c_str(), "C", "N_opt", "D_opt", "loss");
  for (const BudgetFit& fit : laws.budgets) {
    if (std::isfinite(fit.parameters))
      std::printf("%23s %14.3g %14.3g %9.4f%s\n", short_number(fit.budget).c_str(), fit.parameters, fit.tokens,
                  fit.loss, fit.inside ? "" : "   outside the sizes that were tried");
    else
      std::printf("%23s   the parabola has no minimum\n", short_number(fit.budget).c_str());
  }
  if (laws.found())
    std::printf("N_opt ∝ C^%.3f   D_opt ∝ C^%.3f   loss ∝ C^%.4f\n", laws.parameters.slope, laws.tokens.slope,
                laws.loss.slope);
  else
    std::printf("no power law: fewer than two budgets have a minimum; try other sizes (--widths)\n");
}

std::string optima_rows(const std::string& model, const PowerLaws& laws) {
  std::string rows;
  for (const BudgetFit& fit : laws.budgets) {
    rows += model;
    for (const double x :
         {fit.budget, fit.parabola.c0, fit.parabola.c1, fit.parabola.c2, fit.parameters, fit.tokens, fit.loss})
      rows += "," + cell_text(x);
    rows += fit.inside ? ",1\n" : ",0\n";
  }
  return rows;
}

std::string law_rows(const std::string& model, const PowerLaws& laws) {
  std::string rows;
  for (const auto& [quantity, line] :
       {std::pair("parameters", laws.parameters), {"tokens", laws.tokens}, {"loss", laws.loss}})
    rows += model + "," + quantity + "," + cell_text(line.slope) + "," + cell_text(line.intercept) + "\n";
  return rows;
}

using NamedFigures = std::vector<std::pair<std::string, Figure>>;  // by file

// Figures 1 and 3.
NamedFigures report_compute(const std::string& folder, const std::vector<StudyRun>& runs) {
  std::map<std::string, std::vector<ScalingPoint>> points;  // of each model
  for (const StudyRun& run : runs)
    points[run.model].push_back({run.budget, static_cast<double>(run.parameters), run.loss});
  NamedFigures figures;
  Figure best("Best loss against compute");
  Panel& panel = best.panel().x(COMPUTE).y("loss (nats)").log_x().log_y();
  std::string optima = "model,budget,c0,c1,c2,parameters,tokens,loss,inside\n",
              exponents = "model,quantity,exponent,intercept\n";
  bool any = false;
  for (const auto& [model, of_model] : points) {
    const PowerLaws laws = fit_power_laws(of_model);
    print_laws(model, laws);
    optima += optima_rows(model, laws);
    exponents += law_rows(model, laws);
    figures.emplace_back("scaling_" + model + ".svg", figure_of_model(runs, model, laws));
    std::vector<double> budgets, losses;
    for (const BudgetFit& fit : laws.budgets) {
      budgets.push_back(fit.budget);
      losses.push_back(fit.loss);
    }
    panel.line(model, budgets, losses, WITH_MARKERS);
    any = any || laws.found();
  }
  if (any) figures.emplace_back("loss.svg", best);
  write_file_atomically(folder + "/optima.csv", optima);
  write_file_atomically(folder + "/laws.csv", exponents);
  return figures;
}

// Figures 10 and 9: a curve for each model and number of tokens.
NamedFigures report_curves(const std::string& what, const std::vector<StudyRun>& runs) {
  const bool by_context = what == "context";
  const std::string x = by_context ? "context (tokens)" : PARAMETERS;
  Figure figure(by_context ? "Perplexity and parameters against the context" : "DCT-MLP and Transformer");
  Panel& perplexity = figure.panel("Perplexity").x(x).y("perplexity").log_x();
  Panel* parameters = by_context ? &figure.panel("Parameters").x(x).y(PARAMETERS).log_x() : nullptr;
  const auto at = [&](const StudyRun& run) { return by_context ? run.setting : static_cast<double>(run.parameters); };
  std::map<std::string, std::vector<StudyRun>> curves;
  for (const StudyRun& run : runs) curves[run.model + ", " + short_number(run.tokens, 3) + " tokens"].push_back(run);
  std::printf("\n%-40s %10s %14s %9s %11s\n", "", by_context ? "context" : "layers", "parameters", "loss",
              "perplexity");
  for (auto& [name, of_curve] : curves) {
    std::sort(of_curve.begin(), of_curve.end(), [&](const StudyRun& a, const StudyRun& b) { return at(a) < at(b); });
    std::vector<double> xs, perplexities, sizes;
    for (const StudyRun& run : of_curve) {
      xs.push_back(at(run));
      perplexities.push_back(std::exp(run.loss));
      sizes.push_back(static_cast<double>(run.parameters));
      std::printf("%-40s %10.0f %14s %9.4f %11.3f\n", name.c_str(), run.setting, with_commas(run.parameters).c_str(),
                  run.loss, std::exp(run.loss));
    }
    perplexity.line(name, xs, perplexities, WITH_MARKERS);
    if (parameters) parameters->line(name, xs, sizes, WITH_MARKERS);
  }
  return {{what + ".svg", figure}};
}

}  // namespace

void report_scaling(const std::string& folder, const std::string& what, const std::vector<StudyRun>& runs) {
  const bool compute = what == "compute";
  std::string files = compute ? "points.csv, optima.csv, laws.csv" : "points.csv";
  for (auto& [file, figure] : compute ? report_compute(folder, runs) : report_curves(what, runs)) {
    figure.caption(folder).save(folder + "/" + file);
    files += ", " + file;
  }
  std::printf("\nsaved %s (%s)\nweights %s\n", folder.c_str(), files.c_str(), weights_of_study(runs).c_str());
}

}  // namespace petroglyph
