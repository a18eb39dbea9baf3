// The arithmetic contract: errors in ulp, special values, fma, the bits of every function, Philox, and the statistics of
// the random numbers.
//
//   build/test/numerics                                     a sample of the arguments
//   NUMERICS=all build/test/numerics accuracy in_range fma  all 2^32: where the errors stated in numerics.h come from
#include "math/numerics.h"

#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "base/checksum.h"
#include "check.h"
#include "math/random.h"
#include "ulp.h"

namespace {

using namespace petroglyph;

std::string hexadecimal(uint64_t value) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "0x%016" PRIx64, value);
  return digits;
}

// Every 4093rd bit pattern (a prime, so that all low bits occur), and the surroundings of all powers of two, of the
// ends of clamps and changes of formula, and of the worst arguments known.
std::vector<uint32_t> sample() {
  std::vector<uint32_t> inputs;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4093) inputs.push_back(static_cast<uint32_t>(bits));
  std::vector<uint32_t> centres = {0x7f800000, 0x7fc00000};
  for (uint32_t exponent = 0; exponent < 255; ++exponent) centres.push_back(exponent << 23);
  for (uint32_t bit = 0; bit < 23; ++bit) centres.push_back(1u << bit);
  for (float x :
       {0.625f, 0.7071068f, 1.4142135f, 1.5707964f, 3.1415927f, 3.92f,  9.02f,  16.64f, 20.0f,  87.34f, 88.38f,
        88.73f, 89.0f,      103.28f,    103.98f,    104.0f,     126.0f, 127.0f, 149.0f, 150.0f, 151.0f, 129.0f}) {
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

const bool ALL = std::getenv("NUMERICS") != nullptr && std::getenv("NUMERICS") == std::string("all");

// The largest error over all arguments.
Worst worst_of_all(const MeasuredFunction& function) {
  constexpr int64_t BLOCK = 1 << 13;
  Worst worst;
#pragma omp parallel for schedule(dynamic)
  for (int64_t begin = 0; begin < int64_t{1} << 32; begin += BLOCK) {
    std::vector<uint32_t> inputs(BLOCK);
    std::iota(inputs.begin(), inputs.end(), static_cast<uint32_t>(begin));
    std::vector<float> y(inputs.size());
    Worst here;
    measure(here, y.data(), function, inputs.data(), BLOCK);
#pragma omp critical
    worst.take(here.error, here.input);
  }
  return worst;
}

void accuracy(Test& test) {
  const std::vector<uint32_t> inputs = sample();
  std::vector<float> y(inputs.size());
  std::vector<MeasuredFunction> functions = measured_functions();
  functions.push_back(measured_exp_nonpositive());
  for (const MeasuredFunction& function : functions) {
    Worst worst;
    if (ALL) worst = worst_of_all(function);
    if (!ALL) measure(worst, y.data(), function, inputs.data(), static_cast<int>(inputs.size()));
    char line[160];
    std::snprintf(line, sizeof line, "%s: %.4f ulp at %a (0x%08" PRIx32 "), at most %.2f", function.name, worst.error,
                  static_cast<double>(numerics::from_bits(worst.input)), worst.input, function.bound);
    test.check(line, worst.error <= function.bound);
  }
}

// The results of all functions on the sample, as one number each, which every compiler, flag and processor must find.
struct Fingerprint {
  const char* name;
  uint64_t value;
};

constexpr Fingerprint FINGERPRINTS[] = {
    {"sqrt", 0xe03fde3e9ce3be5b},          {"exp", 0x93a9bdf3c1d0fcd1},       {"exp2", 0x9f9bcada3e05069c},
    {"exp2_in_range", 0xd94fc224555b7536}, {"expm1", 0x6029be618c9b1e53},     {"log", 0x25c2d8d574ff2077},
    {"log1p", 0x052ad187cb2da6b1},         {"tanh", 0x1ca073806ea6a727},      {"erf", 0x6de89949b9108618},
    {"sigmoid", 0x879880cc7ae44594},       {"softplus", 0x69334a7d41bdd9fc},  {"sin", 0x414811757267dc39},
    {"cos", 0x2903131a845bd763},           {"sin_turns", 0x4069ca6ef67ac117}, {"cos_turns", 0x9de05e07e03ebcbd},
};

void bits(Test& test) {
  const std::vector<uint32_t> inputs = sample();
  const int count = static_cast<int>(inputs.size());
  std::vector<float> y(inputs.size());
  for (const MeasuredFunction& function : measured_functions()) {
    Worst ignored;
    measure(ignored, y.data(), function, inputs.data(), count);
    Checksum checksum;
    for (int i = 0; i < count; ++i) {
      const bool inside = in_domain(function, numerics::from_bits(inputs[i]));
      const float value = inside ? y[i] : 0.0f;
      const uint32_t word = std::isnan(value) ? numerics::NAN_BITS : numerics::to_bits(value);
      checksum.update(&word, sizeof word);
    }
    uint64_t expected = 0;
    for (const Fingerprint& known : FINGERPRINTS) {
      if (std::string(known.name) == function.name) expected = known.value;
    }
    test.equal(function.name, hexadecimal(checksum.value()), hexadecimal(expected));
  }
}

// What a sum of two products' roundings shows at once: a product that is not rounded before the addition.
void contraction(Test& test) {
  volatile float a = 0x1.001p0f, c = -0x1.002p0f, smallest = 0x1p-149f;
  const float x = a, y = c;
  const float uncontracted = x * x + y;
  test.equal("x * x + y is rounded twice (-ffp-contract=off)", uncontracted, 0.0f);
  test.equal("fma(x, x, y) is rounded once", numerics::fma(x, x, y), 0x1p-24f);
  test.equal("subnormals are kept", smallest * 1.0f, 0x1p-149f);
}

void special(Test& test) {
  constexpr float NOT = std::numeric_limits<float>::quiet_NaN();
  test.equal("max(0, -0) is the second", numerics::max(0.0f, -0.0f), -0.0f);
  test.equal("min(-0, 0) is the second", numerics::min(-0.0f, 0.0f), 0.0f);
  test.equal("max(NaN, 1) is the second", numerics::max(NOT, 1.0f), 1.0f);
  test.equal("min(NaN, 1) is the second", numerics::min(NOT, 1.0f), 1.0f);
  test.check("max(1, NaN) is the second", std::isnan(numerics::max(1.0f, NOT)));
  test.equal("exp(0)", numerics::exp(0.0f), 1.0f);
  test.equal("log(1)", numerics::log(1.0f), 0.0f);
  bool exact = true;
  for (int n = -149; n < 128; ++n) exact = exact && numerics::exp2(static_cast<float>(n)) == std::ldexp(1.0f, n);
  test.check("exp2 of an integer is exact", exact);
  test.equal("sin_turns(1/4)", numerics::sin_turns(0.25f), 1.0f);
  test.equal("cos_turns(1/2)", numerics::cos_turns(0.5f), -1.0f);
  test.equal("cos_turns(1/8)", numerics::cos_turns(0.125f), numerics::sin_turns(0.125f));
}

// Whatever its payload: a GPU's arithmetic answers with the bits 0x7fffffff, an x86's with 0xffc00000.
void not_a_number(Test& test) {
  std::vector<MeasuredFunction> functions = measured_functions();
  functions.push_back(measured_exp_nonpositive());
  for (const MeasuredFunction& function : functions) {
    int lost = 0;
    for (const uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7fc00000u, 0xffc00000u, 0x7fe12345u, 0xffd00001u}) {
      const float x = numerics::from_bits(bits);
      float y = 0;
      function.ours(&y, &x, 1);
      lost += !std::isnan(y);
    }
    test.equal(function.name, lost, 0);
  }
  const float sum = numerics::add_exp2_in_range(1.0f, numerics::from_bits(0x7fffffffu));
  test.check("add_exp2_in_range", std::isnan(sum));
}

