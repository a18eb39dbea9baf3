#include "analysis/scaling_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "analysis/power_law.h"
#include "analysis/scaling_plan.h"
#include "base/atomic_file.h"
#include "base/text.h"
#include "figures/figure.h"

namespace petroglyph {

namespace {

const char* const COMPUTE = "compute C (operations)";
const char* const PARAMETERS = "parameters N";

std::string cell(double value) { return std::isfinite(value) ? number_text(value, 9) : ""; }

// The losses at each budget, and the parabolas through them.
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
    LineStyle points, curve;
    points.color = curve.color = color++;
    points.joined = false;
    points.markers = true;
    panel.line("C = " + short_number(fit.budget), xs, ys, points).line("", curve_x, curve_y, curve);
  }
}

// The minima of the budgets that have one, and the power law through them where there is one.
void draw_law(Panel& panel, const std::string& label, const PowerLaws& laws, double BudgetFit::*quantity,
              const Line& law) {
  std::vector<double> budgets, values, fitted;
  for (const BudgetFit& fit : laws.budgets) {
    if (!std::isfinite(fit.*quantity)) continue;
    budgets.push_back(fit.budget);
    values.push_back(fit.*quantity);
    fitted.push_back(std::pow(10, law.at(std::log10(fit.budget))));
  }
  LineStyle found, line;
  found.joined = false;
  found.markers = true;
  line.dashed = true;
  panel.x(COMPUTE).y(label).log_x().log_y().line("minima", budgets, values, found);
  if (std::isfinite(law.slope)) panel.line(text("C to the %.2f", law.slope), budgets, fitted, line);
}

bool has_minimum(const BudgetFit& fit) { return std::isfinite(fit.parameters); }
bool has_minima(const PowerLaws& laws) { return std::any_of(laws.budgets.begin(), laws.budgets.end(), has_minimum); }

// Figure 1: the parabolas, and the two power laws; of these nothing where no parabola has a minimum.
void draw_model(const std::string& folder, const std::vector<StudyRun>& runs, const std::string& model,
                const PowerLaws& laws) {
  Figure figure("Scaling of " + model);
  figure.caption(folder);
  draw_parabolas(figure.panel("Loss at each budget"), runs, model, laws);
  if (has_minima(laws)) {
    draw_law(figure.panel("Best size"), PARAMETERS, laws, &BudgetFit::parameters, laws.parameters);
    draw_law(figure.panel("Best number of tokens, C / 6N"), "tokens D", laws, &BudgetFit::tokens, laws.tokens);
  }
  figure.save(folder + "/scaling_" + model + ".svg");
}

void print_laws(const std::string& model, const PowerLaws& laws) {
  std::printf("\n%-12s %10s %14s %14s %9s\n", model.c_str(), "C", "N_opt", "D_opt", "loss");
  for (const BudgetFit& fit : laws.budgets) {
    if (has_minimum(fit))
      std::printf("%23s %14.3g %14.3g %9.4f%s\n", short_number(fit.budget).c_str(), fit.parameters, fit.tokens,
                  fit.loss, fit.inside ? "" : "   outside the sizes that were tried");
    else
      std::printf("%23s   the parabola has no minimum\n", short_number(fit.budget).c_str());
  }
  if (std::isfinite(laws.parameters.slope))
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
      rows += "," + cell(x);
    rows += fit.inside ? ",1\n" : ",0\n";
  }
  return rows;
}

std::string law_rows(const std::string& model, const PowerLaws& laws) {
  std::string rows;
  for (const auto& [quantity, line] :
       {std::pair("parameters", laws.parameters), {"tokens", laws.tokens}, {"loss", laws.loss}})
    rows += model + "," + quantity + "," + cell(line.slope) + "," + cell(line.intercept) + "\n";
  return rows;
}

