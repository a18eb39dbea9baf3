// Measures every function of numerics.h over all 2^32 arguments against the double function of libm: this is where the
// errors stated in numerics.h come from. `numerics_exhaustive exp log` measures some of them, `--list` names them.
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.h"
#include "math/numerics.h"
#include "ulp.h"

namespace {

using namespace petroglyph;

constexpr uint64_t BLOCK = 1 << 13;
constexpr uint64_t ALL = uint64_t{1} << 32;

// Calls take(work(begin, end)) for all blocks of [0, total): work on some thread, take by one at a time.
template <class Work, class Take>
void for_all(uint64_t total, Work work, Take take) {
#pragma omp parallel for schedule(dynamic)
  for (uint64_t begin = 0; begin < total; begin += BLOCK) {
    const auto found = work(begin, begin + BLOCK);
#pragma omp critical
    take(found);
  }
}

void measure_all(Test& test, const MeasuredFunction& function) {
  const auto start = std::chrono::steady_clock::now();
  Worst worst;
  const auto measured = [&](uint64_t begin, uint64_t end) {
    std::vector<uint32_t> inputs;
    for (uint64_t bits = begin; bits < end; ++bits) inputs.push_back(static_cast<uint32_t>(bits));
    std::vector<float> y(inputs.size());
    Worst here;
    measure(here, y.data(), function, inputs.data(), static_cast<int>(inputs.size()));
    return here;
  };
  for_all(ALL, measured, [&](const Worst& here) { worst.take(here.error, here.input); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  char line[120];
  std::snprintf(line, sizeof line, "%8.4f ulp at %16a (0x%08" PRIx32 "), at most %.2f, %4.0f s", worst.error,
                static_cast<double>(numerics::from_bits(worst.input)), worst.input, function.bound, seconds);
  test.check(line, worst.error <= function.bound);
  std::fflush(stdout);
}

void in_range(Test& test) {
  uint64_t differing = 0;
  const auto count = [](uint64_t begin, uint64_t end) {
    uint64_t here = 0;
    for (uint64_t bits = begin; bits < end; ++bits) {
      const float y = numerics::from_bits(static_cast<uint32_t>(bits));
      const float power = numerics::exp2(y), in_range = numerics::exp2_in_range(y);
      if (std::fabs(y) <= 126)
        here += !same_float(in_range, power) || !same_float(numerics::add_exp2_in_range(1.0f, y), 1 + power);
      here += std::isnan(y) && !std::isnan(in_range);
    }
    return here;
  };
  for_all(ALL, count, [&](uint64_t here) { differing += here; });
  test.equal("exp2_in_range, and 1 + it, have the bits of exp2 for |y| <= 126 and keep every NaN: differing arguments",
             differing, 0);
}

void fused(Test& test) {
  constexpr uint64_t TOTAL = uint64_t{1} << 29;
  uint64_t wrong = TOTAL;
  const auto first_wrong = [](uint64_t begin, uint64_t end) {
    const uint64_t first = first_wrong_fma(begin, end);
    return first < end ? first : TOTAL;
  };
  for_all(TOTAL, first_wrong, [&](uint64_t first) { wrong = std::min(wrong, first); });
  test.equal("2^29 triples: the first that is not rounded correctly", wrong, TOTAL);
}

}  // namespace

int main(int argc, char** argv) {
  Test test(argc, argv);
  for (const MeasuredFunction& function : measured_functions()) {
    test.run(function.name, [&](Test& t) { measure_all(t, function); });
  }
  test.run("exp_nonpositive", [](Test& t) { measure_all(t, measured_exp_nonpositive()); });
  test.run("in_range", in_range);
  test.run("fma", fused);
  return test.finish();
}