void in_range(Test& test) {
  uint64_t differing = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += ALL ? 1 : 1009) {
    const float y = numerics::from_bits(static_cast<uint32_t>(bits));
    if (!(std::fabs(y) <= 126)) continue;
    const float power = numerics::exp2(y);
    differing += !same(numerics::exp2_in_range(y), power);
    for (const float sum : {0.0f, 1.0f, 0x1.234568p+20f, -power})
      differing += !same(numerics::add_exp2_in_range(sum, y), sum + power);
  }
  for (float y : {126.0f, -126.0f}) differing += !same(numerics::exp2_in_range(y), numerics::exp2(y));
  test.equal("exp2_in_range and sums with it differ from exp2 at", differing, 0);
}

void nonpositive(Test& test) {
  const MeasuredFunction function = measured_exp_nonpositive();
  double furthest = 0;
  int differing = 0;
  for (uint64_t bits = function.worst % 1009; bits <= 0x7f800000; bits += 1009) {
    const float x = -numerics::from_bits(static_cast<uint32_t>(bits)), y = numerics::exp_nonpositive(x);
    const double exact = std::exp(static_cast<double>(x));
    differing += !same(y, numerics::exp2(numerics::max(-126.0f, x * LOG2_E)));
    if (!(x >= -function.limit)) continue;
    furthest = std::max(furthest, std::fabs(y - exact));
  }
  test.equal("exp_nonpositive differs from 2^max(-126, x log2 e) at", differing, 0);
  test.check("exp_nonpositive, absolutely", furthest < 1.2e-7, shown(furthest));
  test.check("exp_nonpositive of NaN", std::isnan(numerics::exp_nonpositive(std::numeric_limits<float>::quiet_NaN())));
}

