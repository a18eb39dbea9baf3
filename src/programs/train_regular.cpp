// Trains a model to recognize a regular language and tests it on strings far longer than it has seen. Table 1 of "Transformer
// Working Memory Enables Regular Language Reasoning And Natural Language Length Extrapolation".

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/program.h"
#include "base/progress.h"
#include "base/text.h"
#include "figures/figure.h"
#include "tasks/regular_languages.h"
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
  std::string task = "parity_check", protocol = "answer", model = "regular_gpt", form = "chunked", cell = "elman";
  bool all_tasks = false, leading_plus = false, near_misses = false;
  std::vector<int> seeds = {1}, probabilities;
  int train_length = 0, test_low = 0, test_high = 0, every = 1, strings = 512;
  int width = 64, hidden = 0, heads = 8, chunk = 2, thickness = 1, layers = 5;

  void declare(Options& options) {
    options.section("Task");
    options.add("task", &task, language_names(), "the language");
    options.add("all-tasks", &all_tasks, "every language in turn").may_change();
    options.add("protocol", &protocol, {"answer", "next"},
                "one answer at the end of a string; or D_n and Tomita as Bhattamishra et al. ask for them: after every "
                "symbol of a member, what may follow");
    options.add("seeds", &seeds, 0, 1 << 30, "a run each: initial weights and strings").may_change();
    options.add("train-length", &train_length, 0, 1 << 20, "longest string to learn from; 0: the paper's 40, or 50");
    options.add("test-from", &test_low, 0, 1 << 20, "shortest string of the test; 0: the paper's 41, or 51")
        .may_change();
    options.add("test-to", &test_high, 0, 1 << 20, "longest; 0: the paper's 500, or 100").may_change();
    options.add("test-every", &every, 1, 1 << 20, "takes every Nth of these lengths").may_change();
    options.add("test-strings", &strings, 1, 1 << 20, "strings of each length").may_change();
    options
        .add("parity-probability", &probabilities, 1, 99,
             "parity_check: tested too, at the training length and on the longer ones, on strings whose symbols are 1 "
             "with these probabilities, in percent (table 2: 10,30,50,70,90)")
        .may_change();
    options.add("leading-plus", &leading_plus, "modular_arithmetic: expressions begin with +, as in the authors' code");
    options
        .add("near-misses", &near_misses,
             "D_n, Tomita: tested on members against members with one flipped bit, not random strings, of the lengths "
             "that have both")
        .may_change();
    options.section("Model");
    options.add("model", &model, {"regular_gpt", "transformer", "rnn", "mamba"},
                "what learns; rnn: for 20,000 steps at a rate of 3e-3 unless --steps and --lr say otherwise");
    options.add("form", &form, {"chunked", "dilated"},
                "regular_gpt: as in the authors' code, or as the paper writes it");
    options.add("width", &width, 1, 1 << 16, "channels; rnn: of its state");
    options.add("hidden", &hidden, 0, 1 << 20, "channels of the MLPs; 0: 4 widths");
    options.add("heads", &heads, 1, 1 << 10, "attention heads");
    options.add("chunk", &chunk, 2, 1 << 10, "regular_gpt: C, the vectors that become one");
    options.add("thickness", &thickness, 1, 1 << 10, "regular_gpt dilated: K, the layers between two dilations");
    options.add("layers", &layers, 1, 1 << 10, "transformer, mamba: blocks");
    options.add("cell", &cell, {"elman", "lstm"}, "rnn: its cell");
  }

  bool next_symbol() const { return protocol == "next"; }
};

// What a model reads and answers.
struct Sizes {
  int vocab, classes, context;
};

