// The arithmetic contract on a sample: errors in ulp, special values, fma, the bits of every function, Philox, and the
// statistics of the random numbers. test/numerics_exhaustive.cpp measures the same functions over all arguments.
#include "numerics.h"

#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "check.h"
#include "checksum.h"
#include "random.h"
#include "ulp.h"

namespace {

using namespace petroglyph;

// Every 4093rd bit pattern (a prime, so that all low bits occur), and the surroundings of all powers of two, of the
// ends of clamps and changes of formula, and of the worst arguments known.
std::vector<uint32_t> sample() {
  std::vector<uint32_t> inputs;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4093) inputs.push_back(static_cast<uint32_t>(bits));
  std::vector<uint32_t> centres = {0x7f800000, 0x7fc00000};
  for (uint32_t exponent = 0; exponent < 255; ++exponent) centres.push_back(exponent << 23);
  for (uint32_t bit = 0; bit < 23; ++bit) centres.push_back(1u << bit);
  for (float x : {0.625f, 0.7071068f, 1.4142135f, 1.5707964f, 3.1415927f, 3.92f, 9.02f, 16.64f, 20.0f, 87.34f, 88.38f,
                  88.73f, 89.0f, 103.28f, 103.98f, 104.0f, 126.0f, 127.0f, 149.0f, 150.0f, 151.0f, 129.0f}) {
    centres.push_back(numerics::to_bits(x));
  }
  for (const MeasuredFunction& function : measured_functions()) centres.push_back(function.worst);
  for (uint32_t centre : centres) {
    for (uint32_t i = 0; i < 64; ++i) {
      inputs.push_back(centre + i - 32);
      inputs.push_back((centre + i - 32) ^ numerics::SIGN_BIT);
    }
  }
  return inputs;
}

void accuracy(Test& test) {
  const std::vector<uint32_t> inputs = sample();
  const int count = static_cast<int>(inputs.size());
  std::vector<float> y(inputs.size());
  for (const MeasuredFunction& function : measured_functions()) {
    Worst worst;
    measure(worst, y.data(), function, inputs.data(), count);
    char details[160];
    std::snprintf(details, sizeof details, "%.4f ulp at %a (0x%08" PRIx32 "), at most %.2f expected", worst.error,
                  static_cast<double>(numerics::from_bits(worst.input)), worst.input, function.bound);
    test.check(function.name, worst.error <= function.bound, details);
  }
}

// The results of all functions on the sample, as one number each. Every compiler, flag and processor must find these.
void bits(Test& test) {
  const std::vector<uint32_t> inputs = sample();
  const int count = static_cast<int>(inputs.size());
  std::vector<float> y(inputs.size());
  for (const MeasuredFunction& function : measured_functions()) {
    Worst ignored;
    measure(ignored, y.data(), function, inputs.data(), count);
    Checksum checksum;
    for (float value : y) {
      const uint32_t bits = std::isnan(value) ? numerics::NAN_BITS : numerics::to_bits(value);
      checksum.update(&bits, sizeof bits);
    }
    test.equal(function.name, checksum.value(), function.fingerprint);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Test test(argc, argv);
  test.run("accuracy", accuracy);
  return test.finish();
}
