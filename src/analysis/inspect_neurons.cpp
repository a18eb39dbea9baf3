// inspect neurons: classifies the neurons in the first layer of an MLP language model, at one checkpoint or at all
// checkpoints of a run. It follows section 4 of "MLPs for NLP": types (figure 4), ℓ1/ℓ2 over time (5, 15), weights
// and their cosine transforms (4, 6, 12), norms of the slices (7), and the nearest words (13, 14).

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>

#include "analysis/inspect.h"
#include "analysis/inspection.h"
#include "analysis/keywords.h"
#include "analysis/neuron_types.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "figures/figure.h"
#include "math/random.h"
#include "tokenizers/tokenizer.h"
#include "train/text_checkpoint.h"

namespace petroglyph {

namespace {

constexpr size_t EXAMPLES = 4;      // neurons of each type that are drawn
constexpr int ROWS = 40;            // channels of the embedding that are drawn
constexpr size_t WORD_NEURONS = 6;  // neurons of each type whose words are listed
constexpr int KEYWORDS = 10;        // words listed for a bag-of-words neuron
constexpr int COMPLETED = 5;        // words listed for an n-gram neuron, each with the model's next token
constexpr int RANDOM_VECTORS = 4;   // random vectors, for comparison with the words

struct NeuronSettings : InspectionSettings {
  uint64_t seed = 1;

  void declare(Options& options) {
    InspectionSettings::declare(
        options, "an mlp_lm's .safetensors files, or a run's folder: its snapshots and its last checkpoint");
    options.add("seed", &seed, 0, std::numeric_limits<uint64_t>::max(),
                "which neurons are drawn, and the random vectors");
  }
};

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

// Checkpoints that are not snapshots of a fixed step: their step depended on the wall-clock time or on the loss.
bool between_snapshots(const std::string& name) { return name == "best.safetensors" || name == "previous.safetensors"; }

std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> found;
    for (const std::string& folder : {path, path + "/snapshots"})
      for (const std::string& name : names_in(folder))
        if (std::filesystem::path(name).extension() == ".safetensors" && !between_snapshots(name))
          found.push_back((std::filesystem::path(folder) / name).string());
    if (found.empty()) throw Error(path + ": no .safetensors file in this folder or its snapshots");
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

Snapshot read_snapshot(const std::string& path) {
  const SafetensorsFile file(path);
  Snapshot snapshot;
  snapshot.path = path;
  snapshot.state = read_run_state(file);
  if (!file.find(FIRST) || !file.find(TABLE))
    throw Error(path + ": " + snapshot.state.model + " has no " + FIRST +
                ", the layer that is looked at; expected an mlp_lm");
  const Json& config = snapshot.state.config;
  const int64_t T = config.at("context").integer(), E = config.at("embedding").integer();
  file.expect_shape(FIRST, {E, T * E});
  file.expect_shape(TABLE, {config.at("vocab").integer(), E});
  snapshot.time = static_cast<int>(T);
  snapshot.embedding = static_cast<int>(E);
  const std::vector<float> values = file.read_as_float(FIRST);
  snapshot.weight.assign(values.begin(), values.end());
  return snapshot;
}

// Sorted by step; each step occurs once.
std::vector<Snapshot> read_snapshots(const NeuronSettings& settings) {
  std::vector<Snapshot> all;
  for (const std::string& path : files_of(settings.checkpoints)) {
    Snapshot s = read_snapshot(path);
    if (!all.empty() && s.state.config != all[0].state.config)
      throw Error(path + ": another model than that of " + all[0].path + ", expected checkpoints of one run");
    const NeuronRules rules = NeuronRules().rescaled(s.embedding);
    for (int i = 0; i < s.embedding; ++i) {
      s.measures.push_back(measure_neuron(s.neuron(static_cast<size_t>(i))));
      s.verdicts.push_back(classify_neuron(s.measures.back(), rules));
    }
    const auto later = [&](const Snapshot& other) { return other.state.step >= s.state.step; };
    const auto place = std::find_if(all.begin(), all.end(), later);
    if (place == all.end() || place->state.step != s.state.step) all.insert(place, std::move(s));
    for (size_t i = 0; i + 1 < all.size(); ++i) all[i].weight = {};
  }
  return all;
}

// ---- Words ----------------------------------------------------------------------------------------------------------

// Figures 13 and 14.
class NeuronWords {
 public:
  NeuronWords(const Snapshot& snapshot, const NeuronSettings& settings)
      : snapshot_(snapshot), settings_(settings), ops_(settings.make_ops()) {
    const SafetensorsFile file(snapshot.path);
    table_ = file.read_as_float(TABLE);
    model_ = load_model(file, snapshot.state, *ops_);
    const Json& data = snapshot.state.data;
    if (!data.is(Json::Kind::Null) && data.find("tokenizer")) tokenizer_ = load_tokenizer(file, snapshot.state);
  }

