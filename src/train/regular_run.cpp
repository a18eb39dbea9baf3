#include "train/regular_run.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/text.h"
#include "math/numerics.h"

namespace petroglyph {

namespace {

// The first four languages of table 1 train on lengths 1 … 40 and are tested on 41 … 500, the others on 1 … 50 and 51 …
// 100.
Lengths lengths_of(const std::string& task) {
  for (const char* first : {"even_pairs", "modular_arithmetic", "parity_check", "cycle_navigation"})
    if (task == first) return {40, 41, 500};
  return {50, 51, 100};
}

// D_n and Tomita: whether a string is a member.
bool asks_members(const std::string& task) { return task[0] == 'D' || task[0] == 'T'; }

constexpr int TRAINING_STRINGS = 10000, TEST_STRINGS = 500;  // of --protocol next

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
  // The authors' baseline: no mask (except where every position predicts what may follow), Transformer-XL positions,
  // post-norm, ReLU.
  json.set("context", sizes.context).set("layers", s.layers).set("causal", s.next_symbol()).set("position", "xl");
  json.set("norm", "affine").set("norm_position", "post").set("mlp_activation", "relu").set("gelu", "erf");
  json.set("qkv_bias", false).set("out_bias", false).set("head_bias", true);
  json.set("embedding_scale", static_cast<double>(numerics::sqrt(static_cast<real>(s.width))));
  return json;
}

}  // namespace

void RegularSettings::declare(Options& options) {
  options.section("Task");
  options.add("task", &task, language_names(), "the language");
  options.add("all-tasks", &all_tasks, "every language in turn").always().not_saved();
  options.add("protocol", &protocol, {"answer", "next"},
              "one answer at the end of a string; or D_n and Tomita as Bhattamishra et al. ask for them: after every "
              "symbol of a member, what may follow");
  options.add("seeds", &seeds, 0, 1 << 30, "a run each: initial weights and strings").always().not_saved();
  options.add("train-length", &train_length, 0, 1 << 20, "longest string to learn from; 0: the paper's 40, or 50");
  options.add("test-from", &test_low, 0, 1 << 20, "shortest string of the test; 0: the paper's 41, or 51")
      .always()
      .not_saved();
  options.add("test-to", &test_high, 0, 1 << 20, "longest; 0: the paper's 500, or 100").always().not_saved();
  options.add("test-every", &every, 1, 1 << 20, "takes every Nth of these lengths").always().not_saved();
  options.add("test-strings", &strings, 1, 1 << 20, "strings of each length").always().not_saved();
  options
      .add("parity-probability", &probabilities, 1, 99,
           "parity_check: tested too, at the training length and on the longer ones, on strings whose symbols are 1 "
           "with these probabilities, in percent (table 2: 10,30,50,70,90)")
      .always()
      .not_saved();
  options.add("leading-plus", &leading_plus, "modular_arithmetic: expressions begin with +, as in the authors' code");
  options
      .add("near-misses", &near_misses,
           "D_n, Tomita: tested on members against members with one flipped bit, not random strings, of the lengths "
           "that have both")
      .always()
      .not_saved();
  options.section("Model");
  options.add("model", &model, {"regular_gpt", "transformer", "rnn", "mamba"},
              "what learns; rnn: for 20,000 steps at a rate of 3e-3 unless --steps and --lr say otherwise");
  options.add("form", &form, {"chunked", "dilated"}, "regular_gpt: as in the authors' code, or as the paper writes it");
  options.add("width", &width, 1, 1 << 16, "channels; rnn: of its state");
  options.add("hidden", &hidden, 0, 1 << 20, "channels of the MLPs; 0: 4 widths");
  options.add("heads", &heads, 1, 1 << 10, "attention heads");
  options.add("chunk", &chunk, 2, 1 << 10, "regular_gpt: C, the vectors that become one");
  options.add("thickness", &thickness, 1, 1 << 10, "regular_gpt dilated: K, the blocks between two dilations");
  options.add("layers", &layers, 1, 1 << 10, "transformer, mamba: blocks");
  options.add("cell", &cell, {"elman", "lstm"}, "rnn: its cell");
  for (const char* const option : {"hidden", "heads"})
    options.only_with(option, "model", {"regular_gpt", "transformer"});
  for (const char* const option : {"form", "chunk", "thickness"}) options.only_with(option, "model", {"regular_gpt"});
  options.only_with("thickness", "form", {"dilated"});
  options.only_with("layers", "model", {"transformer", "mamba"});
  options.only_with("cell", "model", {"rnn"});
}

std::vector<std::string> RegularSettings::tasks() const {
  if (!all_tasks) return {task};
  std::vector<std::string> chosen;
  for (const std::string& name : language_names())
    if (!(next_symbol() || near_misses) || asks_members(name)) chosen.push_back(name);
  return chosen;
}

RegularRun::RegularRun(const std::vector<std::string>& words) {
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
    throw UsageError(text("--seed %llu: expected at most %d", static_cast<unsigned long long>(settings.seed), 1 << 30));
  if (!options.given("seeds")) regular.seeds = {static_cast<int>(settings.seed)};
  // It learns parity after 10,000 (cheap) steps or more; at a rate of 1e-3 it stays at chance.
  if (regular.model == "rnn" && !options.given("steps")) settings.steps = 20000;
  if (regular.model == "rnn" && !options.given("lr")) settings.rate.peak = 3e-3;
  check();
}

