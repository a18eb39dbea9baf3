// inspect neurons: classifies the neurons in the first layer of an MLP language model, at one checkpoint or at all
// checkpoints of a run. It follows section 4 of "MLPs for NLP": types (figure 4), ℓ1/ℓ2 over time (5, 15), weights
// and their cosine transforms (4, 6, 12), norms of the slices (7), and the nearest words (13, 14).

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "analysis/inspection.h"
#include "analysis/neuron_types.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "figures/figure.h"
#include "tokenizers/tokenizer.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

namespace {

constexpr size_t EXAMPLES = 4;      // neurons of each type that are drawn
constexpr int ROWS = 40;            // channels of the embedding that are drawn
constexpr size_t WORD_NEURONS = 6;  // neurons of each type whose words are listed
constexpr size_t WORDS = 10;        // words listed for a neuron

// ---- Checkpoints ----------------------------------------------------------------------------------------------------

const char* const FIRST = "first.weight";
const char* const TABLE = "token_embedding.weight";

// The first layer of the model at one step.
struct Snapshot {
  std::string path;
  RunState state;
  int time = 0, embedding = 0;
  std::vector<double> weight;  // (neurons,T,E); stored for the last snapshot only
  std::vector<NeuronMeasures> measures;
  std::vector<NeuronVerdict> verdicts;

  double mean_large_slices() const {
    double sum = 0;
    for (const NeuronMeasures& m : measures) sum += large_slices(m.norms);
    return sum / embedding;
  }

  NeuronView neuron(size_t i) const {
    return {&weight[i * static_cast<size_t>(time) * static_cast<size_t>(embedding)], time, embedding};
  }
  std::string label() const { return "step " + with_commas(state.step); }
};

Snapshot read_snapshot(const std::string& path) {
  const SafetensorsFile file(path);
  Snapshot s;
  s.path = path;
  s.state = read_run_state(file);
  if (!file.find(FIRST) || !file.find(TABLE))
    throw Error(path + ": " + s.state.model + " has no " + FIRST + ", the layer that is looked at; expected an mlp_lm");
  const Json& config = s.state.config;
  const int64_t T = config.at("context").integer(), E = config.at("embedding").integer();
  file.expect_shape(FIRST, {E, T * E});
  file.expect_shape(TABLE, {config.at("vocab").integer(), E});
  s.time = static_cast<int>(T);
  s.embedding = static_cast<int>(E);
  const std::vector<float> values = file.read_as_float(FIRST);
  s.weight.assign(values.begin(), values.end());
  const NeuronRules rules = NeuronRules().rescaled(s.embedding);
  for (int i = 0; i < s.embedding; ++i) {
    s.measures.push_back(measure_neuron(s.neuron(static_cast<size_t>(i))));
    s.verdicts.push_back(classify_neuron(s.measures.back(), rules));
  }
  return s;
}

// The checkpoint and, of a run's folder, its snapshots; by step.
std::map<int64_t, Snapshot> read_snapshots(const std::string& file_or_folder) {
  std::vector<std::string> paths;
  const std::string folder = file_or_folder + "/snapshots";
  for (const std::string& name : names_in(folder))
    if (std::filesystem::path(name).extension() == ".safetensors") paths.push_back(folder + "/" + name);
  paths.push_back(checkpoint_path(file_or_folder));
  std::map<int64_t, Snapshot> all;
  for (const std::string& path : paths) {
    Snapshot s = read_snapshot(path);
    if (!all.empty() && s.state.config != all.begin()->second.state.config)
      throw Error(path + ": another model than that of " + all.begin()->second.path +
                  ", expected snapshots of one run");
    const int64_t step = s.state.step;
    all[step] = std::move(s);
    for (auto at = all.begin(); at != std::prev(all.end()); ++at) at->second.weight = {};
  }
  return all;
}

// The neurons in the order of their scores. Neurons without a score (NaN) come last.
template <class Score>
std::vector<size_t> neurons_by(const Snapshot& snapshot, Score score) {
  std::vector<double> scores;
  for (const NeuronMeasures& m : snapshot.measures) {
    scores.push_back(score(m));
    if (std::isnan(scores.back())) scores.back() = std::numeric_limits<double>::infinity();
  }
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return std::pair(scores[a], a) < std::pair(scores[b], b); });
  return order;
}

// ---- Words ----------------------------------------------------------------------------------------------------------