  std::string text() {
    heading("Bags of words: the neurons whose slices are most alike, and the words nearest to their mean over time");
    for (const size_t i : lowest([&](size_t n) { return snapshot_.measures[n].variance; }))
      add_bag(petroglyph::text("neuron %zu (%s)", i, name_of(snapshot_.verdicts[i].type)),
              mean_over_time(snapshot_.neuron(i)));
    for (int r = 0; r < RANDOM_VECTORS; ++r) add_bag("random " + std::to_string(r + 1), random_vector(r));
    heading(
        "N-grams: the neurons with the smallest slices, the words nearest to their largest one, and how the model goes "
        "on from each");
    for (const size_t i : lowest([&](size_t n) { return smallest_slice(n); })) {
      const std::vector<double>& norms = snapshot_.measures[i].norms;
      const int t = static_cast<int>(std::max_element(norms.begin(), norms.end()) - norms.begin());
      add_ngram(petroglyph::text("neuron %zu (%s), token %d of %d", i, name_of(snapshot_.verdicts[i].type), t + 1,
                                 snapshot_.time),
                slice(snapshot_.neuron(i), t));
    }
    for (int r = 0; r < RANDOM_VECTORS; ++r) add_ngram("random " + std::to_string(r + 1), random_vector(r));
    return text_;
  }

 private:
  void heading(const std::string& words) { text_ += (text_.empty() ? "" : "\n") + words + "\n"; }

  // The neurons with the lowest scores. Neurons without a score come last.
  template <class Score>
  std::vector<size_t> lowest(Score score) const {
    std::vector<size_t> order(snapshot_.measures.size());
    std::iota(order.begin(), order.end(), size_t(0));
    const auto known = [&](size_t i) {
      return std::isfinite(score(i)) ? score(i) : std::numeric_limits<double>::infinity();
    };
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return std::make_pair(known(a), a) < std::make_pair(known(b), b); });
    order.resize(std::min(order.size(), WORD_NEURONS));
    return order;
  }
  double smallest_slice(size_t n) const {
    const std::vector<double> norms = relative_norms(snapshot_.measures[n].norms);
    return *std::min_element(norms.begin(), norms.end());
  }

  static std::vector<double> slice(const NeuronView& w, int t) {
    std::vector<double> row;
    for (int e = 0; e < w.embedding; ++e) row.push_back(w.at(t, e));
    return row;
  }
  static std::vector<double> mean_over_time(const NeuronView& w) {
    std::vector<double> mean(static_cast<size_t>(w.embedding));
    for (int t = 0; t < w.time; ++t)
      for (int e = 0; e < w.embedding; ++e) mean[static_cast<size_t>(e)] += w.at(t, e) / w.time;
    return mean;
  }
  std::vector<double> random_vector(int number) const {
    std::vector<double> vector;
    for (int e = 0; e < snapshot_.embedding; ++e)
      vector.push_back(
          normal(settings_.seed, stream_of("random neuron"), static_cast<uint32_t>(number), static_cast<uint64_t>(e)));
    return vector;
  }

  std::string shown(int32_t token) const {
    if (!tokenizer_ || token >= tokenizer_->vocab()) return "#" + std::to_string(token);
    return "\"" + in_one_line(tokenizer_->bytes(token)) + "\"";
  }
  void add_bag(const std::string& title, const std::vector<double>& vector) {
    std::vector<std::string> words;
    for (const Keyword& word : nearest_tokens(table_, vector, KEYWORDS)) words.push_back(shown(word.token));
    text_ += "  " + title + ": " + join(words, " ") + "\n";
  }
  void add_ngram(const std::string& title, const std::vector<double>& vector) {
    std::vector<int32_t> tokens;
    for (const Keyword& word : nearest_tokens(table_, vector, COMPLETED)) tokens.push_back(word.token);
    const std::vector<int32_t> next = completions(snapshot_.state.config, *model_, *ops_, tokens);
    std::vector<std::string> pairs;
    for (size_t i = 0; i < tokens.size(); ++i) pairs.push_back(shown(tokens[i]) + " → " + shown(next[i]));
    text_ += "  " + title + ": " + join(pairs, ", ") + "\n";
  }

