// Every operation and model on the GPU against the CPU, bit for bit (gpu_checks.h).
//
// Compiled with cuda_on_host.h in front, the GPU's kernels run on the host, in several orders of their threads;
// compiled with nvcc, on the GPU that there is.

#include "check.h"
#include "cpu/make_cpu.h"
#include "gpu/make_gpu.h"
#include "gpu_checks.h"

namespace petroglyph {
namespace {

#ifdef CUDA_ON_HOST
// The orders in which a GPU could run its threads, of which a correct kernel cannot tell one from another.
struct Order {
  const char* name;
  cuda_on_host::Order order;
};
constexpr Order ORDERS[] = {{"ascending", cuda_on_host::Order::ASCENDING},
                            {"descending", cuda_on_host::Order::DESCENDING},
                            {"random", cuda_on_host::Order::RANDOM}};
void set_order(const Order& order) { cuda_on_host::set_order(order.order, 5); }
#else
struct Order {
  const char* name;
};
constexpr Order ORDERS[] = {{"GPU"}};
void set_order(const Order&) {}
#endif

void compare(Test& test, const std::string& group, const Order& order) {
  const auto cpu = make_cpu(1), gpu = make_gpu();
  set_order(order);
  for (const GpuCheck& check : gpu_checks(group)) {
    if (check.once && order.name != ORDERS[0].name) continue;
    const std::string difference = check.difference(*cpu, *gpu);
    test.check(check.name, difference.empty(), difference);
  }
}

#ifdef CUDA_ON_HOST
void no_gpu(Test& test) {
  cuda_on_host::Device& device = cuda_on_host::device();
  const cuda_on_host::Device before = device;
  device.count = 0;
  test.throws("none", "--device cuda: no GPU found", [] { make_gpu(); });
  device = before;
  test.throws("one that is not there", "there is no GPU 1, expected one from 0 to 0", [] { make_gpu(1); });
  device.count = 2;
  test.equal("the second of two", make_gpu(1)->description(), std::string("host run, 4 multiprocessors"));
  device.major = 6;
  device.minor = 1;
  test.throws("too old", "has compute capability 6.1, 7.0 or newer is needed", [] { make_gpu(); });
  device = before;
  device.has_image = false;
  test.throws("no kernels for it", "this build has no kernels: make CUDA=1 GPU_ARCH=90 builds them",
              [] { make_gpu(); });
  device = before;
  device.memory = size_t(64) << 20;
  test.throws("too little memory", "out of GPU memory: 1.00 GiB wanted for one array",
              [] { Tensor(*make_gpu(), {int64_t(1) << 28}); });
  device = before;
  CHECK(cuda_on_host::allocations() == 0);
}

// All work waits until something needs its result.
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
  for (const Order& order : ORDERS)
    for (const std::string& group : gpu_check_groups())
      test.run(group + ", " + order.name, [&](Test& t) { compare(t, group, order); });
#ifdef CUDA_ON_HOST
  test.run("no GPU", no_gpu);
  test.run("late streams", late_streams);
#endif
  return test.finish();
}