// The tokens whose embeddings, the rows of table (V,E), have the largest cosine similarity with the vector (E).
std::vector<int32_t> nearest_tokens(const std::vector<float>& table, const std::vector<double>& vector) {
  const size_t E = vector.size(), V = table.size() / E;
  std::vector<std::pair<double, int32_t>> all;  // −cosine, times the length of the vector
  for (size_t v = 0; v < V; ++v) {
    double dot = 0, square = 0;
    for (size_t e = 0; e < E; ++e) {
      const double x = table[v * E + e];
      dot += x * vector[e];
      square += x * x;
    }
    all.emplace_back(square > 0 ? -dot / std::sqrt(square) : 0, static_cast<int32_t>(v));
  }
  std::sort(all.begin(), all.end());
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < std::min(V, WORDS); ++i) tokens.push_back(all[i].second);
  return tokens;
}

// Figures 13 and 14: the words behind the neurons that are most like a bag of words, and most like an n-gram.
std::string words_of(const Snapshot& last) {
  const SafetensorsFile file(last.path);
  const std::vector<float> table = file.read_as_float(TABLE);
  const Json& data = last.state.data;
  const bool named = !data.is(Json::Kind::Null) && data.find("tokenizer");
  const auto tokenizer = named ? load_tokenizer(file, last.state) : nullptr;
  std::string lines;
  const auto add = [&](size_t i, const std::string& which, const std::vector<double>& vector) {
    lines += text("  neuron %zu (%s)%s:", i, name_of(last.verdicts[i].type), which.c_str());
    for (const int32_t token : nearest_tokens(table, vector))
      lines += tokenizer && token < tokenizer->vocab() ? " \"" + in_one_line(tokenizer->bytes(token)) + "\""
                                                       : " #" + std::to_string(token);
    lines += "\n";
  };
  // The sum of the slices first … end−1.
  const auto slices = [&](size_t i, int first, int end) {
    const NeuronView w = last.neuron(i);
    std::vector<double> sum(static_cast<size_t>(w.embedding));
    for (int t = first; t < end; ++t)
      for (int e = 0; e < w.embedding; ++e) sum[static_cast<size_t>(e)] += w.at(t, e);
    return sum;
  };
  const size_t count = std::min(WORD_NEURONS, last.measures.size());
  lines += "Bags of words: the neurons whose slices are most alike, and the words nearest to their mean over time\n";
  const std::vector<size_t> bags = neurons_by(last, [](const NeuronMeasures& m) { return m.variance; });
  for (size_t n = 0; n < count; ++n) add(bags[n], "", slices(bags[n], 0, last.time));
  lines += "\nN-grams: the neurons with the smallest slices, and the words nearest to their largest one\n";
  const std::vector<size_t> ngrams = neurons_by(last, [](const NeuronMeasures& m) {
    const std::vector<double> norms = relative_norms(m.norms);
    return *std::min_element(norms.begin(), norms.end());
  });
  for (size_t n = 0; n < count; ++n) {
    const std::vector<double>& norms = last.measures[ngrams[n]].norms;
    const int t = static_cast<int>(std::max_element(norms.begin(), norms.end()) - norms.begin());
    add(ngrams[n], text(", token %d of %d", t + 1, last.time), slices(ngrams[n], t, t + 1));
  }
  return lines;
}

// ---- Report ---------------------------------------------------------------------------------------------------------

const char* const TYPE_TITLES[NEURON_TYPES] = {"n-gram", "bag of words", "hybrid", "DCT-sparse", "other"};

// w (·,E): time or frequency on the horizontal axis, the embedding on the vertical axis.
void draw_weights(Figure& figure, const std::string& title, const NeuronView& w, const char* x) {
  const int rows = std::min(ROWS, w.embedding);
  std::vector<double> values;
  for (int e = 0; e < rows; ++e)
    for (int t = 0; t < w.time; ++t) values.push_back(w.at(t, e));
  figure.panel(title)
      .heatmap(static_cast<size_t>(rows), static_cast<size_t>(w.time), values, "weight", ColorMap::Diverging)
      .x(x)
      .y("embedding");
}

void draw_transform(Figure& figure, const std::string& title, const NeuronView& w) {
  const std::vector<double> transform = cosine_transform(w);
  draw_weights(figure, title, {transform.data(), w.time, w.embedding}, "frequency");
}

class NeuronReport {
 public:
  explicit NeuronReport(const std::map<int64_t, Snapshot>& snapshots)
      : snapshots_(snapshots), last_(snapshots.rbegin()->second), T_(last_.time), E_(last_.embedding) {}

  // All files, by name.
  std::vector<std::pair<std::string, std::string>> files() {
    show_types();
    draw_ratios();
    draw_norms();
    for (int type = 0; type < NEURON_TYPES; ++type) draw_examples(type);
    draw_windows();
    const std::string words = words_of(last_);
    print("\n%s\n", words.c_str());
    files_.push_back({"words.txt", words});
    return files_;
  }

