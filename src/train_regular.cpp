// Trains a model to recognize a regular language and tests it on strings far longer than it has seen. Table 1 of "Transformer
// Working Memory Enables Regular Language Reasoning And Natural Language Length Extrapolation".

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "error.h"
#include "program.h"
#include "tasks/regular_languages.h"
#include "text.h"
#include "train/atomic_file.h"
#include "train/figure.h"
#include "train/interrupt.h"
#include "train/log.h"
#include "train/progress.h"
#include "train/run.h"

namespace petroglyph {
namespace {

// The first four languages of table 1 train on lengths 1 … 40 and are tested on 41 … 500, the others on 1 … 50 and 51 … 100.
struct Lengths {
  int train, test_low, test_high;
};
Lengths lengths_of(const std::string& task) {
  for (const char* first : {"even_pairs", "modular_arithmetic", "parity_check", "cycle_navigation"})
    if (task == first) return {40, 41, 500};
  return {50, 51, 100};
}

struct RegularSettings {
  std::string task = "parity_check", model = "regular_gpt", form = "chunked", cell = "elman";
  bool all_tasks = false, leading_plus = false, near_misses = false;
  std::vector<int> seeds = {1}, probabilities;
  int train_length = 0, test_low = 0, test_high = 0, every = 1, strings = 512;
  int width = 64, hidden = 0, heads = 8, chunk = 2, thickness = 1, layers = 5;

  void declare(Options& options) {
    options.section("Task");
    options.add("task", &task, language_names(), "the language");
    options.add("all-tasks", &all_tasks, "every language in turn").may_change();
    options.add("seeds", &seeds, 0, 1 << 30, "a run each: initial weights and strings").may_change();
    options.add("train-length", &train_length, 0, 1 << 20, "longest string to learn from; 0: the paper's 40, or 50");
    options.add("test-from", &test_low, 0, 1 << 20, "shortest string of the test; 0: the paper's 41, or 51").may_change();
    options.add("test-to", &test_high, 0, 1 << 20, "longest; 0: the paper's 500, or 100").may_change();
    options.add("test-every", &every, 1, 1 << 20, "takes every Nth of these lengths").may_change();
    options.add("test-strings", &strings, 1, 1 << 20, "strings of each length").may_change();
    options.add("parity-probability", &probabilities, 1, 99,
                "parity_check: tested too on strings whose symbols are 1 with these probabilities, in percent (table 2)")
        .may_change();
    options.add("leading-plus", &leading_plus, "modular_arithmetic: expressions begin with +, as in the authors' code");
    options.add("near-misses", &near_misses, "languages: tested on members with one flipped bit in place of random strings")
        .may_change();
    options.section("Model");
    options.add("model", &model, {"regular_gpt", "transformer", "rnn", "mamba"}, "what learns");
    options.add("form", &form, {"chunked", "dilated"}, "regular_gpt: as in the authors' code, or as the paper writes it");
    options.add("width", &width, 1, 1 << 16, "channels; rnn: of its state");
    options.add("hidden", &hidden, 0, 1 << 20, "channels of the MLPs; 0: 4 widths");
    options.add("heads", &heads, 1, 1 << 10, "attention heads");
    options.add("chunk", &chunk, 2, 1 << 10, "regular_gpt: C, the vectors that become one");
    options.add("thickness", &thickness, 1, 1 << 10, "regular_gpt dilated: K, the layers between two dilations");
    options.add("layers", &layers, 1, 1 << 10, "transformer, mamba: blocks");
    options.add("cell", &cell, {"elman", "lstm"}, "rnn: its cell");
  }
};

Json config_of(const RegularSettings& s, const RegularLanguage& task) {
  Json json = Json::object();
  const int hidden = s.hidden > 0 ? s.hidden : 4 * s.width;
  json.set("vocab", task.vocab());
  if (s.model == "rnn") {
    json.set("classes", task.classes()).set("hidden", s.width).set("cell", s.cell).set("readout", "last");
    return json;
  }
  if (s.model == "mamba") {
    // Logits for every position and symbol; the last position's first ones are the classes.
    json.set("vocab", std::max(task.vocab(), task.classes())).set("context", task.context()).set("width", s.width);
    json.set("layers", s.layers).set("state", 16).set("conv", 4).set("expand", 2).set("dt_rank", (s.width + 15) / 16);
    return json;
  }
  if (s.width % s.heads != 0) throw UsageError(text("--heads %d does not divide --width %d", s.heads, s.width));
  json.set("classes", task.classes()).set("width", s.width).set("hidden", hidden).set("heads", s.heads);
  json.set("readout", "last");
  if (s.model == "regular_gpt") {
    json.set("chunk", s.chunk).set("thickness", s.thickness).set("norm", "affine").set("form", s.form);
    return json;
  }
  // The authors' baseline: no mask, Transformer-XL positions, the norms behind, ReLU.
  json.set("context", task.context()).set("layers", s.layers).set("causal", false).set("position", "xl");
  json.set("norm", "affine").set("norm_position", "post").set("mlp_activation", "relu").set("gelu", "erf");
  json.set("qkv_bias", false).set("out_bias", false).set("head_bias", true);
  json.set("embedding_scale", static_cast<double>(numerics::sqrt(static_cast<real>(s.width))));
  return json;
}

// One run and all its settings: the words of a command line, a language, a seed.
struct Session {
  Options options{"train_regular", "Trains models to recognize regular languages, and tests them on longer strings."};
  RegularSettings regular;
  RunSettings settings;
  std::optional<RegularLanguage> task;
  std::optional<Run> run;

