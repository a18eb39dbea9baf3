// How fast, and how near the machine's limits (`make bench`). Machines are shared and noisy: compare within one run.
//
//   build/test/bench [--json] [--device cpu|cuda] [--threads N] [operations] [steps]
//
// With --threads 1 it counts processor time, which a busy machine disturbs less.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "cases.h"
#include "cpu/cpu.h"
#include "cpu/peak.h"
#include "json.h"
#include "program.h"
#include "tasks/copying.h"
#include "text.h"
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
double processor_clock() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The shortest of several runs of about `seconds` in all: what the machine can do when it is left alone.
template <class F>
double best_time(double (*clock)(), F f, double seconds = 0.6) {
  f();  // warm: memory, threads
  double best = 1e30;
  for (const double start = wall_clock(); wall_clock() - start < seconds;) {
    const double begin = clock();
    f();
    best = std::min(best, clock() - begin);
  }
  return best;
}

double peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<double>(usage.ru_maxrss) / 1e6;
#else
  return static_cast<double>(usage.ru_maxrss) * 1024 / 1e6;
#endif
}

class Bench {
 public:
  Bench(const std::string& device, int threads, bool json) : ops_(make_device(device, threads)), json_(json) {
    cpu_ = dynamic_cast<Cpu*>(ops_.get());
    if (cpu_ && threads == 1) clock_ = processor_clock;
#ifdef PETROGLYPH_CUDA
    peak_ = cpu_ ? peak_flops(threads) : gpu_peak_flops(*ops_);
#else
    peak_ = peak_flops(threads);
#endif
    report_.set("machine", ops_->description()).set("peak_gflops", peak_ / 1e9);
    if (!json_) std::printf("%s; fp32 peak measured now: %.0f GFLOP/s\n", ops_->description().c_str(), peak_ / 1e9);
  }

  void operations() {
    if (!json_) std::printf("\n%-52s %10s %10s %9s %9s\n", "operation", "forward", "backward", "forward", "backward");
    Json rows = Json::array();
    for (const OpCase& row : bench_cases()) rows.push(operation(row));
    report_.set("operations", rows);
  }

  void steps() {
    Json rows = Json::array();
    std::vector<std::pair<int, int>> sizes = {{16, 64}, {32, 64}, {128, 8}};
    if (!cpu_) sizes.push_back({128, 320});  // the papers'
    for (const auto& [n, batch] : sizes) rows.push(step(n, batch));
    report_.set("steps", rows);
  }

  void finish() const {
    if (json_) std::printf("%s\n", report_.text().c_str());
  }

 private:
  // The time of one call. On a GPU several are put on the queue before the wait, so that launching does not count.
  double time_of(const Call& call, Arrays& arrays, const std::string& written) {
    const int calls = cpu_ ? 1 : 10;
    return best_time(clock_,
                     [&] {
                       for (int i = 0; i < calls; ++i) call(*ops_, arrays);
                       if (!cpu_) wait_for(arrays.tensor(written));
                     }) /
           calls;
  }
  void wait_for(const Tensor& tensor) {
    real first;
    ops_->download(&first, tensor.data(), sizeof first);
  }

  Json operation(const OpCase& row) {
    Arrays arrays(*ops_, row.operands, 1);
    const std::string written = std::find_if(row.operands.begin(), row.operands.end(), [](const Operand& o) {
                                  return o.role == Role::OUTPUT || o.role == Role::UPDATED;
                                })->name;
    const double forward = time_of(row.forward, arrays, written);
    const double backward = row.backward ? time_of(row.backward, arrays, written) : 0;
    Json json = Json::object();
    json.set("name", row.name).set("forward_seconds", forward).set("backward_seconds", backward);
    std::string rates;
    if (row.flops > 0)
      rates =
          text("%5.0f GF/s %5.0f GF/s  %2.0f %% %2.0f %% of peak", row.flops / forward / 1e9,
               2 * row.flops / backward / 1e9, 100 * row.flops / forward / peak_, 200 * row.flops / backward / peak_);
    else if (row.pairs > 0)
      rates = text("%5.2f G/s  %5.2f G/s   pair-channels", row.pairs / forward / 1e9, row.pairs / backward / 1e9);
    if (row.forward_instructions > 0)  // the peak counts two operations for each lane of an instruction
      rates +=
          text(", %2.0f %% %2.0f %% of the floor", 100 * row.pairs * row.forward_instructions / forward / (peak_ / 2),
               100 * row.pairs * row.backward_instructions / backward / (peak_ / 2));
    if (!json_)
      std::printf("%-52s %7.3f ms %7.3f ms  %s\n", row.name.c_str(), 1e3 * forward, 1e3 * backward, rates.c_str());
    return json;
  }

  Json step(int n, int batch) {
    const Copying task(n);
    Json config = Json::object();
    config.set("vocab", task.vocab())
        .set("context", task.context())
        .set("width", 192)
        .set("hidden", 192)
        .set("layers", 12);
    config.set("heads", 1)
        .set("activation", "exp")
        .set("pre_activation_norm", "exact")
        .set("post_reduction_norm", true);
    config.set("causal", true);
    const auto model = make_model("causal_rn", config, *ops_);
    model->parameters.initialize(1);
    Optimizer optimizer(model->parameters, *ops_, {});
    Trainer trainer(*model, task, optimizer, *ops_, 1, batch, 1);
    int64_t done = 0;
    const double seconds = best_time(
        clock_, [&] { trainer.step(done++, 5e-4); }, 3);

    Profile profile;
    constexpr int MEASURED = 5;
    if (cpu_) cpu_->measure(&profile);
    for (int i = 0; cpu_ && i < MEASURED; ++i) trainer.step(done++, 5e-4);
    if (cpu_) cpu_->measure(nullptr);
    return print_step(text("causal_rn 192/192, 12 layers, n = %d, batch %d", n, batch), seconds, profile, MEASURED);
  }

  Json print_step(const std::string& name, double seconds, const Profile& profile, int measured) const {
    Json json = Json::object(), parts = Json::object();
    json.set("name", name).set("seconds", seconds).set("peak_memory_mb", peak_memory_mb());
    if (!json_)
      std::printf("\n%s: %.4f s a step, peak memory so far %.0f MB\n", name.c_str(), seconds, peak_memory_mb());
    double total = 0;
    for (const auto& [who, entry] : profile.entries) total += entry.seconds;
    for (const auto& [who, entry] : profile.entries) {
      parts.set(who, entry.seconds / measured);
      if (!json_)
        std::printf("  %-24s %8.2f ms  %4.1f %%  %4lld calls\n", who.c_str(), 1e3 * entry.seconds / measured,
                    100 * entry.seconds / total, static_cast<long long>(entry.calls / measured));
    }
    return json.set("operations", parts), json;
  }

  std::unique_ptr<Ops> ops_;
  Cpu* cpu_ = nullptr;  // ops_ where it is the CPU
  bool json_;
  double (*clock_)() = wall_clock;
  double peak_;
  Json report_ = Json::object();
};

int run(int argc, char** argv) {
  int threads = 0;
  bool json = false, operations = false, steps = false;
  std::string device = "cpu";
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") json = true;
    if (word == "--threads" && i + 1 < argc) threads = std::atoi(argv[++i]);
    if (word == "--device" && i + 1 < argc) device = argv[++i];
    if (word == "operations") operations = true;
    if (word == "steps") steps = true;
  }
  Bench bench(device, threads > 0 ? threads : available_threads(), json);
  if (operations || !steps) bench.operations();
  if (steps || !operations) bench.steps();
  bench.finish();
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("bench", [&] { return petroglyph::run(argc, argv); });
}