 private:
  // The first, the middle and the last snapshot; fewer if there are not three. In the middle of the list would be an
  // early one, because early snapshots are more frequent.
  std::vector<const Snapshot*> three_steps() const {
    std::vector<const Snapshot*> chosen;
    const int64_t first = snapshots_.begin()->first, last = snapshots_.rbegin()->first;
    for (const int64_t step : {first, (first + last) / 2, last}) {
      const auto distance = [&](const auto& snapshot) { return std::abs(snapshot.first - step); };
      const auto nearest = std::min_element(snapshots_.begin(), snapshots_.end(),
                                            [&](const auto& a, const auto& b) { return distance(a) < distance(b); });
      if (chosen.empty() || chosen.back() != &nearest->second) chosen.push_back(&nearest->second);
    }
    return chosen;
  }

  // Figure 4, left. The table also shows how many slices are large, because the type depends on it: the n-gram type is
  // defined by fractions of the context. A neuron that reads its last five tokens is no n-gram neuron with a context of
  // 7, but it is one with a context of 31.
  void show_types() {
    print("%d neurons, context %d, embedding %d\n%-12s", E_, T_, E_, "");
    std::string csv = "step";
    for (int type = 0; type < NEURON_TYPES; ++type) {
      print(" %13s", TYPE_TITLES[type]);
      csv += std::string(",") + name_of(static_cast<NeuronType>(type));
    }
    print(" %13s", "large slices");
    csv += ",large_slices\n";
    std::vector<double> steps;
    std::vector<std::vector<double>> shares(NEURON_TYPES);
    for (const auto& [step, snapshot] : snapshots_) {
      print("\n%-12s", snapshot.label().c_str());
      csv += std::to_string(step);
      steps.push_back(static_cast<double>(step));
      for (size_t type = 0; type < NEURON_TYPES; ++type) {
        const auto is_type = [&](const NeuronVerdict& v) { return v.type == static_cast<NeuronType>(type); };
        const auto count = std::count_if(snapshot.verdicts.begin(), snapshot.verdicts.end(), is_type);
        shares[type].push_back(static_cast<double>(count) / E_);
        print(" %11.1f %%", 100 * shares[type].back());
        csv += "," + cell_text(shares[type].back());
      }
      const double large = snapshot.mean_large_slices();
      print(" %13.2f", large);
      csv += "," + cell_text(large) + "\n";
    }
    print("\n");
    files_.push_back({"types.csv", csv});
    if (snapshots_.size() < 2) return;
    Figure figure("Types of first-layer neurons over training");
    Panel& panel = figure.panel().x("step").y("share of neurons").y_range(-0.02, 1.02);
    for (size_t type = 0; type < NEURON_TYPES; ++type) panel.line(TYPE_TITLES[type], steps, shares[type], WITH_MARKERS);
    save("types.svg", figure);
  }

  // Figures 5 and 15: a histogram of ℓ1/ℓ2 over the neurons, between 1 (one slice or one frequency) and √T (all equal).
  void draw_ratios() {
    constexpr int BINS = 40;
    const double width = (std::sqrt(T_) - 1) / BINS;
    std::string csv = "step,basis,low,high,share\n";
    Figure figure("ℓ1/ℓ2 over time of first-layer neurons");
    for (const bool dct : {false, true}) {
      Panel& panel = figure.panel(dct ? "after the cosine transform" : "weights").x("ℓ1/ℓ2").y("share of neurons");
      for (const Snapshot* s : three_steps()) {
        std::vector<double> shares(BINS), xs, ys;
        for (const NeuronMeasures& m : s->measures) {
          const double place = width > 0 ? ((dct ? m.l1_l2_dct : m.l1_l2) - 1) / width : 0;
          shares[static_cast<size_t>(std::clamp(static_cast<int>(place), 0, BINS - 1))] += 1.0 / E_;
        }
        for (int b = 0; b < BINS; ++b) {
          const double low = 1 + b * width, share = shares[static_cast<size_t>(b)];
          csv += std::to_string(s->state.step) + (dct ? ",dct," : ",standard,") + cell_text(low) + "," +
                 cell_text(low + width) + "," + cell_text(share) + "\n";
          xs.insert(xs.end(), {low, low + width});
          ys.insert(ys.end(), {share, share});
        }
        panel.line(s->label(), xs, ys);
      }
    }
    files_.push_back({"ratios.csv", csv});
    save("ratios.svg", figure);
  }

