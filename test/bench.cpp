// How fast, and how near the machine's limits (`make bench`). Machines are shared and noisy: compare within one run.
//
//   build/test/bench [--device cpu|cuda] [--threads N] [--only NAME] [--once] [operations] [steps] [papers] [generation]
//
// With --threads 1 it counts processor time, which a busy machine disturbs less.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/json.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "cases.h"
#include "cpu/cpu.h"
#include "cpu/parallel.h"
#include "math/random.h"
#include "peak.h"
#include "tasks/copying.h"
#include "tasks/regular_languages.h"
#include "train/device.h"
#include "train/model_options.h"
#include "train/trainer.h"
#ifdef PETROGLYPH_CUDA
#include "gpu/make_gpu.h"
#endif

namespace petroglyph {
namespace {

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of this process: what other programs take from a busy machine does not count.
double processor_clock() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Of the host.
double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<double>(usage.ru_maxrss) / 1e6;
#else
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
#endif
}

// The fewest vector instructions that something takes, and how many of them are multiplications and fused
// multiply-adds: some processors do others beside these, some in their place.
struct Instructions {
  double multiply = 0, all = 0;
};
Instructions operator+(const Instructions& a, const Instructions& b) {
  return {a.multiply + b.multiply, a.all + b.all};
}
Instructions operator*(double a, const Instructions& b) { return {a * b.multiply, a * b.all}; }

// Of a pair-channel of the relation: forward add, multiply, 10 of add_exp2_in_range, six of which multiply, and a term
// of the product that the variances come from; backward add, multiply, 10 of exp2_in_range, times dz, three fused sums,
// and a term of each of the two products with the pair weights.
constexpr Instructions RELATION_FORWARD = {8, 13}, RELATION_BACKWARD = {13, 18};

// A training step.
struct StepCase {
  std::string name, model;
  Json config;
  std::shared_ptr<const Task> task;
  int batch;
  double flops = 0;  // of its products, forward and backward; 0: see least_of()
};

// Windows of random tokens, each with one right answer.
class RandomWindows final : public Task {
 public:
  RandomWindows(int vocab, int context) : vocab_(static_cast<uint32_t>(vocab)), context_(context) {}
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override {
    Batch batch;
    batch.size = count;
    batch.length = context_;
    batch.counted = count;
    const auto add = [&](std::vector<int32_t>& to, uint64_t index) {
      to.push_back(static_cast<int32_t>(below(philox(seed, stream, step, index).word[0], vocab_)));
    };
    for (int b = first; b < first + count; ++b) {
      const uint64_t at = static_cast<uint64_t>(b) * static_cast<uint64_t>(context_ + 1);
      for (int t = 0; t < context_; ++t) add(batch.tokens, at + static_cast<uint64_t>(t));
      add(batch.targets, at + static_cast<uint64_t>(context_));
    }
    return batch;
  }

