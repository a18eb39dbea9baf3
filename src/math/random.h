// Random numbers without a generator: a number is a function of (seed, stream, step, index).
//
// The state of a generator would have to be saved in every checkpoint and shared by all threads, and the order of calls
// could never change. A function has no state: any thread, on the CPU or the GPU, computes the batch of step k or the
// initial value of weight i in any order, and a resumed run draws the same numbers as an uninterrupted one. The
// function is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
// ten rounds of multiplication and exclusive or on a 128-bit counter, under a 64-bit key.
#pragma once

#include <cstdint>
#include <string_view>

#include "math/numerics.h"

namespace petroglyph {

struct Random4 {
  uint32_t word[4];
};

// The Philox function. The multipliers and the key's increments (the golden ratio and √3 - 1) are from the paper.
HOST_DEVICE Random4 philox4x32(Random4 counter, uint32_t key0, uint32_t key1) {
  uint32_t a = counter.word[0], b = counter.word[1], c = counter.word[2], d = counter.word[3];
  for (int round = 0; round < 10; ++round) {
    const uint64_t first = uint64_t{0xd2511f53u} * a;
    const uint64_t second = uint64_t{0xcd9e8d57u} * c;
    a = static_cast<uint32_t>(second >> 32) ^ b ^ key0;
    b = static_cast<uint32_t>(second);
    c = static_cast<uint32_t>(first >> 32) ^ d ^ key1;
    d = static_cast<uint32_t>(first);
    key0 += 0x9e3779b9u;
    key1 += 0xbb67ae85u;
  }
  return {{a, b, c, d}};
}

// Four independent random words. `stream` distinguishes the uses of one seed, `step` the steps of training.
HOST_DEVICE Random4 philox(uint64_t seed, uint32_t stream, uint32_t step, uint64_t index) {
  const Random4 counter = {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), step, stream}};
  return philox4x32(counter, static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32));
}

// The stream of a name (32-bit FNV-1a). A parameter's initial values depend on the seed, its name and the index, so
// adding a parameter to a model does not change the initial values of the others.
constexpr uint32_t stream_of(std::string_view name) {
  uint32_t hash = 0x811c9dc5u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193u;
  return hash;
}

// In [0, 1): a multiple of 2^-24, the spacing of floats in [1/2, 1).
HOST_DEVICE float uniform(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

// In {0, …, n-1}, uniform to within n / 2^32.
HOST_DEVICE uint32_t below(uint32_t bits, uint32_t n) {
  return static_cast<uint32_t>((static_cast<uint64_t>(bits) * n) >> 32);
}

// Standard normal by Box and Muller: a radius from one word, an angle from another. The radius needs the logarithm of a
// number that is never 0, here an odd multiple of 2^-24; so all results are within ±5.77. It is a float in every build,
// so that the double build starts from the same weights.
HOST_DEVICE float normal(uint64_t seed, uint32_t stream, uint32_t step, uint64_t index) {
  const Random4 random = philox(seed, stream, step, index);
  const float u = (static_cast<float>(random.word[0] >> 9) + 0.5f) * 0x1p-23f;
  return numerics::sqrt(-2.0f * numerics::log(u)) * numerics::cos_turns(uniform(random.word[1]));
}

}  // namespace petroglyph
