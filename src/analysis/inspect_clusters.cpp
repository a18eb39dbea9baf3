// inspect clusters: the vectors of all layers of a model on one long string, projected to their two principal
// components (regular_gpt, section 7.3 and figure 3).

#include <cstdio>

#include "analysis/clusters.h"
#include "analysis/inspection.h"
#include "base/error.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"
#include "train/regular_run.h"

namespace petroglyph {

namespace {

constexpr size_t MOST_CLASSES = 7;  // the number of colours in the figure
constexpr int MOST_CLUSTERS = 12;

struct ClusterSettings : InspectionSettings {
  int length = 500;

  void declare(Options& options) {
    InspectionSettings::declare(
        options, "of regular_gpt or a transformer: a .safetensors file of train_regular, or a run's folder; " +
                     called("train_regular") + " makes one, runs/regular/parity_check-seed-1");
    options.add("length", &length, 2, 1 << 16, "symbols of the string");
  }
};

// A checkpoint and the input string of its model.
struct ClusterSubject : OpenedCheckpoint {
  ClusterSubject(const std::string& checkpoint, const ClusterSettings& settings, Ops& ops)
      : OpenedCheckpoint(checkpoint, {"train_regular"}, ops),
        task(language_learned(file.path(), state, settings.length)) {
    if (state.model != "regular_gpt" && state.model != "transformer")
      throw Error(file.path() + ": a " + state.model + " does not show its layers; regular_gpt and transformer do");
    string = task.batch(1, stream_of("clusters"), 0, 0, 1).tokens;
    if (string.size() > static_cast<size_t>(model->longest()))
      throw UsageError(
          text("--length %zu: %s reads %d symbols at most", string.size(), file.path().c_str(), model->longest()));
  }

  // For a tree of layers, the number of vectors that are combined into one; else 0.
  int chunk() const {
    const bool folded = state.model == "regular_gpt" && state.config.at("thickness").integer() == 1;
    return folded ? static_cast<int>(state.config.at("chunk").integer()) : 0;
  }

  RegularLanguage task;
  SymbolString string;
};

// The projected points of each class.
void draw(Panel& panel, const PrincipalComponents& plane, const PointClasses& classes) {
  panel.x("first component").y("second component");
  for (size_t k = 0; k < classes.names.size(); ++k) {
    std::vector<double> xs, ys;
    for (size_t i = 0; i < classes.of_point.size(); ++i) {
      if (static_cast<size_t>(classes.of_point[i]) != k) continue;
      xs.push_back(plane.scores[2 * i]);
      ys.push_back(plane.scores[2 * i + 1]);
    }
    LineStyle style = POINTS;
    style.opacity = 0.6;
    panel.line(classes.names[k], xs, ys, style);
  }
}

std::string rows_of(const std::string& path, const LayerVectors& vectors, const PrincipalComponents& plane,
                    const PointClasses& classes) {
  std::string csv;
  for (size_t i = 0; i < vectors.points.size(); ++i) {
    const LayerPoint& p = vectors.points[i];
    csv += text("%s,%d,%d,%d,%s,%s,%s\n", csv_cell(path).c_str(), p.layer + 1, p.begin, p.end,
                classes.names[static_cast<size_t>(classes.of_point[i])].c_str(),
                number_text(plane.scores[2 * i], 9).c_str(), number_text(plane.scores[2 * i + 1], 9).c_str());
  }
  return csv;
}

// Prints a summary of the projection, draws it, and returns its rows of the table.
std::string look_into(const ClusterSubject& subject, Ops& ops, Figure& figure) {
  const RunState& state = subject.state;
  const std::string &path = subject.file.path(), &language = state.options.at("task").string();
  const LayerVectors vectors = layer_vectors(*subject.model, ops, subject.string, subject.chunk());
  const int points = static_cast<int>(vectors.points.size());
  const PrincipalComponents plane = principal_components(vectors.x, points, vectors.width, 2);
  const PointClasses classes = classes_of(subject.task.automaton(), subject.string, vectors.points, MOST_CLASSES);
  print(
      "%s: %s, %s on %d symbols\n"
      "  %s vectors of %d layers; two components have %.1f %% and %.1f %% of their variance\n"
      "  clusters in that plane: %d; true classes: %zu (what a vector's piece of the string does to the states)\n"
      "  among the means of all classes a vector is nearest to its own: %.2f %%\n",
      path.c_str(), state.model.c_str(), language.c_str(), static_cast<int>(subject.string.size()),
      with_commas(points).c_str(), vectors.points.back().layer + 1, 100 * plane.explained[0], 100 * plane.explained[1],
      count_clusters(plane.scores, 2, MOST_CLUSTERS), classes.names.size(),
      100 * nearest_to_own(vectors.x, vectors.width, classes.of_point));
  draw(figure.panel(language + ", " + state.model), plane, classes);
  return rows_of(path, vectors, plane, classes);
}

}  // namespace

int inspect_clusters(const std::vector<std::string>& words) {
  ClusterSettings settings;
  Options options("inspect clusters", "Shows what the layers of a model make of a string of a regular language.");
  settings.declare(options);
  options.parse(words);
  const auto ops = settings.make_ops();
  const std::string folder = settings.folder();
  Figure figure(text("The vectors of all layers on a string of %d symbols", settings.length));
  std::string csv = "checkpoint,layer,begin,end,class,component_1,component_2\n";
  for (const auto& subject : open_all<ClusterSubject>(settings, *ops)) csv += look_into(*subject, *ops, figure);
  save_files(folder, {{"clusters.csv", csv}, {"clusters.svg", figure.svg()}});
  return 0;
}

}  // namespace petroglyph
