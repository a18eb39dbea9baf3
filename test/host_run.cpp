// Runs every operation and model on the CPU and on the GPU and compares them with the reference, bit for bit
// (gpu_checks.h).
//
// Compiled with cuda_on_host.h in front, the GPU kernels run on the host, in several orders of their threads. Compiled
// with nvcc, they run on the available GPU.

#include <cstdlib>

#include <unistd.h>

#include "check.h"
#include "cpu/make_cpu.h"
#include "gpu/make_gpu.h"
#include "gpu_checks.h"
#include "train/device.h"

namespace petroglyph {
namespace {

#ifdef CUDA_ON_HOST
// Possible orders of a GPU's threads. The result of a correct kernel does not depend on the order. HOST_ORDERS=all (make
// test-all) runs all of them, else the first two are run.
struct Order {
  const char* name;
  cuda_on_host::Order order;
};
constexpr Order ORDERS[] = {{"ascending", cuda_on_host::Order::ASCENDING},
                            {"random", cuda_on_host::Order::RANDOM},
                            {"descending", cuda_on_host::Order::DESCENDING}};
void set_order(const Order& order) { cuda_on_host::set_order(order.order, 5); }
bool is_run(const Order& order) {
  const char* const orders = std::getenv("HOST_ORDERS");
  return order.order != cuda_on_host::Order::DESCENDING || (orders != nullptr && orders == std::string("all"));
}
#else
struct Order {
  const char* name;
};
constexpr Order ORDERS[] = {{"GPU"}};
void set_order(const Order&) {}
bool is_run(const Order&) { return true; }
#endif

void compare(Test& test, const std::string& group, const Order& order, const ScratchLimits& limits = {}) {
  set_order(order);
  compare(test, group, *make_gpu(0, limits), order.name == ORDERS[0].name);
}

// Uses little scratch, so that even small shapes are processed in several parts, as large shapes are.
void in_turns(Test& test) {
  compare(test, "linear", ORDERS[0], {1200, 0});
  compare(test, "attention", ORDERS[0], {0, 30000});
  compare(test, "dct", ORDERS[0], {150, 0});
}

#ifdef CUDA_ON_HOST
// A machine that a test changes, and that is afterwards as it was.
struct Machine {
  cuda_on_host::Device& device = cuda_on_host::device();
  const cuda_on_host::Device before = device;

  ~Machine() {
    device = before;
    cudaSetDevice(0);
  }
};

// If a GPU has more multiprocessors than a shape has tiles, the chunks of a weight gradient are added afterwards.
void many_multiprocessors(Test& test) {
  const Machine machine;
  machine.device.multiprocessors = 132;
  compare(test, "linear", ORDERS[0]);
  compare(test, "linear", ORDERS[0], {1200000, 0});
}

const std::string TOO_OLD = "host run has compute capability 6.0, 7.0 or newer is needed";

// What is wrong with a machine, and what make_gpu() says.
struct Obstacle {
  const char* name;
  std::function<void(cuda_on_host::Device&)> set;
  const char* words;
};
const Obstacle OBSTACLES[] = {
    {"none", [](auto& d) { d.count = 0; }, "--device cuda: no GPU found"},
    {"too old", [](auto& d) { d.major = 6, d.minor = 1; }, "has compute capability 6.1, 7.0 or newer is needed"},
    {"no kernels for it", [](auto& d) { d.image = cudaErrorNoKernelImageForDevice; },
     "this build has no kernels: make CUDA=1 GPU_ARCH=90 builds them"},
    {"no kernel", [](auto& d) { d.image = cudaErrorInvalidDeviceFunction; },
     "this build has no kernels: make CUDA=1 GPU_ARCH=90 builds them"},
    {"nor can this CUDA build them", [](auto& d) { d.image = cudaErrorNoKernelImageForDevice, d.major = 7; },
     "this build has no kernels: a CUDA before 13 builds them"},
    {"too little memory of the host", [](auto& d) { d.pinned = 1000; }, "out of pinned memory of the host: "},
    {"nothing can be told", [](auto& d) { d.broken = 0; }, "GPU 0 does not work: the system is not ready yet"},
};

void no_gpu(Test& test) {
  for (const Obstacle& obstacle : OBSTACLES) {
    const Machine machine;
    obstacle.set(machine.device);
    test.throws(obstacle.name, obstacle.words, [] { make_gpu(); });
  }
  const Machine machine;
  test.throws("one that is not there", "there is no GPU 1, expected one from 0 to 0", [] { make_gpu(1); });
  machine.device.count = 2;
  test.equal("the second of two", make_gpu(1)->description(), std::string("host run, 4 multiprocessors"));
  machine.device.memory = size_t(64) << 20;
  test.throws("too little memory", "out of GPU memory: 1.00 GiB wanted for one array",
              [] { Tensor(*make_gpu(), {int64_t(1) << 28}); });
  CHECK(cuda_on_host::allocations() == 0);
}

// Returns what the function writes to stderr.
template <class Function>
std::string said_by(Function function) {
  std::FILE* const file = std::tmpfile();
  if (file == nullptr) throw Error("no temporary file");
  std::fflush(stderr);
  const int before = dup(STDERR_FILENO);
  dup2(fileno(file), STDERR_FILENO);
  const std::string failed = message_of(function);
  std::fflush(stderr);
  dup2(before, STDERR_FILENO);
  close(before);
  std::rewind(file);
  std::string said;
  for (int c; (c = std::fgetc(file)) != EOF;) said += static_cast<char>(c);
  std::fclose(file);
  return said + failed;
}

// Tests the device that "auto" selects, and its message: none without a GPU, the reason if a GPU cannot be used.
void choose(Test& test, const std::string& name, const std::string& expected, const std::string& obstacle) {
  const std::string line = obstacle.empty() ? "" : "--device auto takes the CPU: " + obstacle + "\n";
  std::string found;
  test.equal(name + ": auto says", said_by([&] { found = make_device("auto", 1)->description(); }), line);
  test.check(name + ": auto takes " + expected, found.rfind(expected, 0) == 0, "it takes " + found);
}

// One of two ranks on this machine; implements only what the choice of a device needs.
struct OneOfTwo final : Ranks {
  explicit OneOfTwo(int number) : number_(number) {}
  int rank() const override { return number_; }
  int count() const override { return 2; }
  int rank_here() const override { return number_; }
  int sharing() const override { return 2; }
  void gather(void*, const void*, size_t) override {}
  void broadcast(void*, size_t) override {}
  void swap(int, const void*, size_t, void*, size_t) override {}
  void abandon(int status) override { std::exit(status); }

