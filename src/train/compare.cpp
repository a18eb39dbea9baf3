#include "train/compare.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace petroglyph {

namespace {

const std::vector<double> MILESTONES = {0.5, 0.9, 0.99};

}  // namespace

void declare_compare(Options& options, RunSettings& settings, const std::string& example) {
  options
      .add("compare", &settings.compare,
           "trains variants in turn on the same samples: models or options, as in " + example)
      .placeholder("LIST")
      .always()
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

void check_options(const Variant& variant, const Options& options, const std::string& list) {
  for (const std::string& word : variant.arguments) {
    const std::string option = word.substr(2, word.find('=') - 2);  // of --OPTION=VALUE
    if (options.always(option) || option == "evaluate-lengths")
      throw UsageError("--compare " + list + ": \"" + variant.label + "\": --" + option +
                       " is common to all variants: expected it outside of --compare");
  }
}

std::string fingerprint_text(const Model& model) {
  return text("%016llx", static_cast<unsigned long long>(model.parameters.fingerprint()));
}

int interrupted_runs(const std::string& name) {
  std::printf("To continue, repeat the command with --name %s.\n", name.c_str());
  return INTERRUPTED_STATUS;
}

namespace {

// The table and the CSV file, a row at a time.
class ComparisonTable {
 public:
  explicit ComparisonTable(const std::vector<Variant>& variants) {
    for (const Variant& variant : variants) width_ = std::max(width_, variant.label.size());
    csv_ = "variant,parameters,step_50,step_90,step_99,last_step,last_loss,last_accuracy,weights\n";
    std::printf("\n%-*s  %10s  ", static_cast<int>(width_), "", "parameters");
    std::printf("%6s %6s %6s   %-*s  weights\n", "50 %", "90 %", "99 %", EVALUATION, "last evaluation");
  }

  void add(const Variant& variant, const CsvTable& log, const Evaluations& evaluations) {
    std::printf("%-*s  %10s  ", static_cast<int>(width_), variant.label.c_str(),
                with_commas(variant.parameters).c_str());
    csv_ += csv_cell(variant.label) + "," + std::to_string(variant.parameters);
    for (const double milestone : MILESTONES) {
      const double step = step_reached(log, milestone);
      std::printf("%6s ", std::isfinite(step) ? with_commas(static_cast<int64_t>(step)).c_str() : "-");
      csv_ += "," + cell_text(step);
    }
    std::printf("  %-*s  %s\n", EVALUATION, last(evaluations).c_str(), variant.weights.c_str());
    csv_ += "," + variant.weights + "\n";
  }

  const std::string& csv() const { return csv_; }

 private:
  static constexpr int EVALUATION = 44;  // letters

  // As words and, in the file, as numbers.
  std::string last(const Evaluations& evaluations) {
    if (evaluations.steps.empty()) {
      csv_ += ",,,";
      return "none";
    }
    const double step = evaluations.steps.back(), loss = evaluations.losses.back(),
                 accuracy = evaluations.accuracies.back();
    csv_ += "," + cell_text(step) + "," + cell_text(loss) + "," + cell_text(accuracy);
    return text("loss %.4f  accuracy %5.1f %%  at step %s", loss, 100 * accuracy,
                with_commas(static_cast<int64_t>(step)).c_str());
  }

  size_t width_ = 0;
  std::string csv_;
};

// What is tenfold apart cannot be read off one even axis.
bool tenfold(const std::vector<double>& values) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return least > 0 && most >= 10 * least;
}

}  // namespace

void write_comparison(const std::string& folder, const std::string& title, const std::vector<Variant>& variants,
                      double chance) {
  std::vector<CsvTable> logs;
  for (const Variant& variant : variants) logs.push_back(read_csv(folder + "/" + variant.name + "/log.csv"));
  ComparisonTable table(variants);
  Figure figure(title);
  Panel& loss = figure.panel("Loss").x("step").y("cross-entropy (nats)");
  Panel& accuracy = figure.panel("Accuracy").x("step").y("accuracy").y_range(-0.02, 1.02);
  std::vector<double> last_steps;
  for (const CsvTable& log : logs) last_steps.push_back(log.rows() > 0 ? log.column("step").back() : 0);
  if (tenfold(last_steps)) loss.log_x(), accuracy.log_x();
  for (size_t i = 0; i < variants.size(); ++i) {
    const Evaluations evaluations(logs[i]);
    table.add(variants[i], logs[i], evaluations);
    loss.noisy_line(variants[i].label, logs[i].column("step"), logs[i].column("loss"));
    accuracy.line(variants[i].label, evaluations.steps, evaluations.accuracies);
  }
  if (chance > 0) accuracy.level("chance", chance);
  write_file_atomically(folder + "/compare.csv", table.csv());
  figure.caption(folder).save(folder + "/compare.svg");
  std::printf("saved %s (compare.csv, compare.svg, and a run each)\n", folder.c_str());
}

Figure lengths_figure(const LengthTable& table) {
  Figure figure(table.title + ": other lengths");
  Panel& panel = figure.panel().x("length (" + table.unit + ")").y(table.quantity).log_x();
  std::vector<double> all;
  for (const std::vector<double>& values : table.values) all.insert(all.end(), values.begin(), values.end());
  if (table.percent) panel.y_range(-0.02, 1.02);
  if (!table.percent && tenfold(all)) panel.log_y();
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
