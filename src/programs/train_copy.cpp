// Trains a sequence model to copy random strings, then shows how it copies, one token at a time.
// The experiment of "An All-MLP Sequence Modeling Architecture That Excels at Copying", section 3 and appendix D.

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/program.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/copying.h"
#include "train/compare.h"
#include "train/model_options.h"
#include "train/run.h"

namespace petroglyph {
namespace {

// Reads new strings up to SEP and decodes greedily: the likeliest token is the answer and the next input.
std::vector<int32_t> answer(Run& run, const Copying& task, const Batch& strings) {
  Ops& ops = run.ops();
  const int B = strings.size, T = strings.length, prompt = task.prompt(), answers = T - prompt + 1;
  const auto decoder = run.model().decoder(B, T);
  Tokens next(ops, {B}), best(ops, {B});
  std::vector<int32_t> column(static_cast<size_t>(B)), answered(static_cast<size_t>(B) * answers);
  for (int t = 0; t < T; ++t) {
    for (int b = 0; b < B; ++b)
      column[b] = t < prompt ? strings.tokens[static_cast<size_t>(b) * T + t]
                             : answered[static_cast<size_t>(b) * answers + t - prompt];
    next.upload(column);
    const real* logits = decoder->decode(next.data(), 1);
    if (t + 1 < prompt) continue;
    ops.argmax(best.data(), logits, B, task.vocab());
    column = best.download();
    for (int b = 0; b < B; ++b) answered[static_cast<size_t>(b) * answers + t + 1 - prompt] = column[b];
  }
  return answered;
}

void show_copying(Run& run, const Copying& task, int count, int shown) {
  const Batch strings = task.batch(run.seed(), stream_of("show"), 0, 0, count);
  const std::vector<int32_t> answers = answer(run, task, strings);
  const int T = strings.length, n = T / 2 - 1;  // letters: the context is 2(n + 1)
  double right = 0;
  for (int b = 0; b < count; ++b) {
    const int32_t* string = &strings.tokens[static_cast<size_t>(b) * T + 1];
    const int32_t* copy = &answers[static_cast<size_t>(b) * (n + 1)];
    const double accuracy = task.answer_accuracy(string, copy);
    right += accuracy;
    if (b >= shown) continue;
    std::string read, answer;
    for (int i = 0; i < n; ++i) read += Copying::letter(string[i]);
    for (int i = 0; i <= n; ++i) answer += Copying::letter(copy[i]);
    std::printf("  input   %s\n  output  %s  %s\n", read.c_str(), answer.c_str(), accuracy == 1 ? "right" : "wrong");
  }
  std::printf("one token at a time, %d fresh strings of %s: accuracy %.2f %%\n", count, counted(n, "letter").c_str(),
              100 * right / count);
}

// One run and all its settings, which come from the words of a command line.
struct Session {
  Options options{"train_copy", "Trains a sequence model to copy random strings of letters, then shows it copying."};
  int length = 32;           // letters in a string
  std::vector<int> lengths;  // at which the trained model is evaluated
  ModelOptions model;
  RunSettings settings;
  std::optional<Copying> task;
  std::optional<Run> run;

  explicit Session(const std::vector<std::string>& words) {
    settings.program = "train_copy";
    options.section("Task");
    options.add("length", &length, 1, 1 << 16, "letters in a string");
    options.add("evaluate-lengths", &lengths, 1, 1 << 16,
                "strings of these lengths the trained model has to copy too: a table, lengths.csv, lengths.svg");
    declare_compare(options, settings, "causal_rn,transformer:position=alibi");
    model.declare(options, {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "mamba", "rnn"});
    settings.declare(options);
    options.parse(words);
    model.set_defaults();
  }

  void prepare() {
    run.emplace(settings, options, "copy");
    task.emplace(length);
    // The context for the longest of all strings. Positions beyond the training length keep their initial values.
    const int longest = lengths.empty() ? length : std::max(length, *std::max_element(lengths.begin(), lengths.end()));
    run->prepare(model.model, model.config(task->vocab(), Copying(longest).context()), *task);
  }

  void show() {
    if (settings.ranks->first()) show_copying(*run, *task, 64, settings.quiet ? 0 : 4);
    if (lengths.empty()) return;
    const LengthTable table = length_table();
    run->check_folder();
    if (settings.ranks->first()) write_lengths(run->folder(), table);
  }
  LengthTable length_table() {
    const std::vector<double> accuracy = at_lengths(lengths, settings.quiet, [&](int length) {
      return run->evaluate(Copying(length), settings.eval_samples).accuracy;
    });
    return {title(), "accuracy", "letters", true, lengths, {model.model}, {accuracy}, run->chance()};
  }
  std::string title() const { return "Copying " + counted(length, "letter"); }
};

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) { return petroglyph::run_session<petroglyph::Session>("train_copy", argc, argv); }
