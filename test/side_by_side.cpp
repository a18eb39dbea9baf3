// Our half of side_by_side.py: training steps of one model on one batch of strings to copy, each on request.
//
//   build/test/side_by_side FILE [--model transformer] [--length 16] [--batch 64] [--threads 2] …
//
// Writes the weights before the first step and the batch (input/tokens, input/targets) to FILE, and prints "ready".
// Then it makes one step for each line that it reads, and prints the loss before the update.

#include <cstdio>
#include <iostream>

#include "base/options.h"
#include "base/program.h"
#include "base/safetensors.h"
#include "math/random.h"
#include "tasks/copying.h"
#include "train/device.h"
#include "train/model_options.h"
#include "train/trainer.h"

namespace petroglyph {
namespace {

// Every step has the samples of the first one, so that side_by_side.py need not draw them.
class OneBatch final : public Task {
 public:
  OneBatch(int length, int batch) : batch_(Copying(length).batch(1, stream_of("train"), 0, 0, batch)) {}
  Batch batch(uint64_t, uint32_t, uint32_t, int, int) const override { return batch_; }
  const Batch& samples() const { return batch_; }

 private:
  Batch batch_;
};

void write(const std::string& path, const std::string& name, const Json& config, const Model& model,
           const Batch& batch) {
  SafetensorsWriter writer;
  writer.metadata("model", name);
  writer.metadata("config", config.text());
  const std::vector<real> all = model.parameters.values().download();
  for (const Parameter& p : model.parameters.list()) writer.add(p.name, p.shape, all.data() + p.begin);
  const Shape shape = {batch.size, batch.length};
  writer.add("input/tokens", "I32", shape, batch.tokens.data());
  writer.add("input/targets", "I32", shape, batch.targets.data());
  writer.save(path);
}

int run(const std::vector<std::string>& words) {
  std::vector<std::string> path;
  std::string device = "cpu";
  int length = 16, batch = 64, threads = 0;
  double rate = 5e-4;
  ModelOptions settings;
  Options options("side_by_side", "Training steps on one batch of strings to copy: one for each line of input.");
  options.positional("FILE", &path, "where to write the weights and the batch", 1);
  options.add("length", &length, 1, 1 << 16, "letters in a string");
  options.add("batch", &batch, 1, 1 << 20, "strings");
  options.add("lr", &rate, 0, 1e9, "learning rate");
  settings.declare(options, {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer"});
  options.add_device(&device, &threads);
  options.parse(words);
  settings.set_defaults();

  const auto ops = make_device(device, threads);
  const OneBatch task(length, batch);
  const Copying copying(length);
  const Json config = settings.config(copying.vocab(), copying.context());
  const auto model = make_model(settings.model, config, *ops);
  model->parameters.initialize(1);
  write(path[0], settings.model, config, *model, task.samples());

  Optimizer optimizer(model->parameters, *ops, {});
  Trainer trainer(*model, task, optimizer, *ops, 1, batch, 1);
  std::printf("ready\n");
  std::fflush(stdout);
  std::string line;
  for (int64_t step = 0; std::getline(std::cin, line); ++step) {
    std::printf("%.9g\n", trainer.step(step, rate).loss);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) { return petroglyph::run_program("side_by_side", argc, argv, petroglyph::run); }
