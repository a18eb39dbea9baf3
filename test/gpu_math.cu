// Compares every function of numerics.h on the GPU with the CPU, bit for bit: for all 2³² arguments on a GPU, for a
// sample of them in the host run. All NaN count as equal: their bits have no meaning (numerics.h, rule 5).

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "check.h"
#include "gpu/launch.h"
#include "math/numerics.h"
#include "math/random.h"

namespace petroglyph {
namespace {

#ifdef CUDA_ON_HOST
constexpr uint64_t STEP = 1000003;  // samples some arguments of every exponent
#else
constexpr uint64_t STEP = 1;
#endif
constexpr uint64_t ARGUMENTS = (uint64_t{1} << 32) / STEP;
constexpr uint64_t PIECE = uint64_t{1} << 24;  // arguments per launch
constexpr int THREADS = 256;

HOST_DEVICE uint32_t result_bits(float y) { return y == y ? numerics::to_bits(y) : numerics::NAN_BITS; }

template <class Function>
HOST_DEVICE uint32_t evaluate(uint64_t argument) {
  return result_bits(Function::of(numerics::from_bits(static_cast<uint32_t>(argument * STEP))));
}

template <class Function>
__global__ void evaluate_piece(uint32_t* results, uint64_t first, int count) {
  const int i = static_cast<int>(blockIdx.x) * THREADS + static_cast<int>(threadIdx.x);
  if (i < count) results[i] = evaluate<Function>(first + static_cast<uint64_t>(i));
}

#define FUNCTION(name, ...)                               \
  struct name {                                           \
    static constexpr const char* NAME = #name;            \
    HOST_DEVICE static float of(float x) { __VA_ARGS__; } \
  };
FUNCTION(Reciprocal, return 1 / x)
FUNCTION(Third, return x / 3.0f)
FUNCTION(Sqrt, return numerics::sqrt(x))
FUNCTION(InverseSqrt, return 1 / numerics::sqrt(x))
FUNCTION(Fma, return numerics::fma(x, x, 1.0f))
FUNCTION(MultiplyAdd, return x * x + 1.0f)  // two roundings
FUNCTION(Max, return numerics::max(x, 0.0f))
FUNCTION(Clamp, return numerics::clamp(x, -2.0f, 3.0f))
FUNCTION(ExpInRange, return numerics::abs(x) <= 126 ? numerics::exp2_in_range(x) : 0)
FUNCTION(AddExpInRange, return numerics::abs(x) <= 126 ? numerics::add_exp2_in_range(1.0f, x) : 0)
FUNCTION(ExpNonpositive, return x <= 0 ? numerics::exp_nonpositive(x) : 0)
FUNCTION(Exp2, return numerics::exp2(x))
FUNCTION(Exp, return numerics::exp(x))
FUNCTION(Expm1, return numerics::expm1(x))
FUNCTION(Log, return numerics::log(x))
FUNCTION(Log1p, return numerics::log1p(x))
FUNCTION(Tanh, return numerics::tanh(x))
FUNCTION(Erf, return numerics::erf(x))
FUNCTION(Sigmoid, return numerics::sigmoid(x))
FUNCTION(Softplus, return numerics::softplus(x))
FUNCTION(Sin, return numerics::sin(x))
FUNCTION(Cos, return numerics::cos(x))
FUNCTION(SinTurns, return numerics::abs(x) <= 0x1p20f ? numerics::sin_turns(x) : 0)
FUNCTION(CosTurns, return numerics::abs(x) <= 0x1p20f ? numerics::cos_turns(x) : 0)
FUNCTION(Uniform, return uniform(numerics::to_bits(x)))
FUNCTION(Normal, return normal(7, 11, 13, numerics::to_bits(x)))
#undef FUNCTION

// Memory that the GPU writes and the host reads.
class Results {
 public:
  Results() {
    CUDA_CHECK(cudaMalloc(&on_device_, PIECE * sizeof(uint32_t)));
    CUDA_CHECK(cudaMallocHost(&on_host_, PIECE * sizeof(uint32_t)));
  }
  Results(const Results&) = delete;
  Results& operator=(const Results&) = delete;
  ~Results() {
    (void)cudaFree(on_device_);
    (void)cudaFreeHost(on_host_);
  }
  template <class Function>
  void start(uint64_t first, int count) {
    const unsigned blocks = static_cast<unsigned>((count + THREADS - 1) / THREADS);
    LAUNCH(evaluate_piece<Function>, blocks, THREADS, 0, nullptr, on_device_, first, count);
    CUDA_CHECK(cudaMemcpyAsync(on_host_, on_device_, static_cast<size_t>(count) * sizeof(uint32_t),
                               cudaMemcpyDeviceToHost, nullptr));
  }
  const uint32_t* finish() {
    CUDA_CHECK(cudaDeviceSynchronize());
    return on_host_;
  }

 private:
  uint32_t *on_device_ = nullptr, *on_host_ = nullptr;
};

template <class Function>
void compare(Test& test, Results& results) {
  std::vector<uint32_t> expected(PIECE);
  for (uint64_t first = 0; first < ARGUMENTS; first += PIECE) {
    const int count = static_cast<int>(std::min(PIECE, ARGUMENTS - first));
    results.start<Function>(first, count);
#pragma omp parallel for simd
    for (int i = 0; i < count; ++i)
      expected[static_cast<size_t>(i)] = evaluate<Function>(first + static_cast<uint64_t>(i));
    const uint32_t* found = results.finish();
    const int64_t at = std::mismatch(found, found + count, expected.begin()).first - found;
    if (at == count) continue;
    const float x = numerics::from_bits(static_cast<uint32_t>((first + static_cast<uint64_t>(at)) * STEP));
    test.check(Function::NAME, false,
               "of " + shown(x) + ": GPU " + shown(numerics::from_bits(found[at])) + ", CPU " +
                   shown(numerics::from_bits(expected[static_cast<size_t>(at)])));
    return;
  }
  test.check(text("%s of %llu arguments", Function::NAME, static_cast<unsigned long long>(ARGUMENTS)), true);
}

template <class... Functions>
void compare_all(Test& test) {
  Results results;
  (compare<Functions>(test, results), ...);
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  Test test(argc, argv);
  test.run("arithmetic", compare_all<Reciprocal, Third, Sqrt, InverseSqrt, Fma, MultiplyAdd, Max, Clamp>);
  test.run("exponentials", compare_all<ExpInRange, AddExpInRange, ExpNonpositive, Exp2, Exp, Expm1, Log, Log1p>);
  test.run("activations", compare_all<Tanh, Erf, Sigmoid, Softplus>);
  test.run("circular", compare_all<Sin, Cos, SinTurns, CosTurns>);
  test.run("random", compare_all<Uniform, Normal>);
  return test.finish();
}