  // Figure 7: one column a neuron, sorted by the number of large slices, fewest on the left. The transforms have the
  // same order.
  void draw_norms() {
    const std::vector<const Snapshot*> steps = three_steps();
    Figure figure("Norms of the slices of first-layer neurons");
    figure.columns(static_cast<int>(steps.size())).panel_size(420, 180);
    for (const bool dct : {false, true})
      for (const Snapshot* s : steps) {
        std::vector<double> values(static_cast<size_t>(T_) * static_cast<size_t>(E_));
        const std::vector<size_t> order = neurons_by(*s, [](const NeuronMeasures& m) { return large_slices(m.norms); });
        for (size_t column = 0; column < order.size(); ++column) {
          const NeuronMeasures& m = s->measures[order[column]];
          for (size_t t = 0; t < m.norms.size(); ++t)
            values[t * order.size() + column] = dct ? m.dct_norms[t] : m.norms[t];
        }
        figure.panel(s->label() + (dct ? ", cosine transform" : ""))
            .heatmap(static_cast<size_t>(T_), static_cast<size_t>(E_), values, "ℓ2 norm")
            .x("neurons, by their number of large slices")
            .y(dct ? "frequency" : "token");
      }
    save("norms.svg", figure);
  }

  // The first neurons of one type at the last step.
  std::vector<size_t> neurons_of(int type, size_t most) const {
    std::vector<size_t> neurons;
    for (size_t i = 0; i < last_.verdicts.size() && neurons.size() < most; ++i)
      if (last_.verdicts[i].type == static_cast<NeuronType>(type)) neurons.push_back(i);
    return neurons;
  }

  // Figures 4 and 12: one file for each type that occurs.
  void draw_examples(int type) {
    const std::vector<size_t> neurons = neurons_of(type, EXAMPLES);
    if (neurons.empty()) return;
    Figure figure(std::string("Neurons: ") + TYPE_TITLES[type]);
    figure.columns(static_cast<int>(neurons.size())).panel_size(180, 260);
    for (const size_t i : neurons) draw_weights(figure, text("neuron %zu", i), last_.neuron(i), "token");
    for (const size_t i : neurons) draw_transform(figure, text("neuron %zu, cosine transform", i), last_.neuron(i));
    save(text("examples_%s.svg", name_of(static_cast<NeuronType>(type))), figure);
  }

  // Figure 6: one example of each type, its transform, and the transform of its window. The window begins at the oldest
  // slice that is not low.
  void draw_windows() {
    Figure figure("An example of each type, and what the cosine transform makes of it");
    figure.columns(3).panel_size(200, 260);
    for (int type = 0; type < NEURON_TYPES; ++type)
      for (const size_t i : neurons_of(type, 1)) {
        const NeuronView w = last_.neuron(i);
        const std::vector<double> norms = relative_norms(last_.measures[i].norms);
        const double low = NeuronRules().strict.low;
        const auto oldest = std::find_if(norms.begin(), norms.end(), [&](double n) { return n >= low; });
        const int first = oldest == norms.end() ? 0 : static_cast<int>(oldest - norms.begin());
        draw_weights(figure, text("%s, neuron %zu", TYPE_TITLES[type], i), w, "token");
        draw_transform(figure, text("transform of neuron %zu", i), w);
        draw_transform(figure, text("of its last %d tokens", T_ - first),
                       {w.weight + static_cast<size_t>(first) * static_cast<size_t>(E_), T_ - first, E_});
      }
    save("windows.svg", figure);
  }

  void save(const std::string& name, Figure& figure) {
    files_.push_back({name, figure.caption(last_.state.model + ", " + last_.label()).svg()});
  }

  const std::map<int64_t, Snapshot>& snapshots_;  // by step
  const Snapshot& last_;
  const int T_, E_;
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace

int inspect_neurons(const std::vector<std::string>& words) {
  std::vector<std::string> checkpoints;
  std::string out;
  Options options("inspect neurons",
                  "Tells what the neurons of an MLP language model's first layer compute of its context.");
  options.positional("CHECKPOINT", &checkpoints,
                     "an mlp_lm's .safetensors file, or a run's folder: its snapshots and its last checkpoint", 1);
  declare_out(options, &out);
  options.parse(words);
  const std::map<int64_t, Snapshot> snapshots = read_snapshots(checkpoints[0]);
  const std::string folder = output_folder(out, checkpoints[0]) + (out.empty() ? "/neurons" : "");
  save_files(folder, NeuronReport(snapshots).files());
  return 0;
}

}  // namespace petroglyph