Json config_of(const RegularSettings& s, const Sizes& sizes) {
  Json json = Json::object();
  const int hidden = s.hidden > 0 ? s.hidden : 4 * s.width;
  const char* const readout = s.next_symbol() ? "all" : "last";
  json.set("vocab", sizes.vocab);
  if (s.model == "rnn") {
    json.set("classes", sizes.classes).set("hidden", s.width).set("cell", s.cell).set("readout", readout);
    return json;
  }
  if (s.model == "mamba") {
    // Logits for every position and symbol; the last position's first ones are the classes.
    json.set("vocab", std::max(sizes.vocab, sizes.classes)).set("context", sizes.context).set("width", s.width);
    json.set("layers", s.layers).set("state", 16).set("conv", 4).set("expand", 2).set("dt_rank", (s.width + 15) / 16);
    return json;
  }
  if (s.width % s.heads != 0) throw UsageError(text("--heads %d does not divide --width %d", s.heads, s.width));
  json.set("classes", sizes.classes).set("width", s.width).set("hidden", hidden).set("heads", s.heads);
  json.set("readout", readout);
  if (s.model == "regular_gpt") {
    json.set("chunk", s.chunk).set("thickness", s.thickness).set("norm", "affine").set("form", s.form);
    return json;
  }
  // The authors' baseline: no mask (but where every position is asked for what follows), Transformer-XL positions, the norms
  // behind, ReLU.
  json.set("context", sizes.context).set("layers", s.layers).set("causal", s.next_symbol()).set("position", "xl");
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
  std::unique_ptr<Task> task;
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
    if (settings.seed > 1 << 30)
      throw UsageError(
          text("--seed %llu: expected at most %d", static_cast<unsigned long long>(settings.seed), 1 << 30));
    if (!options.given("seeds")) regular.seeds = {static_cast<int>(settings.seed)};
    // It takes 10,000 steps and more before it knows parity, cheap ones, and at 1e-3 it stays at chance.
    if (regular.model == "rnn" && !options.given("steps")) settings.steps = 20000;
    if (regular.model == "rnn" && !options.given("lr")) settings.rate.peak = 3e-3;
    check();
  }

  void check() {
    if (regular.seeds.empty()) throw UsageError("--seeds: expected at least one");
    if (!regular.next_symbol()) return;
    for (const char* other :
         {"test-from", "test-to", "test-every", "parity-probability", "near-misses", "leading-plus"})
      if (options.given(other)) throw UsageError(std::string("--") + other + ": not with --protocol next");
    if (regular.model != "regular_gpt") return;
    if (options.given("form") && regular.form == "chunked")
      throw UsageError(
          "--form chunked: answers at the end of a string only; --protocol next asks every position (dilated)");
    regular.form = "dilated";
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
    // Longer ones than the run has learned from, also where these were chosen.
    if (regular.test_low == 0 && lengths.test_low <= lengths.train) lengths.test_low = lengths.train + 1;
    if (lengths.test_low > lengths.test_high)
      throw UsageError(text("--test-from %d is more than --test-to %d", lengths.test_low, lengths.test_high));
    if (lengths.test_low < lengths.train)
      throw UsageError(
          text("--test-from %d: strings of up to %d symbols are learned from, and the test is of longer ones",
               lengths.test_low, lengths.train));
    return lengths;
  }

  // Those of the test.
  std::vector<int> test_lengths() const {
    const Lengths lengths = this->lengths();
    std::vector<int> wanted;
    const RegularLanguage any = language(1, lengths.train, 0.5f, regular.near_misses);
    for (int length = lengths.test_low; length <= lengths.test_high; length += regular.every)
      if (!regular.near_misses || any.has_near_misses(length)) wanted.push_back(length);
    if (wanted.empty())
      throw UsageError(text("--near-misses: %s has no members of %d to %d symbols, every %d", regular.task.c_str(),
                            lengths.test_low, lengths.test_high, regular.every));
    return wanted;
  }

  // Windows of as many lengths as those of the training: itself, and two of longer strings.
  static constexpr int WINDOWS = 3, TRAINING_STRINGS = 10000, TEST_STRINGS = 500;
  std::pair<int, int> window(int i) const {
    const int longest = lengths_of(regular.task).train, N = regular.train_length > 0 ? regular.train_length : longest;
    return {i == 0 ? 2 : i * N + 1, (i + 1) * N};
  }
  NextSymbol next_symbols(int i) const {
    const auto [low, high] = window(i);
    const int tested = options.given("test-strings") ? regular.strings : TEST_STRINGS;
    return NextSymbol(regular.task, low, high, i == 0 ? TRAINING_STRINGS : 0, tested,
                      settings.batch * settings.accumulate, settings.seed);
  }

  void prepare(const std::string& group) {
    settings.group = group + "/";
    settings.name = regular.task + "-seed-" + std::to_string(settings.seed);
    settings.resume = goes_on_in_group(group, settings.name, settings.resume);
    run.emplace(settings, options, "");
    Sizes sizes{NextSymbol::VOCAB, NextSymbol::CLASSES, window(0).second};
    if (regular.next_symbol()) {
      task = std::make_unique<NextSymbol>(next_symbols(0));
    } else {
      const RegularLanguage strings = language(1, lengths().train);
      sizes = {strings.vocab(), strings.classes(), strings.context()};
      test_lengths();  // whether there are any shows before the training
      task = std::make_unique<RegularLanguage>(strings);
    }
    if (!settings.quiet)
      std::printf("%s, seed %llu\n", regular.task.c_str(), static_cast<unsigned long long>(settings.seed));
    run->prepare(regular.model, config_of(regular, sizes), *task);
  }
};