void RegularRun::check() {
  if (regular.seeds.empty()) throw UsageError("--seeds: expected at least one");
  if (!regular.next_symbol()) return;
  for (const char* other : {"test-from", "test-to", "test-every", "parity-probability", "near-misses", "leading-plus"})
    if (options.given(other)) throw UsageError(std::string("--") + other + ": not with --protocol next");
  if (regular.train_length == 1)
    throw UsageError("--train-length 1: --protocol next has strings of 2 symbols and more");
  if (regular.model != "regular_gpt") return;
  if (options.given("form") && regular.form == "chunked")
    throw UsageError(
        "--form chunked: answers at the end of a string only; --protocol next needs an answer at every position "
        "(dilated)");
  regular.form = "dilated";
}

void RegularRun::check_combination(const std::vector<std::string>& tasks) const {
  if (options.given("all-tasks") && regular.all_tasks && options.given("task"))
    throw UsageError("--task " + regular.task + ": --all-tasks are every language; expected one of the two");
  if (options.given("seeds") && options.given("seed"))
    throw UsageError("--seed " + options.value("seed") + ": --seeds is given as well; expected one of the two");
  if (!settings.resume) options.refuse_without_effect();
  const std::string these = tasks.size() == 1 ? tasks[0] : "--all-tasks";
  const auto refuse = [&](const char* option, const char* of) {
    const bool among = std::find(tasks.begin(), tasks.end(), of) != tasks.end();
    if (options.given(option) && !among)
      throw UsageError(std::string("--") + option + ": only for --task " + of + ", not for " + these);
  };
  refuse("parity-probability", "parity_check");
  refuse("leading-plus", "modular_arithmetic");
  const std::string option = regular.next_symbol() ? "--protocol next" : regular.near_misses ? "--near-misses" : "";
  if (!option.empty() && !asks_members(tasks[0]))
    throw UsageError(option + ": only for --task D_n and Tomita, not for " + these);
}

RegularLanguage RegularRun::language(int shortest, int longest, float ones, bool near_misses) const {
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

Lengths RegularRun::lengths() const {
  Lengths lengths = lengths_of(regular.task);
  if (regular.train_length > 0) lengths.train = regular.train_length;
  if (regular.test_high > 0) lengths.test_high = regular.test_high;
  // By default longer than the training strings, also if --train-length is given.
  lengths.test_low = regular.test_low > 0 ? regular.test_low : std::max(lengths.test_low, lengths.train + 1);
  if (lengths.test_low <= lengths.train || lengths.test_low > lengths.test_high)
    throw UsageError(
        text("--train-length %d, --test-from %d, --test-to %d: expected them in rising order, given or by default",
             lengths.train, lengths.test_low, lengths.test_high));
  return lengths;
}

std::vector<int> RegularRun::test_lengths() const {
  const Lengths lengths = this->lengths();
  std::vector<int> wanted;
  const RegularLanguage any = language(1, lengths.train, 0.5f, regular.near_misses);
  for (int length = lengths.test_low; length <= lengths.test_high; length += regular.every)
    if (!regular.near_misses || any.has_near_misses(length)) wanted.push_back(length);
  const bool any_members =
      std::any_of(wanted.begin(), wanted.end(), [&](int length) { return any.has_members(length); });
  const int64_t a_step = static_cast<int64_t>(settings.batch) * settings.accumulate;
  if (any.is_membership() && a_step % 2 != 0)
    throw UsageError(text("--batch %d: %s has a member and another string in turn, expected an even number a step",
                          settings.batch, regular.task.c_str()));
  if (wanted.empty() || (any.is_membership() && !any_members))
    throw UsageError(text(
        "%s has no members of the lengths of this test, %d to %d, every %d, and a model that always answers no would "
        "be right: expected --test-from, --test-to and --test-every that take in a length with members",
        regular.task.c_str(), lengths.test_low, lengths.test_high, regular.every));
  return wanted;
}

std::pair<int, int> RegularRun::window(int i) const {
  const int longest = lengths_of(regular.task).train, N = regular.train_length > 0 ? regular.train_length : longest;
  return {i == 0 ? 2 : i * N + 1, (i + 1) * N};
}

NextSymbol RegularRun::next_symbols(int i) const {
  const auto [low, high] = window(i);
  const int tested = options.given("test-strings") ? regular.strings : TEST_STRINGS;
  return NextSymbol(regular.task, low, high, i == 0 ? TRAINING_STRINGS : 0, tested,
                    settings.batch * settings.accumulate, settings.seed);
}

void RegularRun::prepare(const std::string& group) {
  settings.group = group + "/";
  settings.name = regular.task + "-seed-" + std::to_string(settings.seed);
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

RegularLanguage language_learned(const std::string& path, const RunState& state, int length) {
  RegularLanguage::Settings learned;
  learned.shortest = learned.longest = length;
  try {
    learned.language = state.options.at("task").string();
    learned.leading_plus = learned.language == "modular_arithmetic" && state.options.at("leading-plus").boolean();
    return RegularLanguage(learned);
  } catch (const Error& error) {
    throw Error(path + ": " + error.what());
  }
}

}  // namespace petroglyph