 private:
  uint32_t vocab_;
  int context_;
};

// At the papers' sizes for copying; rnn: an LSTM of 256, which is about as large as they make theirs; dct_mlp: heads as
// wide as theirs.
Json papers_config(const std::string& model, int vocab, int context) {
  ModelOptions options;
  options.model = model;
  if (model == "rnn") options.hidden = 256;
  if (model == "dct_mlp") options.heads = 6;
  options.set_defaults();
  return options.config(vocab, context);
}

StepCase copying_step(const std::string& model, int n, int batch) {
  const auto task = std::make_shared<Copying>(n);
  return {text("%s, n = %d, batch %d", model.c_str(), n, batch), model,
          papers_config(model, task->vocab(), task->context()), task, batch};
}

// RegularGPT at its paper's sizes: width 256, C = 2, the longest strings of the training.
StepCase regular_step(const std::string& form) {
  constexpr int T = 40, B = 128, D = 256, H = 4 * D, C = 2;
  RegularLanguage::Settings parity;
  parity.language = "parity_check";
  parity.shortest = parity.longest = T;
  Json config = Json::object();
  config.set("vocab", 2).set("classes", 2).set("width", D).set("hidden", H).set("heads", 8).set("chunk", C);
  config.set("thickness", 1).set("norm", "affine").set("readout", "last").set("form", form);
  double flops = 0;  // 2 a weight and row forward, twice as many backward
  for (int reach = 1, before = T; reach < T; reach *= C) {
    const int after = form == "chunked" ? (before + C - 1) / C : T;
    flops += 3 * 2.0 * B * (2.0 * D * D * before + 2.0 * D * D * after + 2.0 * D * H * after);
    before = after;
  }
  return {text("regular_gpt %s 256/1024, C = 2, 8 heads, T = 40, batch 128", form.c_str()),
          "regular_gpt",
          config,
          std::make_shared<RegularLanguage>(parity),
          B,
          flops};
}

// The quick preset of train_text, where a Transformer is as wide as mlp_lm's embedding, and larger.
StepCase window_step(const std::string& model, int vocab, int embedding, int width, int batch) {
  ModelOptions options;
  options.model = model;
  options.layers = 2;
  options.heads = 4;
  options.embedding = embedding;
  options.width = model == "mlp_lm" ? width : embedding;
  options.readout = model == "mlp_lm" ? "all" : "last";
  options.set_defaults();
  constexpr int CONTEXT = 15;
  return {
      text("%s %d/%d, vocab %d, windows of %d + 1, batch %d", model.c_str(), embedding, width, vocab, CONTEXT, batch),
      model, options.config(vocab, CONTEXT), std::make_shared<RandomWindows>(vocab, CONTEXT), batch};
}

// A small GPT-2, on 256 positions.
StepCase gpt2_step() {
  ModelOptions options;
  options.model = "transformer";
  options.width = 384, options.layers = 6, options.heads = 6;
  options.set_defaults();
  Json config = options.config(128, 256);
  config.set("norm", "affine").set("gelu", "tanh");
  return {"transformer 384/1536, 6 layers, 6 heads, vocab 128, 256 positions, batch 4", "transformer", config,
          std::make_shared<Copying>(127), 4};
}

std::vector<StepCase> step_cases() {
  return {copying_step("causal_rn", 16, 64),
          copying_step("causal_rn", 32, 64),
          copying_step("causal_rn", 128, 8),
          copying_step("linear_causal_rn", 16, 64),
          copying_step("linear_causal_rn", 128, 32),
          copying_step("transformer", 16, 64),
          copying_step("transformer", 128, 32),
          gpt2_step(),
          copying_step("linear_transformer", 16, 64),
          copying_step("linear_transformer", 128, 32),
          copying_step("mamba", 16, 64),
          copying_step("rnn", 16, 64),
          regular_step("chunked"),
          regular_step("dilated"),

          copying_step("dct_mlp", 16, 64),
          copying_step("dct_mlp", 128, 32),
          window_step("mlp_lm", 97, 64, 512, 256),
          window_step("transformer", 97, 64, 256, 256),
          window_step("mlp_lm", 8192, 512, 2048, 256)};
}

// Rows or columns of it are looked up; the others stay where they are.
bool is_table(const std::string& model, const Parameter& p) {
  return p.name.find("_embedding.") != std::string::npos || (model == "rnn" && p.name == "cell.input.weight");
}

// Lanes of fused multiply-adds that so many operations are.
Instructions fused(double flops) { return {flops / 2, flops / 2}; }

// What a step cannot do without, forward and backward, in lanes: its products, and pairs of positions with their
// exponentials.
// None: not known of this model.
Instructions least_of(const StepCase& row, const Model& model) {
  if (row.flops > 0) return fused(row.flops);
  if (const Json* readout = row.config.find("readout"); readout && readout->string() != "all") return {};
  const int B = row.batch, T = row.task->batch(1, 0, 0, 0, 1).length;
  double weights = 0;
  for (const Parameter& p : model.parameters.list())
    if (p.shape.size() == 2 && !is_table(row.model, p)) weights += static_cast<double>(p.size());
  const Instructions least = fused(3 * 2.0 * B * T * weights);
  const auto number = [&](const char* key) { return static_cast<int>(row.config.at(key).integer()); };
  if (row.model == "linear_causal_rn" || row.model == "rnn") return least;
  if (row.model == "causal_rn") {
    const double pairs =
        number("layers") * pairs_of({B, T, T, T, number("hidden"), number("heads"), true, Activation::EXP});
    return least + pairs * (RELATION_FORWARD + RELATION_BACKWARD);
  }
  const bool linear = row.model == "linear_transformer";
  if (!linear && row.model != "transformer") return {};
  const int width = number("width"), heads = number("heads");
  const double of_block =
      linear ? products_of(LinearAttentionShape{B, T, heads, width / heads, true, true, FeatureMap::ELU_PLUS_ONE, 0})
             : products_of(AttentionShape{B, T, T, T, heads, width / heads, true, width, width});
  return least + fused(number("layers") * 3 * of_block);
}

class Bench {
 public:
  // only: runs the rows whose names contain this; once: runs each row once, as a test
  Bench(const std::string& device, int threads, bool once, const std::string& only)
      : ops_(make_device(device, threads)), once_(once), only_(only) {
    cpu_ = dynamic_cast<Cpu*>(ops_.get());
    if (cpu_ && threads == 1) clock_ = processor_clock;
#ifdef PETROGLYPH_CUDA
    peak_ = cpu_ ? peak_flops(threads) : gpu_peak_flops(*ops_);
#else
    peak_ = peak_flops(threads);
#endif
    instructions_ = cpu_ ? std::max(peak_instructions(threads), peak_ / 2) : peak_ / 2;
    std::printf("%s; fp32 peak measured now: %.0f GFLOP/s; with additions beside them %.1f instructions for each\n",
                ops_->description().c_str(), peak_ / 1e9, instructions_ / (peak_ / 2));
  }