  const Snapshot& snapshot_;
  const NeuronSettings& settings_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::vector<float> table_;  // (V,E)
  std::string text_;
};

// ---- Report ---------------------------------------------------------------------------------------------------

const char* const TYPE_TITLES[NEURON_TYPES] = {"n-gram", "bag of words", "hybrid", "DCT-sparse", "other"};

// Next to the checkpoint, or next to the folder of snapshots that contains it.
std::string default_folder(const std::string& checkpoint) {
  const std::filesystem::path beside = std::filesystem::path(checkpoint).parent_path();
  return ((beside.filename() == "snapshots" ? beside.parent_path() : beside) / "neurons").string();
}

std::vector<double> copy_of(const NeuronView& w) {
  return {w.weight, w.weight + static_cast<size_t>(w.time) * static_cast<size_t>(w.embedding)};
}

class NeuronReport {
 public:
  NeuronReport(const NeuronSettings& settings, std::vector<Snapshot> snapshots)
      : settings_(settings),
        snapshots_(std::move(snapshots)),
        last_(snapshots_.back()),
        T_(last_.time),
        E_(last_.embedding) {}

  // All files, by name.
  std::vector<std::pair<std::string, std::string>> files() {
    show_types();
    draw_ratios();
    draw_norms();
    draw_examples();
    draw_windows();
    const std::string words = NeuronWords(last_, settings_).text();
    print("\n%s\n", words.c_str());
    files_.push_back({"words.txt", words});
    return files_;
  }

 private:
  // "mlp_lm, trained on the stories, step 4,000"
  std::string caption() const {
    const Json* const data = last_.state.options.find("data");
    const bool stories = data && data->string().empty();
    return last_.state.model + (data ? ", trained on " + (stories ? "the stories" : data->string()) : "") + ", " +
           last_.label();
  }