  explicit Session(const std::vector<std::string>& words) {
    settings.program = "train_regular";
    settings.batch = 128;
    settings.steps = 3000;
    settings.stop_at = 2;
    settings.eval_every = 100;
    settings.eval_samples = 512;
    settings.save_every = 1000;
    settings.rate.peak = 1e-3;
    settings.adamw.clip = 1;
    regular.declare(options);
    settings.declare(options);
    options.parse(words);
    if (!options.given("seeds")) regular.seeds = {static_cast<int>(settings.seed)};
  }

  RegularLanguage language(int shortest, int longest, float ones = 0.5f, bool near_misses = false) const {
    RegularLanguage::Settings s;
    s.language = regular.task;
    s.shortest = shortest;
    s.longest = longest;
    s.ones = ones;
    s.leading_plus = regular.leading_plus && regular.task == "modular_arithmetic";
    s.near_misses = near_misses;
    s.every_position = regular.model == "mamba";
    return RegularLanguage(s);
  }

  Lengths lengths() const {
    Lengths lengths = lengths_of(regular.task);
    if (regular.train_length > 0) lengths.train = regular.train_length;
    if (regular.test_low > 0) lengths.test_low = regular.test_low;
    if (regular.test_high > 0) lengths.test_high = regular.test_high;
    if (lengths.test_low > lengths.test_high)
      throw UsageError(text("--test-from %d is more than --test-to %d", lengths.test_low, lengths.test_high));
    return lengths;
  }

  void prepare(const std::string& group) {
    settings.group = group + "/";
    settings.name = regular.task + "-seed-" + std::to_string(settings.seed);
    settings.resume = std::filesystem::exists("runs/" + settings.group + settings.name + "/model.safetensors");
    run.emplace(settings, options, "");
    task.emplace(language(1, lengths().train));
    run->prepare(regular.model, config_of(regular, *task), *task);
  }
};

// What one trained model made of each length: the part of the strings that it answered rightly.
struct TestResult {
  std::string task;
  uint64_t seed = 0;
  std::vector<double> lengths, accuracies;
  std::vector<double> by_probability;  // parity_check: the mean over the lengths for each probability of a 1