  bool on_gpu() const { return cpu_ == nullptr; }

  void operations() { each_operation(paper_cases(once_ ? 1 : 8)); }
  void steps() {
    ops_->run([&] { each_step(step_cases()); });
  }

  // Copying with the papers' batch.
  void papers() {
    constexpr int BATCH = 320, LETTERS = 128;
    if (!once_) each_operation(paper_cases(BATCH));
    std::vector<StepCase> cases;
    for (const char* model : {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "mamba"})
      cases.push_back(copying_step(model, LETTERS, BATCH));
    each_step(cases);
  }

  // How long one more token takes a decoder that has read so many: its state is of a fixed size, or grows with them.
  void generation() {
    const std::vector<int> read = once_ ? std::vector<int>{64} : std::vector<int>{64, 1024, 4096};
    std::printf("\n%-36s %s\n", "us a token", "after 64     1024     4096 tokens");
    for (const ModelOptions& options : decoders()) {
      const std::string name = text("%s %d, %d blocks", options.model.c_str(), options.width, options.layers);
      if (name.find(only_) == std::string::npos) continue;
      std::string line = text("%-36s", name.c_str());
      for (const int length : read) line += text(" %8.0f", 1e6 * token_time(options, length));
      std::printf("%s\n", line.c_str());
      ++rows_;
    }
  }

  void finish() const {
    if (once_) std::printf("%d passed, 0 failed\n", rows_);
  }

 private:
  void each_operation(const std::vector<OpCase>& cases) {
    std::printf("\n%-52s %10s %10s %9s %9s\n", "operation", "forward", "backward", "forward", "backward");
    for (const OpCase& row : cases)
      if (row.name.find(only_) != std::string::npos) operation(row);
  }

  void each_step(std::vector<StepCase> cases) {
    for (StepCase& row : cases) {
      if (once_) row.batch = 2;
      if (row.name.find(only_) != std::string::npos) step(row);
    }
  }