 private:
  int number_;
};

// What make_device() writes to stderr, and the device that it takes.
std::string taken(const char* name, const Ranks& ranks) {
  return said_by([&] {
    const std::string description = make_device(name, 1, ranks)->description();
    int number = -1;
    cudaGetDevice(&number);
    std::fprintf(stderr, "%s", description.rfind("CPU", 0) == 0 ? "CPU" : ("GPU " + std::to_string(number)).c_str());
  });
}

// Ranks use different GPUs. A rank whose GPU cannot be used never takes another rank's.
void choose_in_turn(Test& test) {
  const Machine machine;
  machine.device.count = 2;
  test.equal("the first rank", taken("auto", OneOfTwo(0)), "GPU 0");
  test.equal("the second rank", taken("auto", OneOfTwo(1)), "GPU 1");
  for (int rank = 0; rank < 2; ++rank) {
    machine.device.old = rank;
    for (const char* name : {"auto", "cuda"})
      test.equal(text("rank %d's GPU is too old, %s", rank, name), taken(name, OneOfTwo(rank)),
                 "--device cuda: " + TOO_OLD);
    test.equal("the other rank", taken("auto", OneOfTwo(1 - rank)), "GPU " + std::to_string(1 - rank));
  }
}

// CUDA does not start: status of the first call, the newest CUDA version of the driver, and the expected reason.
struct Start {
  const char* name;
  cudaError_t status;
  int driver;
  const char* obstacle;
  bool said;  // whether "auto" also prints it
};
const Start STARTS[] = {
    {"no GPU, or all hidden", cudaErrorNoDevice, 13000, "no GPU found (no GPU)", false},
    {"no driver", cudaErrorInsufficientDriver, 0, "no GPU found (there is no driver)", false},
    {"an old driver", cudaErrorInsufficientDriver, 11040,
     "the GPU's driver is too old: it knows CUDA 11.4, this build is of CUDA 13.0", true},
    {"a system that is not ready", cudaErrorSystemNotReady, 13000,
     "CUDA does not start: the system is not ready yet (cudaErrorSystemNotReady)", true},
    {"a driver of two versions", cudaErrorSystemDriverMismatch, 13000,
     "CUDA does not start: the driver's parts are of different versions (cudaErrorSystemDriverMismatch)", true},
    {"no memory", cudaErrorMemoryAllocation, 13000, "CUDA does not start: out of memory (cudaErrorMemoryAllocation)",
     true},
};

void device_choice(Test& test) {
  choose(test, "a GPU", "host run", "");
  for (const Start& start : STARTS) {
    const Machine machine;
    machine.device.start = start.status;
    machine.device.driver = start.driver;
    choose(test, start.name, "CPU", start.said ? start.obstacle : "");
    test.equal(std::string(start.name) + ": cuda stops", message_of([] { make_device("cuda", 1); }),
               std::string("--device cuda: ") + start.obstacle);
    test.equal(std::string(start.name) + ": no error is left", cudaGetLastError(), cudaSuccess);
  }
  choose_in_turn(test);
  const Machine machine;
  machine.device.major = 6;
  test.equal("too old", taken("auto", *one_rank()), "--device auto takes the CPU: " + TOO_OLD + "\nCPU");
}

// All work on streams is delayed until something needs its result.
void late_streams(Test& test) {
  cuda_on_host::set_late_streams(true);
  compare(test, "models", ORDERS[0]);
  compare(test, "rows", ORDERS[0]);
  cuda_on_host::set_late_streams(false);
}
#endif

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  for (const std::string& group : gpu_check_groups())
    test.run(group + ", CPU", [&](Test& t) { compare(t, group, *make_cpu(2), true); });
  for (const Order& order : ORDERS)
    for (const std::string& group : is_run(order) ? gpu_check_groups() : std::vector<std::string>{})
      test.run(group + ", " + order.name, [&](Test& t) { compare(t, group, order); });
  test.run("in turns", in_turns);
#ifdef CUDA_ON_HOST
  test.run("many multiprocessors", many_multiprocessors);
  test.run("no GPU", no_gpu);
  test.run("device choice", device_choice);
  test.run("late streams", late_streams);
#endif
  return test.finish();
}
