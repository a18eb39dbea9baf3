// Runs every operation and model on the PTX machine (machine.h) and compares it bit for bit with the reference. It
// executes the PTX that nvcc compiled, launched by the GPU's own host code.
//
//   PTX=build/ptx/compute_90 build/test/ptx_run            one order of threads for all checks, others for some
//   PTX=build/ptx/compute_90 PTX_ORDERS=all build/test/ptx_run
//
// At the end it prints how many PTX instructions were executed and, per kernel, those that never were.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "base/text.h"
#include "check.h"
#include "fingerprints.h"
#include "gpu/make_gpu.h"
#include "gpu_checks.h"
#include "ptx/launch.h"

namespace petroglyph {
namespace {

struct NamedOrder {
  const char* name;
  ptx::Order order;
};
constexpr NamedOrder ORDERS[] = {
    {"ascending", ptx::Order::ASCENDING}, {"descending", ptx::Order::DESCENDING}, {"random", ptx::Order::RANDOM}};
constexpr unsigned ORDER_SEED = 5;

// Groups that run in every order. The others are large: they run in all orders only with PTX_ORDERS=all.
const std::set<std::string> QUICK = {"rows", "dilated", "linear relation", "dct", "table", "streams"};

// Minimum fraction of PTX instructions that the checks must execute. docs/one_order.md explains the others.
constexpr double LEAST_COVERAGE = 0.95;

std::string variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

void set_order(ptx::Programs& programs, ptx::Order order) {
  cuda_on_host::set_executor(
      [&programs, order](const cuda_on_host::Kernel& kernel) { programs.run(kernel, order, ORDER_SEED); });
}

void compare(Test& test, ptx::Programs& programs, const std::string& group, ptx::Order order) {
  set_order(programs, order);
  for (const GpuCheck& check : gpu_checks(group)) {
    if (check.once && order != ptx::Order::ASCENDING) continue;
    std::string difference;
    try {
      const auto gpu = make_gpu();  // a new GPU, whose scratch is unwritten
      difference = check.difference(*gpu);
    } catch (const ptx::Fault& fault) {
      difference = fault.what();
    }
    test.check(check.name, difference.empty(), difference);
  }
}

// Kernels that only the bench launches.
void peak(Test& test, ptx::Programs& programs) {
  set_order(programs, ptx::Order::ASCENDING);
  cuda_on_host::Device& device = cuda_on_host::device();
  const cuda_on_host::Device before = device;
  device.multiprocessors = 1;
  CHECK(gpu_peak_flops(*make_gpu()) > 0);
  device = before;
}

// Prints the source lines of a kernel that have unexecuted instructions, with their number.
void list_unreached(const ptx::Program& program, const ptx::Kernel& kernel, size_t unreached) {
  std::map<std::string, int> lines;
  for (size_t n = 0; n < program.code.size(); ++n)
    if (!program.executed[n]) ++lines[ptx::source_of(kernel, kernel.statements[n])];
  std::printf("note %zu of %zu instructions not executed of %s:", unreached, program.code.size(), program.name.c_str());
  for (const auto& [line, count] : lines) std::printf(" %s×%d", line.c_str(), count);
  std::printf("\n");
}

void coverage(Test& test, ptx::Programs& programs) {
  size_t all = 0, executed = 0;
  for (size_t n = 0; n < programs.all().size(); ++n) {
    const ptx::Program& program = programs.all()[n];
    const auto here = static_cast<size_t>(std::count(program.executed.begin(), program.executed.end(), 1));
    all += program.code.size();
    executed += here;
    if (here < program.code.size()) list_unreached(program, programs.kernels()[n], program.code.size() - here);
  }
  std::printf("%zu of %zu PTX instructions in %zu kernels were executed, %.2f %%\n", executed, all,
              programs.all().size(), 100.0 * static_cast<double>(executed) / static_cast<double>(all));
  CHECK(static_cast<double>(executed) >= LEAST_COVERAGE * static_cast<double>(all));
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  try {
    Test test(argc, argv);
    ptx::Programs programs(variable("PTX", "build/ptx/compute_90"));
    const bool all_orders = variable("PTX_ORDERS", "") == "all";
    for (const NamedOrder& order : ORDERS)
      for (const std::string& group : gpu_check_groups())
        if (all_orders || order.order == ptx::Order::ASCENDING || QUICK.count(group) != 0)
          test.run(group + ", " + order.name, [&](Test& t) { compare(t, programs, group, order.order); });
    test.run("golden", [&](Test& t) {
      set_order(programs, ptx::Order::ASCENDING);
      against_golden(t, [] { return make_gpu(); });
    });
    test.run("peak", [&](Test& t) { peak(t, programs); });
    if (argc == 1) test.run("coverage", [&](Test& t) { coverage(t, programs); });
    return test.finish();
  } catch (const std::exception& error) {
    std::printf("FAIL ptx: %s\n0 passed, 1 failed\n", error.what());
    return 1;
  }
}