  // The shortest of several runs of about `seconds` in all: what the machine can do when it is left alone.
  template <class F>
  double best_time(F f, double seconds = 0.6) const {
    if (!once_) f();  // warm: memory, threads
    double best = 1e30;
    const double start = wall_clock();
    do {
      const double begin = clock_();
      f();
      best = std::min(best, clock_() - begin);
    } while (!once_ && wall_clock() - start < seconds);
    return best;
  }

  // Seconds that so many lanes of instructions take at the least.
  double floor(const Instructions& lanes) const {
    return std::max(lanes.multiply / (peak_ / 2), lanes.all / instructions_);
  }

  // The time of one call. On a GPU several are put on the queue before the wait, so that launching does not count.
  double time_of(const Call& call, Arrays& arrays, const std::string& written) {
    const int calls = cpu_ ? 1 : 10;
    const double seconds = cpu_ ? 0.6 : 0.2;  // no other process uses the GPU
    return best_time(
               [&] {
                 for (int i = 0; i < calls; ++i) call(*ops_, arrays);
                 if (!cpu_) wait_for(arrays.tensor(written));
               },
               seconds) /
           calls;
  }
  void wait_for(const Tensor& tensor) {
    real first;
    ops_->download(&first, tensor.data(), sizeof first);
  }

  // The models whose decoding is measured: 4 blocks of 128 of each kind, and a GPT-2.
  static std::vector<ModelOptions> decoders() {
    std::vector<ModelOptions> all;
    for (const char* name : {"causal_rn", "linear_causal_rn", "transformer", "linear_transformer", "mamba", "rnn",
                             "regular_gpt", "dct_mlp", "mlp_lm", "transformer"}) {
      const bool large = all.size() == 9;
      ModelOptions options;
      options.model = name;
      options.width = large ? 768 : 128, options.layers = large ? 12 : 4;
      options.heads = large ? 12 : all.size() < 2 ? 1 : 4;
      options.set_defaults();
      all.push_back(options);
    }
    return all;
  }

  double token_time(const ModelOptions& options, int length) {
    constexpr int VOCAB = 128, PIECE = 512, MEASURED = 16;
    const int most = length + MEASURED * (once_ ? 1 : 8);
    const auto model = make_model(options.model, options.config(VOCAB, options.model == "mlp_lm" ? 15 : most), *ops_);
    model->parameters.initialize(1);
    std::vector<int32_t> letters;
    for (int t = 0; t < most; ++t) letters.push_back(t * t % VOCAB);
    Tokens tokens(*ops_, {most});
    tokens.upload(letters);
    const auto decoder = model->decoder(1, most);
    real logit;
    double best = 1e30;
    ops_->run([&] {  // as ./generate does
      for (int at = 0; at < length; at += PIECE) decoder->decode(tokens.data() + at, std::min(PIECE, length - at));
      for (int at = length; at < most; at += MEASURED) {
        const double begin = clock_();
        for (int i = 0; i < MEASURED; ++i)  // the next token is drawn from what comes back
          ops_->download(&logit, decoder->decode(tokens.data() + at + i, 1), sizeof logit);
        best = std::min(best, (clock_() - begin) / MEASURED);
      }
    });
    return best;
  }

  void operation(const OpCase& row) {
    ++rows_;
    Arrays arrays(*ops_, row, 1);
    const std::string written = std::find_if(row.operands.begin(), row.operands.end(), [](const Operand& o) {
                                  return o.role == Role::OUTPUT || o.role == Role::UPDATED;
                                })->name;
    const double forward = time_of(row.forward, arrays, written);
    const double backward = row.backward ? time_of(row.backward, arrays, written) : 0;
    std::string rates;
    if (row.flops > 0)
      rates =
          text("%5.0f GF/s %5.0f GF/s  %2.0f %% %2.0f %% of peak", row.flops / forward / 1e9,
               2 * row.flops / backward / 1e9, 100 * row.flops / forward / peak_, 200 * row.flops / backward / peak_);
    else if (row.pairs > 0)
      rates = text("%5.2f G/s  %5.2f G/s   pair-channels", row.pairs / forward / 1e9, row.pairs / backward / 1e9);
    std::printf("%-52s %7.3f ms %7.3f ms  %s\n", row.name.c_str(), 1e3 * forward, 1e3 * backward, rates.c_str());
  }

