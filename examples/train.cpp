// A training loop in sight: a Causal Relation Network learns to copy, made of this project's library.
//
//   make examples && build/examples/train
//
// It trains the default of ./train_copy for its 110 steps, copies four new strings with the decoder, and prints the
// fingerprint of the weights, which is ./train_copy's: ce70d65f056d5778. `build/examples/train 20` trains 20 steps.
// The same without a library, in one file: examples/causal_rn.cpp.

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/program.h"
#include "models/model.h"
#include "tasks/copying.h"
#include "train/device.h"
#include "train/optimizer.h"

using namespace petroglyph;

constexpr int LETTERS = 32, BATCH = 64;
constexpr uint64_t SEED = 1;

// The largest model of the paper's section 3: 12 blocks of width 192.
Json configuration(const Copying& task) {
  Json json = Json::object();
  json.set("vocab", task.vocab()).set("context", task.context());
  json.set("width", 192).set("hidden", 192).set("layers", 12).set("heads", 1);
  json.set("causal", true).set("activation", "exp");
  json.set("pre_activation_norm", "exact").set("post_reduction_norm", true);
  return json;
}

// Reads the strings up to the separator, and then each answer as the next token.
void show_copying(Model& model, Ops& ops, const Copying& task, int count) {
  const Batch strings = task.batch(SEED, stream_of("show"), 0, 0, count);
  const auto decoder = model.decoder(count, strings.length);
  Tokens input(ops, {count}), likeliest(ops, {count});
  std::vector<int32_t> next(count);
  std::vector<std::string> lines(count);
  for (int t = 0; t < strings.length; ++t) {
    for (int b = 0; b < count && t < task.prompt(); ++b) next[b] = strings.tokens[b * strings.length + t];
    for (int b = 0; b < count; ++b) lines[b] += Copying::letter(next[b]);
    input.upload(next);
    const real* logits = decoder->decode(input.data(), 1);      // (count,1,V)
    ops.argmax(likeliest.data(), logits, count, task.vocab());  // (count)
    next = likeliest.download();
  }
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}

int train(int steps) {
  const auto ops = make_device("auto", 0);  // the GPU, if there is one; all cores of the CPU
  const Copying task(LETTERS);
  const auto model = make_model("causal_rn", configuration(task), *ops);
  model->parameters.initialize(SEED);
  Optimizer adamw(model->parameters, *ops, {});  // which clips the gradient's norm to 1 before a step
  const Schedule rate;                           // rises to 5e-4 over 50 steps

  const int64_t N = BATCH * int64_t(task.context());
  Tokens tokens(*ops, {BATCH, task.context()}), targets(*ops, {N});
  Tensor losses(*ops, {N}), dlogits(*ops, {N, task.vocab()});

  for (int step = 0; step < steps; ++step) {
    const Batch batch = task.batch(SEED, stream_of("train"), step, 0, BATCH);
    tokens.upload(batch.tokens);
    targets.upload(batch.targets);
    const Input input = {tokens.data(), batch.size, batch.length};
    const real* logits = model->forward(input);  // (B,T,V)
    ops->cross_entropy(losses.data(), dlogits.data(), logits, targets.data(), real(1) / batch.counted, N, task.vocab());
    model->parameters.zero_gradients();
    model->backward(input, dlogits.data());
    adamw.step(step, rate.at(step));

    double loss = 0;
    for (const real one : losses.download()) loss += one;
    std::printf("step %d  loss %.4f\n", step + 1, loss / batch.counted);
  }
  show_copying(*model, *ops, task, 4);
  std::printf("weights %016llx\n", static_cast<unsigned long long>(model->parameters.fingerprint()));
  return 0;
}

int main(int argc, char** argv) {
  return run_program("train", [&] { return train(argc > 1 ? std::atoi(argv[1]) : 110); });
}