// What one trained model made of each length, or of each window of lengths: the part of the strings that it answered rightly.
struct TestResult {
  std::string task;
  uint64_t seed = 0;
  std::vector<double> from, to, accuracies;
  // parity_check, for each probability of a 1: at the training length, and the mean over the longer ones
  std::vector<double> same_length, longer;

  double mean() const {
    double sum = 0;
    for (const double a : accuracies) sum += a;
    return sum / static_cast<double>(accuracies.size());
  }
  double lowest() const { return *std::min_element(accuracies.begin(), accuracies.end()); }
};

// The test of one trained model, with a live line.
class TestOfLengths {
 public:
  explicit TestOfLengths(Session& session) : session_(session), s_(session.regular) {
    result_.task = s_.task;
    result_.seed = session.settings.seed;
  }

  TestResult run() {
    if (s_.next_symbol()) return windows(), result_;
    const Lengths lengths = session_.lengths();
    const std::vector<int> wanted = session_.test_lengths();
    const bool parity = s_.task == "parity_check";
    const auto count = static_cast<int64_t>(wanted.size());
    begin(count + (parity ? static_cast<int64_t>(s_.probabilities.size()) * (count + 1) : 0), "length");
    for (const int length : wanted) add(length, length, accuracy(length, 0.5f));
    for (size_t p = 0; parity && p < s_.probabilities.size(); ++p) {
      const float ones = static_cast<float>(s_.probabilities[p]) / 100;
      result_.same_length.push_back(accuracy(lengths.train, ones));
      double sum = 0;
      for (const int length : wanted) sum += accuracy(length, ones);
      result_.longer.push_back(sum / static_cast<double>(count));
    }
    save("length,accuracy\n");
    return result_;
  }

 private:
  void begin(int64_t total, const char* unit) {
    Progress::Settings shown;
    shown.quiet = session_.settings.quiet;
    shown.unit = unit;
    progress_.emplace(0, total, shown);
  }
  void add(double from, double to, double accuracy) {
    result_.from.push_back(from);
    result_.to.push_back(to);
    result_.accuracies.push_back(accuracy);
  }
  double accuracy(int length, float ones) {
    if (interrupted()) return 0;
    const RegularLanguage strings = session_.language(length, length, ones, s_.near_misses);
    const double longer = double(length) / session_.lengths().train;
    const double accuracy = session_.run->evaluate(strings, s_.strings, longer).accuracy;
    if (progress_->due(++done_)) progress_->show(done_, text("length %d  accuracy %.1f %%", length, 100 * accuracy));
    return accuracy;
  }

  void windows() {
    begin(Session::WINDOWS, "window");
    for (int i = 0; i < Session::WINDOWS && !interrupted(); ++i) {
      const NextSymbol strings = session_.next_symbols(i);
      const auto [low, high] = session_.window(i);
      add(low, high, session_.run->evaluate(strings, static_cast<int>(strings.test_strings()), i + 1).accuracy);
      progress_->show(++done_,
                      text("%lld strings of %d to %d symbols  accuracy %.1f %%",
                           static_cast<long long>(strings.test_strings()), low, high, 100 * result_.accuracies.back()));
    }
    save("longest,accuracy\n");
  }

  void save(std::string csv) {
    progress_->finish();
    if (interrupted()) return;
    for (size_t i = 0; i < result_.to.size(); ++i)
      csv += text("%.0f,%s\n", result_.to[i], number_text(result_.accuracies[i], 9).c_str());
    write_file_atomically(session_.run->file("test.csv"), csv);
  }

  Session& session_;
  const RegularSettings& s_;
  TestResult result_;
  std::optional<Progress> progress_;
  int64_t done_ = 0;
};

// The runs of each language, results of one behind the other.
std::vector<std::vector<TestResult>> by_task(const std::vector<TestResult>& results) {
  std::vector<std::vector<TestResult>> groups;
  for (const TestResult& r : results) {
    if (groups.empty() || groups.back()[0].task != r.task) groups.emplace_back();
    groups.back().push_back(r);
  }
  return groups;
}

// Table 2, the mean over the seeds.
void report_probabilities(const std::string& folder, const std::vector<int>& probabilities,
                          const std::vector<TestResult>& runs) {
  std::string csv = "lengths,probability,accuracy\n";
  std::printf("%-20s %22s", runs[0].task.c_str(), "symbols 1 in");
  for (const int percent : probabilities) std::printf(" %6d %%", percent);
  for (const bool same : {true, false}) {
    std::printf("\n%-20s %22s", "", same ? "at the training length" : "longer");
    for (size_t p = 0; p < probabilities.size(); ++p) {
      double mean = 0;
      for (const TestResult& r : runs) mean += (same ? r.same_length : r.longer)[p] / static_cast<double>(runs.size());
      std::printf(" %6.2f %%", 100 * mean);
      csv += text("%s,%s,%s\n", same ? "same" : "longer", number_text(probabilities[p] / 100.0, 9).c_str(),
                  number_text(mean, 9).c_str());
    }
  }
  std::printf("\n");
  write_file_atomically(folder + "/probabilities.csv", csv);
}

