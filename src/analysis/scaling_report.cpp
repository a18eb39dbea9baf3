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

// Figure 1: the parabolas, and the two power laws.
void draw_model(const std::string& folder, const std::vector<StudyRun>& runs, const std::string& model,
                const PowerLaws& laws) {
  Figure figure("Scaling of " + model);
  figure.columns(3).caption(folder);
  Panel& left = figure.panel("Loss at each budget").x("parameters N").y("loss (nats)").log_x();
  std::vector<double> budgets, optimal, tokens, law_parameters, law_tokens;
  double least = runs[0].loss, most = least;
  int color = 0;
  for (const BudgetFit& fit : laws.budgets) {
    std::vector<double> xs, ys, curve_x, curve_y;
    for (const StudyRun& run : runs)
      if (run.model == model && run.budget == fit.budget) {
        xs.push_back(static_cast<double>(run.parameters));
        ys.push_back(run.loss);
        least = std::min(least, run.loss);
        most = std::max(most, run.loss);
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
    left.line("C = " + short_number(fit.budget), xs, ys, points).line("", curve_x, curve_y, curve);
    budgets.push_back(fit.budget);
    optimal.push_back(fit.parameters);
    tokens.push_back(fit.tokens);
    law_parameters.push_back(std::pow(10, laws.parameters.at(std::log10(fit.budget))));
    law_tokens.push_back(std::pow(10, laws.tokens.at(std::log10(fit.budget))));
  }
  left.y_range(least - 0.1 * (most - least), most + 0.5 * (most - least));  // room for the legend above the curves
  LineStyle found, law;
  found.joined = false;
  found.markers = true;
  law.dashed = true;
  figure.panel("Best size")
      .x("compute C")
      .y("parameters N")
      .log_x()
      .log_y()
      .line("minima", budgets, optimal, found)
      .line(text("C to the %.2f", laws.parameters.slope), budgets, law_parameters, law);
  figure.panel("Best number of tokens")
      .x("compute C")
      .y("tokens D")
      .log_x()
      .log_y()
      .line("C / 6N", budgets, tokens, found)
      .line(text("C to the %.2f", laws.tokens.slope), budgets, law_tokens, law);
  figure.save(folder + "/scaling_" + model + ".svg");
}

void report_compute(const std::string& folder, const ScalingSettings& settings, const std::vector<StudyRun>& runs) {
  std::string optima = "model,budget,c0,c1,c2,parameters,tokens,loss,inside\n",
              exponents = "model,quantity,exponent,intercept\n";
  std::string files = "points.csv, optima.csv, laws.csv";
  Figure figure("Best loss against compute");
  Panel& panel = figure.panel().x("compute C").y("loss (nats)").log_x().log_y();
  for (const std::string& model : settings.model_names()) {
    std::vector<ScalingPoint> points;
    for (const StudyRun& run : runs)
      if (run.model == model) points.push_back({run.budget, static_cast<double>(run.parameters), run.loss});
    const PowerLaws laws = fit_power_laws(points);
    std::printf("\n%-12s %10s %14s %14s %9s\n", model.c_str(), "C", "N_opt", "D_opt", "loss");
    std::vector<double> budgets, losses;
    for (const BudgetFit& fit : laws.budgets) {
      optima += model;
      for (const double x :
           {fit.budget, fit.parabola.c0, fit.parabola.c1, fit.parabola.c2, fit.parameters, fit.tokens, fit.loss})
        optima += "," + (std::isfinite(x) ? number_text(x, 9) : std::string());
      optima += fit.inside ? ",1\n" : ",0\n";
      budgets.push_back(fit.budget);
      losses.push_back(fit.loss);
      if (std::isfinite(fit.parameters))
        std::printf("%23s %14.3g %14.3g %9.4f%s\n", short_number(fit.budget).c_str(), fit.parameters, fit.tokens,
                    fit.loss, fit.inside ? "" : "   outside the sizes that were tried");
      else
        std::printf("%23s   the parabola has no minimum\n", short_number(fit.budget).c_str());
    }
    std::printf("N_opt ∝ C^%.3f   D_opt ∝ C^%.3f   loss ∝ C^%.4f\n", laws.parameters.slope, laws.tokens.slope,
                laws.loss.slope);
    for (const auto& [quantity, line] :
         {std::pair("parameters", laws.parameters), {"tokens", laws.tokens}, {"loss", laws.loss}})
      exponents +=
          model + "," + quantity + "," + number_text(line.slope, 9) + "," + number_text(line.intercept, 9) + "\n";
    LineStyle style;
    style.markers = true;
    panel.line(model, budgets, losses, style);
    draw_model(folder, runs, model, laws);
    files += ", scaling_" + model + ".svg";
  }
  write_file_atomically(folder + "/optima.csv", optima);
  write_file_atomically(folder + "/laws.csv", exponents);
  figure.caption(folder).save(folder + "/loss.svg");
  std::printf("\nsaved %s (%s, loss.svg)\n", folder.c_str(), files.c_str());
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
  const std::string x = by_context ? "context" : "parameters";
  Figure figure(by_context ? "Perplexity and parameters against the context" : "DCT-MLP and Transformer");
  figure.caption(folder);
  Panel& perplexity = figure.panel("Perplexity").x(x).y("perplexity").log_x();
  Panel* parameters = by_context ? &figure.panel("Parameters").x(x).y("parameters").log_x() : nullptr;
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
