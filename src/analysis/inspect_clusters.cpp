// inspect clusters: the vectors of all layers of a model that reads one long string, in the plane of their two principal components
// (regular_gpt, section 7.3 and figure 3).

#include <cstdio>

#include "analysis/clusters.h"
#include "analysis/inspect.h"
#include "analysis/output_folder.h"
#include "base/error.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"
#include "train/checkpoint.h"
#include "train/device.h"
#include "train/regular_run.h"

namespace petroglyph {

namespace {

constexpr size_t MOST_CLASSES = 7;  // as many as the figure has colours
constexpr int MOST_CLUSTERS = 12;

struct ClusterSettings {
  std::vector<std::string> checkpoints;
  std::string out, device = "auto";
  int length = 500, threads = 0;
  uint64_t seed = 1;
  bool force = false;

  void declare(Options& options) {
    options.positional("CHECKPOINT", &checkpoints,
                       "of regular_gpt or a transformer: a .safetensors file of train_regular, or a run's folder; " +
                           called("train_regular") + " makes one, runs/regular/parity_check-seed-1");
    options.add("length", &length, 2, 1 << 16, "symbols of the string");
    options.add("seed", &seed, 0, std::numeric_limits<uint64_t>::max(), "which random string");
    declare_output_folder(options, &out, &force);
    declare_device(options, &device, &threads);
  }
};

// A checkpoint, and the string that its model reads.
struct ClusterSubject {
  ClusterSubject(const std::string& checkpoint, const ClusterSettings& settings, Ops& ops)
      : file(checkpoint_path(checkpoint)),
        state(read_run_state(file, "train_regular")),
        task(language_learned(file.path(), state, settings.length)) {
    if (state.model != "regular_gpt" && state.model != "transformer")
      throw Error(file.path() + ": a " + state.model + " does not show its layers; regular_gpt and transformer do");
    string = task.batch(settings.seed, stream_of("clusters"), 0, 0, 1).tokens;
    model = load_model(file, state, ops);
    if (string.size() > static_cast<size_t>(model->longest()))
      throw UsageError(
          text("--length %zu: %s reads %d symbols at most", string.size(), file.path().c_str(), model->longest()));
  }

  // Of a tree of layers how many vectors become one, else 0.
  int chunk() const {
    const bool folded = state.model == "regular_gpt" && state.config.at("thickness").integer() == 1;
    return folded ? static_cast<int>(state.config.at("chunk").integer()) : 0;
  }

  SafetensorsFile file;
  RunState state;
  RegularLanguage task;
  SymbolString string;
  std::unique_ptr<Model> model;
};

// A panel and some lines of the table for each checkpoint.
class Clusters {
 public:
  explicit Clusters(const ClusterSettings& settings)
      : settings_(settings),
        ops_(make_device(settings.device, settings.threads)),
        output_(settings.out, settings.force, folder_of_checkpoint(settings.checkpoints[0]),
                {"clusters.csv", "clusters.svg"}),
        figure_(text("The vectors of all layers on a string of %d symbols", settings.length)) {
    csv_ = "checkpoint,layer,begin,end,class,component_1,component_2\n";
  }

  void check(const std::string& checkpoint) const { ClusterSubject(checkpoint, settings_, *ops_); }
  void add(const std::string& checkpoint);
  void save() {
    output_.save("clusters.csv", csv_);
    output_.save("clusters.svg", figure_);
    print("%s\n", output_.summary().c_str());
  }

 private:
  void draw(const std::string& title, const PrincipalComponents& plane, const PointClasses& classes);
  void write_rows(const std::string& checkpoint, const LayerVectors& vectors, const PrincipalComponents& plane,
                  const PointClasses& classes);

  const ClusterSettings& settings_;
  std::unique_ptr<Ops> ops_;
  OutputFolder output_;
  Figure figure_;
  std::string csv_;
};

void Clusters::add(const std::string& checkpoint) {
  const ClusterSubject subject(checkpoint, settings_, *ops_);
  const std::string &path = subject.file.path(), &language = subject.state.options.at("task").string();
  const LayerVectors vectors = layer_vectors(*subject.model, *ops_, subject.string, subject.chunk());
  const int points = static_cast<int>(vectors.points.size());
  if (points < 2)
    throw UsageError(text("--length %d: all layers of %s have %d vector of it, expected a string of two or more",
                          settings_.length, path.c_str(), points));
  const PrincipalComponents plane = principal_components(vectors.x, points, vectors.width, 2);
  const PointClasses classes = classes_of(subject.task.automaton(), subject.string, vectors.points, MOST_CLASSES);
  const Separation apart = separation(vectors.x, vectors.width, classes.of_point);
  print(
      "%s: %s, %s on %d symbols\n"
      "  %s vectors of %d layers; two components have %.1f %% and %.1f %% of their variance\n"
      "  clusters in that plane: %d; true classes: %zu (what a vector's piece of the string does to the states)\n"
      "  from a vector to the mean of its class %.3g, between the nearest two means %.3g; nearest to its own: %.2f "
      "%%\n",
      path.c_str(), subject.state.model.c_str(), language.c_str(), static_cast<int>(subject.string.size()),
      with_commas(points).c_str(), vectors.points.back().layer + 1, 100 * plane.explained[0], 100 * plane.explained[1],
      count_clusters(plane.scores, 2, MOST_CLUSTERS), classes.names.size(), apart.within, apart.between,
      100 * apart.nearest);
  draw(language + ", " + subject.state.model, plane, classes);
  write_rows(path, vectors, plane, classes);
}

void Clusters::draw(const std::string& title, const PrincipalComponents& plane, const PointClasses& classes) {
  Panel& panel = figure_.panel(title).x("first component").y("second component");
  for (size_t k = 0; k < classes.names.size(); ++k) {
    std::vector<double> xs, ys;
    for (size_t i = 0; i < classes.of_point.size(); ++i) {
      if (static_cast<size_t>(classes.of_point[i]) != k) continue;
      xs.push_back(plane.scores[2 * i]);
      ys.push_back(plane.scores[2 * i + 1]);
    }
    LineStyle style;
    style.markers = true;
    style.joined = false;
    style.opacity = 0.6;
    panel.line(classes.names[k], xs, ys, style);
  }
}

void Clusters::write_rows(const std::string& checkpoint, const LayerVectors& vectors, const PrincipalComponents& plane,
                          const PointClasses& classes) {
  for (size_t i = 0; i < vectors.points.size(); ++i) {
    const LayerPoint& p = vectors.points[i];
    csv_ += text("%s,%d,%d,%d,%s,%s,%s\n", csv_cell(checkpoint).c_str(), p.layer + 1, p.begin, p.end,
                 classes.names[static_cast<size_t>(classes.of_point[i])].c_str(),
                 number_text(plane.scores[2 * i], 9).c_str(), number_text(plane.scores[2 * i + 1], 9).c_str());
  }
}

}  // namespace

int inspect_clusters(const std::vector<std::string>& words) {
  ClusterSettings settings;
  Options options("inspect clusters", "Shows what the layers of a model make of a string of a regular language.");
  settings.declare(options);
  options.parse(words);
  Clusters clusters(settings);
  // All before the first is looked into: what is wrong with the last shows at once.
  for (const std::string& checkpoint : settings.checkpoints) clusters.check(checkpoint);
  for (const std::string& checkpoint : settings.checkpoints) clusters.add(checkpoint);
  clusters.save();
  return 0;
}

}  // namespace petroglyph