  // The first, the middle and the last snapshot; fewer if there are not three.
  std::vector<const Snapshot*> three_steps() const {
    std::vector<const Snapshot*> chosen;
    // The snapshot closest to the middle step. The middle of the list would be too early, because early snapshots are
    // more frequent.
    const int64_t half = (snapshots_.front().state.step + last_.state.step) / 2;
    const auto distance = [&](const Snapshot& s) { return std::abs(s.state.step - half); };
    const auto middle =
        std::min_element(snapshots_.begin(), snapshots_.end(),
                         [&](const Snapshot& a, const Snapshot& b) { return distance(a) < distance(b); });
    for (const Snapshot* s : {&snapshots_.front(), &*middle, &last_})
      if (chosen.empty() || chosen.back() != s) chosen.push_back(s);
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
    for (const Snapshot& s : snapshots_) {
      print("\n%-12s", s.label().c_str());
      csv += std::to_string(s.state.step);
      steps.push_back(static_cast<double>(s.state.step));
      const NeuronCounts counts = count_types(s.verdicts);
      for (size_t type = 0; type < NEURON_TYPES; ++type) {
        shares[type].push_back(static_cast<double>(counts[type]) / E_);
        print(" %11.1f %%", 100 * shares[type].back());
        csv += "," + cell_text(shares[type].back());
      }
      const double large = s.mean_large_slices();
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

  std::vector<size_t> sorted_by_slices(const Snapshot& snapshot) const {
    std::vector<size_t> order(snapshot.measures.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return std::make_pair(large_slices(snapshot.measures[a].norms), a) <
             std::make_pair(large_slices(snapshot.measures[b].norms), b);
    });
    return order;
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
        const std::vector<size_t> order = sorted_by_slices(*s);
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

  // Neurons of one type at the last step, drawn at random and sorted by index.
  std::vector<size_t> neurons_of(NeuronType type, size_t most) const {
    std::vector<std::pair<uint32_t, size_t>> drawn;
    for (size_t i = 0; i < last_.verdicts.size(); ++i)
      if (last_.verdicts[i].type == type)
        drawn.emplace_back(philox(settings_.seed, stream_of("examples"), 0, i).word[0], i);
    std::sort(drawn.begin(), drawn.end());
    std::vector<size_t> neurons;
    for (size_t i = 0; i < std::min(most, drawn.size()); ++i) neurons.push_back(drawn[i].second);
    std::sort(neurons.begin(), neurons.end());
    return neurons;
  }

  // weight (·,E): time or frequency on the horizontal axis, the embedding on the vertical axis.
  void draw_weights(Figure& figure, const std::string& title, const std::vector<double>& weight, const char* x,
                    int columns) const {
    const int rows = std::min(ROWS, E_);
    std::vector<double> values;
    for (int e = 0; e < rows; ++e)
      for (int t = 0; t < columns; ++t)
        values.push_back(weight[static_cast<size_t>(t) * static_cast<size_t>(E_) + static_cast<size_t>(e)]);
    figure.panel(title)
        .heatmap(static_cast<size_t>(rows), static_cast<size_t>(columns), values, "weight", ColorMap::Diverging)
        .x(x)
        .y("embedding");
  }

  // Figures 4 and 12: one file for each type that occurs.
  void draw_examples() {
    for (int type = 0; type < NEURON_TYPES; ++type) {
      const std::vector<size_t> neurons = neurons_of(static_cast<NeuronType>(type), EXAMPLES);
      if (neurons.empty()) continue;
      Figure figure(std::string("Neurons: ") + TYPE_TITLES[type]);
      figure.columns(static_cast<int>(neurons.size())).panel_size(180, 260);
      for (const size_t i : neurons) draw_weights(figure, text("neuron %zu", i), copy_of(last_.neuron(i)), "token", T_);
      for (const size_t i : neurons)
        draw_weights(figure, text("neuron %zu, cosine transform", i), cosine_transform(last_.neuron(i)), "frequency",
                     T_);
      save(text("examples_%s.svg", name_of(static_cast<NeuronType>(type))), figure);
    }
  }

  // Figure 6: one example of each type, its transform, and the transform of its window. The window begins at the oldest
  // slice that is not low.
  void draw_windows() {
    Figure figure("An example of each type, and what the cosine transform makes of it");
    figure.columns(3).panel_size(200, 260);
    for (int type = 0; type < NEURON_TYPES; ++type)
      for (const size_t i : neurons_of(static_cast<NeuronType>(type), 1)) {
        const NeuronView w = last_.neuron(i);
        const std::vector<double> norms = relative_norms(last_.measures[i].norms);
        const double low = NeuronRules().strict.low;
        const auto oldest = std::find_if(norms.begin(), norms.end(), [&](double n) { return n >= low; });
        const int first = oldest == norms.end() ? 0 : static_cast<int>(oldest - norms.begin());
        const NeuronView window{w.weight + static_cast<size_t>(first) * static_cast<size_t>(E_), T_ - first, E_};
        draw_weights(figure, text("%s, neuron %zu", TYPE_TITLES[type], i), copy_of(w), "token", T_);
        draw_weights(figure, text("transform of neuron %zu", i), cosine_transform(w), "frequency", T_);
        draw_weights(figure, text("of its last %d tokens", T_ - first), cosine_transform(window), "frequency",
                     T_ - first);
      }
    save("windows.svg", figure);
  }

  void save(const std::string& name, Figure& figure) { files_.push_back({name, figure.caption(caption()).svg()}); }

  const NeuronSettings& settings_;
  const std::vector<Snapshot> snapshots_;
  const Snapshot& last_;
  const int T_, E_;
  std::vector<std::pair<std::string, std::string>> files_;
};

}  // namespace

int inspect_neurons(const std::vector<std::string>& words) {
  NeuronSettings settings;
  Options options("inspect neurons",
                  "Tells what the neurons of an MLP language model's first layer compute of its context.");
  settings.declare(options);
  options.parse(words);
  settings.make_ops();  // throws before the work starts if the device is not available
  std::vector<Snapshot> snapshots = read_snapshots(settings);
  if (settings.out.empty()) settings.out = default_folder(snapshots.back().path);
  const std::string folder = settings.folder();
  save_files(folder, NeuronReport(settings, std::move(snapshots)).files());
  return 0;
}

}  // namespace petroglyph