  double mean() const {
    double sum = 0;
    for (const double a : accuracies) sum += a;
    return sum / static_cast<double>(accuracies.size());
  }
};

double mean_accuracy(Session& session, const Lengths& lengths, float ones, Progress& progress, int64_t& done,
                     TestResult* result) {
  double sum = 0;
  int count = 0;
  for (int length = lengths.test_low; length <= lengths.test_high && !interrupted(); length += session.regular.every) {
    const RegularLanguage strings = session.language(length, length, ones, session.regular.near_misses);
    const double accuracy = session.run->evaluate(strings, session.regular.strings).accuracy;
    sum += accuracy;
    ++count;
    if (result) {
      result->lengths.push_back(length);
      result->accuracies.push_back(accuracy);
    }
    if (progress.due(++done)) progress.show(done, text("length %d  accuracy %.1f %%", length, 100 * accuracy));
  }
  return count > 0 ? sum / count : 0;
}

TestResult test_lengths(Session& session) {
  const RegularSettings& s = session.regular;
  const Lengths lengths = session.lengths();
  TestResult result;
  result.task = s.task;
  result.seed = session.settings.seed;
  const bool parity = s.task == "parity_check";
  const int64_t rounds = 1 + (parity ? static_cast<int64_t>(s.probabilities.size()) : 0);
  Progress::Settings shown;
  shown.quiet = session.settings.quiet;
  shown.unit = "length";
  Progress progress(0, rounds * ((lengths.test_high - lengths.test_low) / s.every + 1), shown);
  int64_t done = 0;
  mean_accuracy(session, lengths, 0.5f, progress, done, &result);
  if (parity)
    for (const int percent : s.probabilities)
      result.by_probability.push_back(
          mean_accuracy(session, lengths, static_cast<float>(percent) / 100, progress, done, nullptr));
  progress.finish();
  std::string csv = "length,accuracy\n";
  for (size_t i = 0; i < result.lengths.size(); ++i)
    csv += text("%.0f,%s\n", result.lengths[i], number_text(result.accuracies[i], 9).c_str());
  if (!interrupted()) write_file_atomically(session.run->file("test.csv"), csv);
  return result;
}

// The mean over the lengths for every run, and of each language the best and the mean of its runs.
void report(const std::string& folder, const RegularSettings& s, const std::vector<TestResult>& results) {
  std::string csv = "task,seed,from,to,accuracy,lowest\n";
  Figure figure("Accuracy on strings longer than those of the training, " + s.model);
  Panel* panel = nullptr;
  std::printf("\n%-20s %6s %14s %10s %16s\n", "", "seed", "lengths  ", "accuracy", "worst length");
  for (size_t i = 0; i < results.size(); ++i) {
    const TestResult& r = results[i];
    const double lowest = *std::min_element(r.accuracies.begin(), r.accuracies.end());
    const int from = static_cast<int>(r.lengths.front()), to = static_cast<int>(r.lengths.back());
    std::printf("%-20s %6llu %5d to %-5d %8.2f %% %14.2f %%\n", r.task.c_str(), static_cast<unsigned long long>(r.seed), from,
                to, 100 * r.mean(), 100 * lowest);
    csv += text("%s,%llu,%d,%d,%s,%s\n", r.task.c_str(), static_cast<unsigned long long>(r.seed), from, to,
                number_text(r.mean(), 9).c_str(), number_text(lowest, 9).c_str());
    for (size_t p = 0; p < r.by_probability.size(); ++p)
      std::printf("%-20s %6llu   symbols 1 with probability %.2f: %.2f %%\n", r.task.c_str(),
                  static_cast<unsigned long long>(r.seed), s.probabilities[p] / 100.0, 100 * r.by_probability[p]);
    if (i == 0 || results[i - 1].task != r.task)
      panel = &figure.panel(r.task).x("length").y("accuracy").y_range(0, 1.02);
    panel->line("seed " + std::to_string(r.seed), r.lengths, r.accuracies);
  }
  for (size_t i = 0; i < results.size();) {
    double sum = 0, best = 0;
    size_t end = i;
    for (; end < results.size() && results[end].task == results[i].task; ++end) {
      sum += results[end].mean();
      best = std::max(best, results[end].mean());
    }
    if (end - i > 1)
      std::printf("%-20s %zu seeds: best %.2f %%, mean %.2f %%\n", results[i].task.c_str(), end - i, 100 * best,
                  100 * sum / static_cast<double>(end - i));
    i = end;
  }
  write_file_atomically(folder + "/results.csv", csv);
  figure.save(folder + "/lengths.svg");
  std::printf("saved %s (results.csv, lengths.svg, and a run each)\n", folder.c_str());
}

int stopped(const std::string& words, const std::string& group) {
  std::printf("go on with: ./train_regular%s --resume --name %s\n", words.c_str(), group.c_str());
  return INTERRUPTED_STATUS;
}

int train_regular(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const Session common(words);
  const std::string group = group_folder(common.settings, "regular");
  const std::vector<std::string> tasks = common.regular.all_tasks ? language_names()
                                                                  : std::vector<std::string>{common.regular.task};
  std::vector<TestResult> results;
  for (const std::string& task : tasks) {
    for (const int seed : common.regular.seeds) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--task", task, "--seed", std::to_string(seed)});
      Session session(all);
      if (!session.settings.quiet) std::printf("%s, seed %d\n", task.c_str(), seed);
      session.prepare(group);
      const bool finished = session.run->train();
      const InterruptGuard guard;
      if (finished) results.push_back(test_lengths(session));
      if (!finished || interrupted()) {
        std::string given;
        for (const std::string& word : words) given += " " + word;
        return stopped(given, group);
      }
      if (tasks.size() * common.regular.seeds.size() == 1)
        std::printf("weights %016llx\n", static_cast<unsigned long long>(session.run->model().parameters.fingerprint()));
    }
  }
  report("runs/" + group, common.regular, results);
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("train_regular", [&] { return petroglyph::train_regular(argc, argv); });
}