void print_run(const TestResult& r) {
  const auto seed = static_cast<unsigned long long>(r.seed);
  std::printf("%-20s %6llu %5.0f to %-5.0f %8.2f %% %14.2f %%\n", r.task.c_str(), seed, r.from.front(), r.to.back(),
              100 * r.mean(), 100 * r.lowest());
  for (size_t i = 0; r.from[0] != r.to[0] && i < r.to.size(); ++i)  // windows
    std::printf("%-27s %5.0f to %-5.0f %8.2f %%\n", "", r.from[i], r.to[i], 100 * r.accuracies[i]);
}

// The mean over the lengths for every run, and of each language the best and the mean of its runs.
void report(const std::string& folder, const RegularSettings& s, const std::vector<TestResult>& results) {
  std::string csv = "task,seed,from,to,accuracy,lowest\n";
  Figure figure("Accuracy on strings longer than those of the training, " + s.model);
  std::printf("\n%-20s %6s %14s %10s %16s\n", "", "seed", "lengths  ", "accuracy", "worst length");
  for (const std::vector<TestResult>& runs : by_task(results)) {
    Panel& panel = figure.panel(runs[0].task).x("length").y("accuracy").y_range(0, 1.02);
    double sum = 0, best = 0;
    for (const TestResult& r : runs) {
      print_run(r);
      csv += text("%s,%llu,%.0f,%.0f,%s,%s\n", r.task.c_str(), static_cast<unsigned long long>(r.seed), r.from.front(),
                  r.to.back(), number_text(r.mean(), 9).c_str(), number_text(r.lowest(), 9).c_str());
      panel.line("seed " + std::to_string(r.seed), r.to, r.accuracies);
      sum += r.mean();
      best = std::max(best, r.mean());
    }
    if (runs.size() > 1)
      std::printf("%-20s %zu seeds: best %.2f %%, mean %.2f %%\n", runs[0].task.c_str(), runs.size(), 100 * best,
                  100 * sum / static_cast<double>(runs.size()));
    if (!runs[0].longer.empty()) report_probabilities(folder, s.probabilities, runs);
  }
  write_file_atomically(folder + "/results.csv", csv);
  figure.save(folder + "/lengths.svg");
  std::printf("saved %s (results.csv, lengths.svg, and a run each)\n", folder.c_str());
}

// All languages, or those that have members.
std::vector<std::string> tasks_of(const RegularSettings& s) {
  if (!s.all_tasks) return {s.task};
  std::vector<std::string> tasks;
  for (const std::string& name : language_names())
    if (!(s.next_symbol() || s.near_misses) || name[0] == 'D' || name[0] == 'T') tasks.push_back(name);
  return tasks;
}

int stopped(const std::string& words, const std::string& group) {
  std::printf("go on with: ./train_regular%s --resume --name %s\n", words.c_str(), group.c_str());
  return INTERRUPTED_STATUS;
}

int train_regular(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const Session common(words);
  const std::string group = group_folder(common.settings, "regular");
  const std::vector<std::string> tasks = tasks_of(common.regular);
  const std::string first = tasks[0] + "-seed-" + std::to_string(common.regular.seeds.at(0));
  if (common.settings.resume && !std::filesystem::exists("runs/" + group + "/" + first))
    throw Error("runs/" + group + ": has no run " + first +
                "; --resume wants the --task, --all-tasks and --seeds of before");
  std::vector<TestResult> results;
  for (const std::string& task : tasks) {
    for (const int seed : common.regular.seeds) {
      std::vector<std::string> all = words;
      all.insert(all.end(), {"--task", task, "--seed", std::to_string(seed)});
      Session session(all);
      session.prepare(group);
      const bool finished = session.run->train();
      const InterruptGuard guard;
      if (finished) results.push_back(TestOfLengths(session).run());
      if (!finished || interrupted()) {
        std::string given;
        for (const std::string& word : words) given += " " + word;
        return stopped(given, group);
      }
      if (tasks.size() * common.regular.seeds.size() == 1)
        std::printf("weights %016llx\n",
                    static_cast<unsigned long long>(session.run->model().parameters.fingerprint()));
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