void fused(Test& test) {
  const uint64_t total = ALL ? 1 << 29 : 1 << 22;
  test.equal("first of these triples that is not rounded correctly", first_wrong_fma(0, total), total);
}

void philox_answers(Test& test) {
  // The known answers that the authors publish with Random123.
  const struct {
    Random4 counter;
    uint32_t key0, key1;
    Random4 answer;
  } cases[] = {
      {{{0, 0, 0, 0}}, 0, 0, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       0xa4093822,
       0x299f31d0,
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
  };
  for (const auto& known : cases) {
    const Random4 found = philox4x32(known.counter, known.key0, known.key1);
    for (int i = 0; i < 4; ++i) {
      const std::string name = "counter " + hexadecimal(known.counter.word[0]) + "…, word " + std::to_string(i);
      test.equal(name, hexadecimal(found.word[i]), hexadecimal(known.answer.word[i]));
    }
  }
  const Random4 by_parts = philox4x32({{0x85a308d3, 0x243f6a88, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0);
  const Random4 whole = philox(0x299f31d0a4093822, 0x03707344, 0x13198a2e, 0x243f6a8885a308d3);
  test.check("seed, stream, step and index have their places",
             std::equal(by_parts.word, by_parts.word + 4, whole.word));
  test.equal("stream_of(\"\")", stream_of(""), 0x811c9dc5u);
  test.equal("stream_of(\"foobar\")", stream_of("foobar"), 0xbf9cf968u);
}

void distributions(Test& test) {
  constexpr int COUNT = 1000000;
  constexpr uint32_t SIDES = 10;
  double sum = 0, squares = 0, fourths = 0, neighbours = 0, uniforms = 0, last = 0, largest = 0;
  std::vector<double> thrown(SIDES);
  for (int i = 0; i < COUNT; ++i) {
    const double x = normal(7, stream_of("test"), 0, i);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
    neighbours += x * last;
    largest = std::max(largest, std::fabs(x));
    last = x;
    const Random4 random = philox(7, stream_of("other test"), 0, i);
    uniforms += uniform(random.word[0]);
    ++thrown[below(random.word[1], SIDES)];
  }
  // Each within four standard deviations of its mean over 10^6 numbers.
  test.check("normal: mean 0", std::fabs(sum / COUNT) < 0.004, shown(sum / COUNT));
  test.check("normal: variance 1", std::fabs(squares / COUNT - 1) < 0.0057, shown(squares / COUNT));
  test.check("normal: fourth moment 3", std::fabs(fourths / COUNT - 3) < 0.04, shown(fourths / COUNT));
  test.check("normal: neighbours uncorrelated", std::fabs(neighbours / COUNT) < 0.004, shown(neighbours / COUNT));
  test.check("normal: bounded by 5.77", largest > 4.5 && largest <= 5.77, shown(largest));
  test.check("uniform: mean 1/2", std::fabs(uniforms / COUNT - 0.5) < 0.0012, shown(uniforms / COUNT));
  double chi_squared = 0;
  for (double hits : thrown) chi_squared += (hits - COUNT / SIDES) * (hits - COUNT / SIDES) / (COUNT / SIDES);
  test.check("below: even", chi_squared < 27.9, shown(chi_squared));  // exceeded once in a thousand
  test.check("uniform and below keep their ends",
             uniform(0) == 0.0f && uniform(~0u) == 1.0f - 0x1p-24f && below(0, 7) == 0 && below(~0u, 7) == 6);
}

}  // namespace

int main(int argc, char** argv) {
  Test test(argc, argv);
  test.run("accuracy", accuracy);
  test.run("bits", bits);
  test.run("contraction", contraction);
  test.run("special", special);
  test.run("NaN", not_a_number);
  test.run("in_range", in_range);
  test.run("nonpositive", nonpositive);
  test.run("fma", fused);
  test.run("philox", philox_answers);
  test.run("distributions", distributions);
  return test.finish();
}
