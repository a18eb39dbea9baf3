// What it costs that several processes train one model: the exchange of gradients, as a share of a step.
//
//   mpirun --oversubscribe -n 4 build/test/bench_ranks [WORD]     the rows whose name has WORD; use 2 and 4 ranks

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/text.h"
#include "tasks/copying.h"
#include "train/device.h"
#include "train/gradient_tree.h"
#include "train/model_options.h"
#include "train/trainer.h"

namespace petroglyph {
namespace {

struct Row {
  const char* name;
  const char* model;
  int width, layers, heads, letters, batch;  // batch: of each rank
  int rounds;
};
constexpr Row ROWS[] = {
    {"CausalRN 192, 12 blocks, 32 letters, batch 16", "causal_rn", 192, 12, 1, 32, 16, 5},
    {"GPT-2 384, 6 layers, 256 positions, batch 1", "transformer", 384, 6, 6, 127, 1, 5},
    {"GPT-2 768, 12 layers, 256 positions, batch 1", "transformer", 768, 12, 12, 127, 1, 2},
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// The best of several times that the slowest rank took for f().
template <class F>
double slowest(Ranks& ranks, int rounds, F f) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    ranks.any(false);  // all begin together
    const double start = now();
    f();
    const std::vector<double> all = ranks.gather(now() - start);
    best = std::min(best, *std::max_element(all.begin(), all.end()));
  }
  return best;
}

void measure(const Row& row, const std::shared_ptr<Ranks>& ranks) {
  ModelOptions options;
  options.model = row.model;
  options.width = row.width, options.layers = row.layers, options.heads = row.heads;
  options.set_defaults();
  const auto ops = make_device("cpu", 0, *ranks);
  const Copying task(row.letters);
  const auto model = make_model(row.model, options.config(task.vocab(), task.context()), *ops);
  model->parameters.initialize(1);
  Optimizer optimizer(model->parameters, *ops, {});
  const int R = ranks->count();
  Trainer trainer(*model, task, optimizer, *ops, 1, row.batch * R, 1, R, ranks);
  int64_t step = 0;
  const double a_step = slowest(*ranks, row.rounds, [&] { trainer.step(step++, 5e-4); });

  const int64_t n = model->parameters.padded_size();
  const auto ops_of_tree = make_device("cpu", 0, *ranks);
  GradientTree tree(*ops_of_tree, *ranks, 1, n);
  Tensor gradients(*ops_of_tree, {n});
  gradients.zero();
  const double exchange = slowest(*ranks, 3 * row.rounds, [&] { tree.add(gradients.data()); });
  const double moved = 2.0 * (R - 1) / R * static_cast<double>(n) * sizeof(real);
  std::printf(
      "%-46s %d ranks: %11s parameters, %8.2f MB each way a step, exchange %8.2f ms, step %8.1f ms, share %5.1f %%\n",
      row.name, R, with_commas(model->parameters.size()).c_str(), moved / 1e6, 1e3 * exchange, 1e3 * a_step,
      100 * exchange / a_step);
  std::fflush(stdout);
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  return run_ranks("bench_ranks", argc, argv, [&](const auto&, const std::shared_ptr<Ranks>& ranks) {
    for (const Row& row : ROWS)
      if (argc < 2 || std::string(row.name).find(argv[1]) != std::string::npos) measure(row, ranks);
    return 0;
  });
}