  void step(const StepCase& row) {
    ++rows_;
    const auto model = make_model(row.model, row.config, *ops_);
    model->parameters.initialize(1);
    Optimizer optimizer(model->parameters, *ops_, {});
    Trainer trainer(*model, *row.task, optimizer, *ops_, 1, row.batch, 1);
    int64_t done = 0;
    const double seconds = best_time([&] { trainer.step(done++, 5e-4); }, cpu_ ? 3 : 1);

    Profile profile;
    const int measured = once_ ? 0 : 5;
    if (cpu_) cpu_->measure(&profile);
    for (int i = 0; cpu_ && i < measured; ++i) trainer.step(done++, 5e-4);
    if (cpu_) cpu_->measure(nullptr);
    const double least = floor(least_of(row, *model));
    print_step(row.name, seconds, profile, measured);
    if (least > 0) std::printf("  floor: %.4f s, %.0f %% of the step\n", least, 100 * least / seconds);
  }

  void print_step(const std::string& name, double seconds, const Profile& profile, int measured) const {
    std::string line = text("\n%s: %.4f s a step, peak memory so far %.0f MB", name.c_str(), seconds, peak_memory_mb());
#ifdef PETROGLYPH_CUDA
    if (!cpu_) {
      const double megabytes = static_cast<double>(gpu_memory_in_use()) / 1e6;
      line += text(", %.0f MB of the GPU's are taken", megabytes);
    }
#endif
    std::printf("%s\n", line.c_str());
    double total = 0;
    for (const auto& [who, entry] : profile.entries) total += entry.seconds;
    for (const auto& [who, entry] : profile.entries)
      std::printf("  %-24s %8.2f ms  %4.1f %%  %4lld calls\n", who.c_str(), 1e3 * entry.seconds / measured,
                  100 * entry.seconds / total, static_cast<long long>(entry.calls / measured));
  }

  std::unique_ptr<Ops> ops_;
  Cpu* cpu_ = nullptr;  // ops_ where it is the CPU
  bool once_;
  std::string only_;
  int rows_ = 0;
  double (*clock_)() = wall_clock;
  double peak_, instructions_;  // a second: floating-point operations; lanes of vector instructions of any kind
};

int run(const std::vector<std::string>& words) {
  const std::vector<std::string> parts = {"operations", "steps", "papers", "generation", "all"};
  std::vector<std::string> wanted = {"all"};
  std::string device = "cpu", only;
  int threads = 0;
  bool once = false;
  Options options("bench", "Measures how fast this machine computes, and how near its limits.");
  options.positional(
      "PART", &wanted,
      "any of " + join(parts, ", ") + "; all is the default, on a CPU without papers, which takes minutes");
  options.add("only", &only, "NAME", "only the rows whose names contain this");
  options.add("once", &once, "each row once, as short as it can be: a test that they run");
  options.add_device(&device, &threads);
  options.parse(words);
  const auto is_in = [](const std::vector<std::string>& list, const std::string& part) {
    return std::find(list.begin(), list.end(), part) != list.end();
  };
  for (const std::string& part : wanted)
    if (!is_in(parts, part)) throw UsageError("\"" + part + "\": expected any of " + join(parts, ", "));
  Bench bench(device, threads > 0 ? threads : available_threads(), once, only);
  const bool all = is_in(wanted, "all");
  if (all || is_in(wanted, "operations")) bench.operations();
  if (all || is_in(wanted, "steps")) bench.steps();
  if ((all && (once || bench.on_gpu())) || is_in(wanted, "papers")) bench.papers();
  if (all || is_in(wanted, "generation")) bench.generation();
  bench.finish();
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) { return petroglyph::run_program("bench", argc, argv, petroglyph::run); }
