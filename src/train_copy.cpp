// Trains a sequence model to copy random strings, then shows it copying, one token at a time.
// The experiment of "An All-MLP Sequence Modeling Architecture That Excels at Copying", section 3 and appendix D.

#include <cstdio>

#include "program.h"
#include "random.h"
#include "tasks/copying.h"
#include "text.h"
#include "train/run.h"

namespace petroglyph {
namespace {

// The papers' architectures (appendix D). What an option means, and what it is where it is not given, is up to the model.
struct ModelSettings {
  std::string model = "causal_rn";
  int length = 32;  // letters in a string
  int width = 192, hidden = 192, layers = 12, heads = 1;
  std::string activation = "exp", pre_norm = "exact", position = "learned", cell = "lstm";
  bool post_norm = true;

  void declare(Options& options) {
    options.section("Task and model");
    options.add("length", &length, 1, 1 << 16, "letters in a string");
    options.add("model", &model, {"causal_rn", "linear_causal_rn", "transformer", "mamba", "rnn"}, "what learns");
    options.add("width", &width, 1, 1 << 16, "channels of the residual stream, the paper's d_e");
    options.add(
        "hidden", &hidden, 1, 1 << 16,
        "channels between positions, the paper's d_h; transformer: of its MLP, default 4 widths; rnn: of its state");
    options.add("layers", &layers, 1, 1 << 10, "blocks");
    options.add("heads", &heads, 1, 1 << 16,
                "relation networks: groups of hidden channels with an inner norm each; attention heads");
    options.add("activation", &activation, {"exp", "relu", "elu", "gelu"}, "causal_rn: of each pair");
    options.add("pre-norm", &pre_norm, {"exact", "approximate", "none"},
                "normalization before the activation; linear_causal_rn: approximate or none");
    options.add("post-norm", &post_norm, "relation networks: normalization after the sum over the pairs");
    options.add("position", &position, {"learned", "sinusoidal", "none", "alibi", "t5", "kerple", "xl"},
                "transformer: its positions");
    options.add("cell", &cell, {"lstm", "elman"}, "rnn: its cell");
  }

  // Before a resumed run's options are restored: those win.
  void set_defaults(const Options& options) {
    if (model == "linear_causal_rn" && !options.given("pre-norm")) pre_norm = "approximate";
    if (model == "transformer" && !options.given("hidden")) hidden = 4 * width;
  }

  Json config(const Copying& task) const {
    Json json = Json::object();
    json.set("vocab", task.vocab());
    if (model == "rnn")
      return json.set("classes", task.vocab()).set("hidden", hidden).set("cell", cell).set("readout", "all"), json;
    json.set("context", task.context()).set("width", width).set("layers", layers);
    if (model == "mamba") return add_mamba(json), json;
    json.set("hidden", hidden).set("heads", heads).set("causal", true);
    model == "transformer" ? add_transformer(json) : add_relations(json);
    return json;
  }

 private:
  // The usual sizes of Mamba-1.
  void add_mamba(Json& json) const {
    json.set("state", 16).set("conv", 4).set("expand", 2).set("dt_rank", (width + 15) / 16);
  }

  void add_transformer(Json& json) const {
    if (width % heads != 0) throw UsageError(text("--heads %d does not divide --width %d", heads, width));
    json.set("position", position).set("norm", "plain").set("qkv_bias", true).set("out_bias", true);
    json.set("gelu", "erf").set("readout", "all");
  }

  void add_relations(Json& json) const {
    if (hidden % heads != 0) throw UsageError(text("--heads %d does not divide --hidden %d", heads, hidden));
    const bool linear = model == "linear_causal_rn";
    if (linear && pre_norm == "exact")
      throw UsageError("--pre-norm exact: what makes causal_rn quadratic; linear_causal_rn has approximate or none");
    if (linear && activation != "exp")
      throw UsageError("--activation " + activation + ": linear_causal_rn has exp only");
    if (!linear) json.set("activation", activation);
    json.set("pre_activation_norm", pre_norm).set("post_reduction_norm", post_norm);
  }
};

// Feeds fresh strings up to SEP and lets the model go on by itself: each answer token is the likeliest one, and is read back.
std::vector<int32_t> answer(Run& run, const Copying& task, const Batch& strings) {
  Ops& ops = run.ops();
  const int B = strings.size, T = strings.length, prompt = task.prompt(), answers = T - prompt + 1;
  const auto stream = run.model().stream(B, T);
  Tokens next(ops, {B}), best(ops, {B});
  std::vector<int32_t> column(static_cast<size_t>(B)), answered(static_cast<size_t>(B) * answers);
  for (int t = 0; t < T; ++t) {
    for (int b = 0; b < B; ++b)
      column[b] = t < prompt ? strings.tokens[static_cast<size_t>(b) * T + t]
                             : answered[static_cast<size_t>(b) * answers + t - prompt];
    next.upload(column);
    const real* logits = stream->append(next.data(), 1);
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
  const int T = strings.length, n = T / 2 - 1;
  double right = 0;
  for (int b = 0; b < count; ++b) {
    const int32_t* string = &strings.tokens[static_cast<size_t>(b) * T + 1];
    const int32_t* copy = &answers[static_cast<size_t>(b) * (n + 1)];
    const double accuracy = task.answer_accuracy(string, copy);
    right += accuracy;
    if (b >= shown) continue;
    std::string read, said;
    for (int i = 0; i < n; ++i) read += Copying::letter(string[i]);
    for (int i = 0; i <= n; ++i) said += Copying::letter(copy[i]);
    std::printf("  read  %s\n  said  %s  %s\n", read.c_str(), said.c_str(), accuracy == 1 ? "right" : "wrong");
  }
  std::printf("one token at a time, %d fresh strings of %d letters: accuracy %.2f %%\n", count, n, 100 * right / count);
}

int train_copy(int argc, char** argv) {
  Options options("train_copy", "Trains a sequence model to copy random strings of letters, then shows it copying.");
  ModelSettings model;
  RunSettings settings;
  settings.program = "train_copy";
  model.declare(options);
  settings.declare(options);
  options.parse(argc, argv);
  model.set_defaults(options);

  Run run(settings, options, "copy");
  const Copying task(model.length);
  run.prepare(model.model, model.config(task), task);
  const bool finished = run.train();
  if (finished) show_copying(run, task, 64, settings.quiet ? 0 : 4);
  std::printf("weights %016llx\n", static_cast<unsigned long long>(run.model().parameters.fingerprint()));
  return finished ? 0 : INTERRUPTED_STATUS;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("train_copy", [&] { return petroglyph::train_copy(argc, argv); });
}
