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
  ModelOptions model = s.model;
  model.readout = s.next_symbol() ? "all" : "last";
  // Mamba has logits for every position and symbol; the last position's first ones are the classes.
  if (model.model == "mamba") return model.config(std::max(sizes.vocab, sizes.classes), sizes.context);
  Json json = model.config(sizes.vocab, sizes.context);
  json.set("classes", sizes.classes).set("readout", model.readout);
  if (model.model == "regular_gpt") json.set("form", s.form);
  if (model.model == "transformer")
    json.set("head_bias", true)
        .set("embedding_scale", static_cast<double>(numerics::sqrt(static_cast<real>(model.width))));
  return json;
}

}  // namespace

void RegularSettings::declare(Options& options) {
  options.section("Task");
  options.add("task", &task, language_names(), "the language");
  options.add("all-tasks", &all_tasks, "every language in turn").not_saved();
  options.add("protocol", &protocol, {"answer", "next"},
              "one answer at the end of a string; or D_n and Tomita as Bhattamishra et al. ask for them: after every "
              "symbol of a member, what may follow");
  options.add("seeds", &seeds, 0, 1 << 30, "a run each: initial weights and strings; default: --seed").not_saved();
  options.add("train-length", &train_length, 0, 1 << 20, "longest string to learn from; 0: the paper's 40, or 50");
  options.add("test-from", &test_low, 0, 1 << 20, "shortest string of the test; 0: the paper's 41, or 51").not_saved();
  options.add("test-to", &test_high, 0, 1 << 20, "longest; 0: the paper's 500, or 100").not_saved();
  options.add("test-every", &every, 1, 1 << 20, "takes every Nth of these lengths").not_saved();
  options.add("test-strings", &strings, 1, 1 << 20, "strings of each length").not_saved();
  options
      .add("parity-probability", &probabilities, 1, 99,
           "parity_check: tested too, at the training length and on the longer ones, on strings whose symbols are 1 "
           "with these probabilities, in percent (table 2: 10,30,50,70,90)")
      .not_saved();
  options.add("leading-plus", &leading_plus, "modular_arithmetic: expressions begin with +, as in the authors' code");
  options
      .add("near-misses", &near_misses,
           "D_n, Tomita: tested on members against members with one flipped bit, not random strings, of the lengths "
           "that have both")
      .not_saved();
  model.model = "regular_gpt";
  model.width = 64;
  model.layers = 5;
  model.heads = 8;
  model.chunk = 2;
  model.thickness = 1;
  model.cell = "elman";
  // The authors' Transformer: Transformer-XL positions, post-norm, ReLU. It has a mask only where every position
  // predicts what may follow.
  model.position = "xl";
  model.norm = "affine";
  model.norm_position = "post";
  model.mlp_activation = "relu";
  model.qkv_bias = model.out_bias = false;
  model.declare(options, {"regular_gpt", "transformer", "rnn", "mamba"});
  options.add("form", &form, {"chunked", "dilated"}, "regular_gpt: as in the authors' code, or as the paper writes it");
  std::vector<std::string> membership;
  for (const std::string& name : language_names())
    if (asks_members(name)) membership.push_back(name);
  options.only_with("protocol", "task", membership);
  options.only_with("near-misses", "task", membership);
  options.only_with("parity-probability", "task", {"parity_check"});
  options.only_with("leading-plus", "task", {"modular_arithmetic"});
  for (const char* of_answers : {"test-from", "test-to", "test-every", "parity-probability", "near-misses"})
    options.only_with(of_answers, "protocol", {"answer"});
  options.only_with("form", "model", {"regular_gpt"});
  options.only_with("thickness", "form", {"dilated"});
  options.only_with("layers", "model", {"transformer", "mamba"});
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
  // It learns parity after 10,000 (cheap) steps or more; at a rate of 1e-3 it stays at chance.
  if (regular.model.model == "rnn") options.set_defaults("steps=20000 lr=3e-3");
  if (regular.next_symbol()) options.set_defaults("form=dilated");  // it answers at every position
  regular.model.set_defaults();
  if (regular.next_symbol() && regular.train_length == 1)
    throw UsageError("--train-length 1: --protocol next has strings of 2 symbols and more");
}

std::vector<Variant> RegularRun::runs() const {
  if (regular.all_tasks && options.given("task"))
    throw UsageError("--task " + regular.task + ": --all-tasks are every language; expected one of the two");
  if (!regular.seeds.empty() && options.given("seed"))
    throw UsageError("--seed " + options.value("seed") + ": --seeds is given as well; expected one of the two");
  std::vector<std::string> tasks, seeds;
  for (const std::string& name : language_names())
    if (regular.all_tasks ? !(regular.next_symbol() || regular.near_misses) || asks_members(name)
                          : name == regular.task)
      tasks.push_back(name);
  for (const int seed : regular.seeds) seeds.push_back(std::to_string(seed));
  if (seeds.empty()) seeds = {options.value("seed")};
  std::vector<Variant> runs;
  for (const std::string& task : tasks)
    for (const std::string& seed : seeds)
      runs.push_back({task + ", seed " + seed, task + "-seed-" + seed, {"--task=" + task, "--seed=" + seed}});
  return runs;
}

RegularLanguage RegularRun::language(int shortest, int longest, float ones, bool near_misses) const {
  RegularLanguage::Settings s;
  s.language = regular.task;
  s.shortest = shortest;
  s.longest = longest;
  s.ones = ones;
  s.leading_plus = regular.leading_plus && regular.task == "modular_arithmetic";
  s.near_misses = near_misses;
  s.every_position = regular.model.model == "mamba";
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

void RegularRun::prepare() {
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
  run->prepare(regular.model.model, config_of(regular, sizes), *task);
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
