// Small loops that reach the limits of peak.h: chains of fused multiply-adds and additions.

#include "peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cpu/loops.h"
#include "cpu/several.h"
#include "cpu/simd.h"

namespace petroglyph {

namespace {

constexpr int64_t ROUNDS = 200000;

// In each run every thread calls work(thread). Returns the seconds of the fastest of `runs` runs.
template <class Work>
double fastest(int runs, int threads, Work work) {
  Threads team(threads);
  team.alone = 0;
  double best = 1e30;
  for (int run = 0; run < runs; ++run) {
    const auto start = std::chrono::steady_clock::now();
    parallel(team, threads, 1, 0, [&](int64_t t, int64_t, int) { work(t); });
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// Chains of vectors in registers. In each round FUSED of them compute chain · factor + term, and ADDED of them chain +
// term. numbers: the start of each chain. They all differ, because the compiler would merge equal chains into one.
template <int FUSED, int ADDED>
void fill_registers(real* numbers, real factor, real term) {
  using Fused = Several<VECTOR_WIDTH, FUSED>;
  using Added = Several<VECTOR_WIDTH, ADDED>;
  real* const others = numbers + FUSED * VECTOR_WIDTH;
  Fused fused = Fused::load(numbers);
  Added added = Added::load(others);
  for (int64_t round = 0; round < ROUNDS; ++round) {
    fused = fma(fused, Fused(factor), Fused(term));
    added = added + Added(term);
  }
  fused.store(numbers);
  added.store(others);
}

// Lanes of vector instructions of all threads per second: the best of several runs.
template <int FUSED, int ADDED>
double lanes_a_second(int threads) {
  constexpr int NUMBERS = (FUSED + ADDED) * VECTOR_WIDTH;
  std::vector<real> numbers(static_cast<size_t>(threads) * NUMBERS);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<real>(i % 97);
  const double seconds = fastest(40, threads, [&](int64_t t) {
    fill_registers<FUSED, ADDED>(&numbers[static_cast<size_t>(t * NUMBERS)], real(0.999), real(0.001));
  });
  return static_cast<double>(threads) * NUMBERS * static_cast<double>(ROUNDS) / seconds;
}

}  // namespace

// Two fma units with a latency of 4 need 8 chains to be busy.
double peak_flops(int threads) { return 2 * lanes_a_second<12, 0>(threads); }

// As many chains of additions as of fused multiply-adds, or as many as there are registers for.
double peak_instructions(int threads) {
  constexpr int ADDED = VECTOR_BYTES == 64 ? 8 : 6;
  return lanes_a_second<8, ADDED>(threads);
}

}  // namespace petroglyph