void report_compute(const std::string& folder, const ScalingSettings& settings, const std::vector<StudyRun>& runs) {
  std::string optima = "model,budget,c0,c1,c2,parameters,tokens,loss,inside\n",
              exponents = "model,quantity,exponent,intercept\n";
  std::string files = "points.csv, optima.csv, laws.csv";
  Figure figure("Best loss against compute");
  Panel& panel = figure.panel().x(COMPUTE).y("loss (nats)").log_x().log_y();
  bool any = false;
  for (const std::string& model : settings.model_names()) {
    std::vector<ScalingPoint> points;
    for (const StudyRun& run : runs)
      if (run.model == model) points.push_back({run.budget, static_cast<double>(run.parameters), run.loss});
    const PowerLaws laws = fit_power_laws(points);
    print_laws(model, laws);
    optima += optima_rows(model, laws);
    exponents += law_rows(model, laws);
    std::vector<double> budgets, losses;
    for (const BudgetFit& fit : laws.budgets) {
      budgets.push_back(fit.budget);
      losses.push_back(fit.loss);
    }
    LineStyle style;
    style.markers = true;
    panel.line(model, budgets, losses, style);
    any = any || has_minima(laws);
    draw_model(folder, runs, model, laws);
    files += ", scaling_" + model + ".svg";
  }
  write_file_atomically(folder + "/optima.csv", optima);
  write_file_atomically(folder + "/laws.csv", exponents);
  if (any) figure.caption(folder).save(folder + "/loss.svg");
  std::printf("\nsaved %s (%s%s)\n", folder.c_str(), files.c_str(), any ? ", loss.svg" : "");
}

// Figures 10 and 9: a curve for each model, number of tokens and width.
void report_curves(const std::string& folder, const ScalingSettings& settings, const std::vector<StudyRun>& runs) {
  std::map<std::string, std::vector<const StudyRun*>> curves;
  for (const StudyRun& run : runs) {
    const std::string name = run.model + ", " + short_number(run.tokens, 3) + " tokens";
    const bool widths = settings.widths.size() > 1 && run.config.find("embedding");
    curves[widths ? name + ", width " + std::to_string(run.config.at("width").integer()) : name].push_back(&run);
  }
  const bool by_context = settings.what == "context";
  const std::string x = by_context ? "context (tokens)" : PARAMETERS;
  Figure figure(by_context ? "Perplexity and parameters against the context" : "DCT-MLP and Transformer");
  figure.caption(folder);
  Panel& perplexity = figure.panel("Perplexity").x(x).y("perplexity").log_x();
  Panel* parameters = by_context ? &figure.panel("Parameters").x(x).y(PARAMETERS).log_x() : nullptr;
  std::printf("\n%-40s %10s %14s %9s %11s\n", "", by_context ? "context" : "layers", "parameters", "loss",
              "perplexity");
  for (const auto& [name, of_curve] : curves) {
    std::vector<double> xs, losses, sizes;
    for (const StudyRun* run : of_curve) {
      std::printf("%-40s %10.0f %14s %9.4f %11.3f\n", name.c_str(), run->setting, with_commas(run->parameters).c_str(),
                  run->loss, std::exp(run->loss));
      xs.push_back(by_context ? run->setting : static_cast<double>(run->parameters));
      losses.push_back(std::exp(run->loss));
      sizes.push_back(static_cast<double>(run->parameters));
    }
    LineStyle style;
    style.markers = true;
    perplexity.line(name, xs, losses, style);
    if (parameters) parameters->line(name, xs, sizes, style);
  }
  const std::string file = settings.what + ".svg";
  figure.save(folder + "/" + file);
  std::printf("\nsaved %s (points.csv, %s)\n", folder.c_str(), file.c_str());
}

}  // namespace

void report_scaling(const std::string& folder, const ScalingSettings& settings, const std::vector<StudyRun>& runs) {
  if (settings.what == "compute")
    report_compute(folder, settings, runs);
  else
    report_curves(folder, settings, runs);
}

}  // namespace petroglyph
