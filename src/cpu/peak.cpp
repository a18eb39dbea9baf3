#include "cpu/peak.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "cpu/parallel.h"
#include "cpu/several.h"
#include "cpu/simd.h"

namespace petroglyph {

namespace {

constexpr int64_t ROUNDS = 200000;

// Vectors in registers: FUSED of them become chain · factor + term each round, ADDED chain + term.
// numbers: all different, or the compiler would keep one chain for all
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

// Lanes of vector instructions that all threads do in a second: the best of several runs.
template <int FUSED, int ADDED>
double lanes_a_second(int threads) {
  constexpr int NUMBERS = (FUSED + ADDED) * VECTOR_WIDTH;
  std::vector<real> numbers(static_cast<size_t>(threads) * NUMBERS);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<real>(i % 97);
  const Threads team(threads);
  double best = 1e30;
  for (int run = 0; run < 40; ++run) {
    const auto start = std::chrono::steady_clock::now();
    parallel(team, threads, 1, [&](int64_t t, int64_t, int) {
      fill_registers<FUSED, ADDED>(&numbers[t * NUMBERS], real(0.999), real(0.001));
    });
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return static_cast<double>(threads) * NUMBERS * static_cast<double>(ROUNDS) / best;
}

}  // namespace

// Two fma units with a latency of 4 need 8 chains to be busy.
double peak_flops(int threads) { return 2 * lanes_a_second<12, 0>(threads); }

// As many chains of additions, or as many as there are registers for.
double peak_instructions(int threads) {
  constexpr int ADDED = VECTOR_BYTES == 64 ? 8 : 6;
  return lanes_a_second<8, ADDED>(threads);
}

double read_bandwidth(int threads, int64_t bytes) {
  constexpr int CHAINS = 12;
  constexpr int64_t PIECE = CHAINS * VECTOR_WIDTH, RUNS = 12, AT_LEAST = 64 << 20;  // bytes of a run
  const int64_t pieces = std::max<int64_t>(bytes / (PIECE * static_cast<int64_t>(sizeof(real))), threads);
  const int64_t rounds = std::max<int64_t>(AT_LEAST / bytes, 1);
  const std::vector<real> numbers(static_cast<size_t>(pieces * PIECE), real(1));
  std::vector<real> sums(static_cast<size_t>(threads) * VECTOR_WIDTH);
  const Threads team(threads);
  double best = 1e30;
  for (int64_t run = 0; run < RUNS; ++run) {
    const auto start = std::chrono::steady_clock::now();
    parallel(team, threads, 1, [&](int64_t t, int64_t, int) {
      Vector chain[CHAINS] = {};
      for (int64_t round = 0; round < rounds; ++round)
        for (int64_t piece = pieces * t / threads; piece < pieces * (t + 1) / threads; ++piece)
#pragma GCC unroll 12
          for (int i = 0; i < CHAINS; ++i)
            chain[i] += load(&numbers[static_cast<size_t>(piece * PIECE + i * VECTOR_WIDTH)]);
      for (int i = 1; i < CHAINS; ++i) chain[0] += chain[i];
      store(&sums[static_cast<size_t>(t * VECTOR_WIDTH)], chain[0]);
    });
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return static_cast<double>(rounds * pieces * PIECE) * sizeof(real) / best;
}

}  // namespace petroglyph
