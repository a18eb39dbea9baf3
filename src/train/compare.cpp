#include "train/compare.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace petroglyph {

void declare_compare(Options& options, RunSettings& settings, const std::string& example) {
  options
      .add("compare", &settings.compare, "LIST",
           "trains variants in turn on the same samples: models or options, as in " + example)
      .not_saved();
}

std::vector<std::string> names_of(const std::vector<Variant>& variants) {
  std::vector<std::string> names;
  for (const Variant& variant : variants) names.push_back(variant.name);
  return names;
}

std::vector<Variant> parse_variants(const std::string& list) {
  std::vector<Variant> variants;
  for (const std::string& label : split(list, ',')) {
    Variant variant;
    variant.label = variant.name = label;
    for (const std::string& setting : split(label, ':')) {
      const size_t equals = setting.find('=');
      const bool named = equals != std::string::npos;
      const std::string option = named ? setting.substr(0, equals) : "model";
      const std::string value = named ? setting.substr(equals + 1) : setting;
      if (option == "evaluate-lengths")
        throw UsageError("--compare " + list + ": \"" + label + "\": --evaluate-lengths is common to all variants");
      if (option.empty() || value.empty())
        throw UsageError("--compare " + list + ": \"" + label +
                         "\": expected a model or OPTION=VALUE between colons, as in transformer:position=alibi");
      variant.arguments.push_back("--" + option + "=" + value);  // one word, so that it may be a flag: post-norm=off
    }
    std::replace_if(
        variant.name.begin(), variant.name.end(),
        [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }, '-');
    for (const Variant& other : variants)
      if (other.name == variant.name) throw UsageError("--compare " + list + ": \"" + label + "\" is listed twice");
    variants.push_back(variant);
  }
  return variants;
}

std::string fingerprint_text(const Model& model) {
  return text("%016llx", static_cast<unsigned long long>(model.parameters.fingerprint()));
}

int interrupted_runs(const std::string& name) {
  std::printf("To continue, repeat the command with --name %s.\n", name.c_str());
  return INTERRUPTED_STATUS;
}

void write_comparison(const std::string& folder, const std::string& title, const std::vector<Variant>& variants,
                      double chance) {
  size_t longest = 0;
  for (const Variant& variant : variants) longest = std::max(longest, variant.label.size());
  const int width = static_cast<int>(longest);
  Figure figure(title);
  Panel& losses = figure.panel("Loss").x("step").y("cross-entropy (nats)");
  Panel& accuracies = figure.panel("Accuracy").x("step").y("accuracy").y_range(-0.02, 1.02);
  std::string csv = "variant,parameters,step_50,step_90,step_99,last_step,last_loss,last_accuracy,weights\n";
  std::printf("\n%-*s  parameters    50 %%   90 %%   99 %%   %-44s  weights\n", width, "", "last evaluation");
  for (const Variant& variant : variants) {
    const CsvTable log = read_csv(folder + "/" + variant.name + "/log.csv");
    const Evaluations evaluated(log);
    const double step = evaluated.steps.back(), loss = evaluated.losses.back(), accuracy = evaluated.accuracies.back();
    losses.noisy_line(variant.label, log.column("step"), log.column("loss"));
    accuracies.line(variant.label, evaluated.steps, evaluated.accuracies);
    csv += csv_cell(variant.label) + "," + std::to_string(variant.parameters);
    std::printf("%-*s  %10s  ", width, variant.label.c_str(), with_commas(variant.parameters).c_str());
    for (const double milestone : {0.5, 0.9, 0.99}) {
      const double reached = step_reached(log, milestone);
      csv += "," + cell_text(reached);
      std::printf("%6s ", std::isfinite(reached) ? with_commas(static_cast<int64_t>(reached)).c_str() : "-");
    }
    csv += "," + cell_text(step) + "," + cell_text(loss) + "," + cell_text(accuracy) + "," + variant.weights + "\n";
    const std::string last = text("loss %.4f  accuracy %5.1f %%  at step %s", loss, 100 * accuracy,
                                  with_commas(static_cast<int64_t>(step)).c_str());
    std::printf("  %-44s  %s\n", last.c_str(), variant.weights.c_str());
  }
  if (chance > 0) accuracies.level("chance", chance);
  write_file_atomically(folder + "/compare.csv", csv);
  figure.caption(folder).save(folder + "/compare.svg");
  std::printf("saved %s (compare.csv, compare.svg, and a run each)\n", folder.c_str());
}

Figure lengths_figure(const LengthTable& table) {
  Figure figure(table.title + ": other lengths");
  Panel& panel = figure.panel().x("length (" + table.unit + ")").y(table.quantity).log_x();
  table.percent ? panel.y_range(-0.02, 1.02) : panel.log_y();
  for (size_t i = 0; i < table.labels.size(); ++i) {
    std::vector<std::pair<double, double>> points;  // a line goes from left to right, whatever the order of the lengths
    for (size_t j = 0; j < table.lengths.size(); ++j) points.emplace_back(table.lengths[j], table.values[i][j]);
    std::sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<double> lengths, values;
    for (const auto& [length, value] : points) lengths.push_back(length), values.push_back(value);
    panel.line(table.labels[i], lengths, values, WITH_MARKERS);
  }
  if (table.chance > 0) panel.level("chance", table.chance);
  return figure;
}

std::vector<double> at_lengths(const std::vector<int>& lengths, bool quiet, const std::function<double(int)>& measure) {
  Progress progress(0, static_cast<int64_t>(lengths.size()), {quiet, "length", MOSTLY_SHORT});
  std::vector<double> values;
  for (const int length : lengths) {
    values.push_back(measure(length));
    progress.show(static_cast<int64_t>(values.size()), "");
  }
  return values;
}

void write_lengths(const std::string& folder, const LengthTable& table) {
  const std::string head = table.quantity + " at length";
  size_t width = head.size();
  for (const std::string& label : table.labels) width = std::max(width, label.size());
  std::string csv = "variant", line = text("\n%-*s", static_cast<int>(width), head.c_str());
  for (const int length : table.lengths) {
    line += text(" %9d", length);
    csv += text(",%d", length);
  }
  std::printf("%s\n", line.c_str());
  for (size_t i = 0; i < table.labels.size(); ++i) {
    line = text("%-*s", static_cast<int>(width), table.labels[i].c_str());
    csv += "\n" + csv_cell(table.labels[i]);
    for (const double value : table.values[i]) {
      line += table.percent ? text(" %7.1f %%", 100 * value) : text(" %9.3f", value);
      csv += "," + cell_text(value);
    }
    std::printf("%s\n", line.c_str());
  }
  write_file_atomically(folder + "/lengths.csv", csv + "\n");
  lengths_figure(table).caption(folder).save(folder + "/lengths.svg");
  std::printf("saved %s (lengths.csv, lengths.svg)\n", folder.c_str());
}

}  // namespace petroglyph
