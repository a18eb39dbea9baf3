// A cache of packed weights: a weight that many products use unchanged is packed only once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "cpu/product.h"

namespace petroglyph {

// Decoding multiplies every token with the same weights. Packing a weight for each token would take longer than the
// product.
class PackedWeights {
 public:
  // Allows weights within values (size) to be kept packed, until release() was called as often as hold().
  void hold(const real* values, int64_t size) { held_.push_back(range(values, size)); }
  void release(const real* values, int64_t size) noexcept;
  // Must be called before memory is written: removes the packed copies of the weights in it.
  void forget(const void* memory, size_t bytes) noexcept;

  // The packed copy of p.b, an empty tensor before its first product; null unless p.b is a held weight (N,K) used as
  // Wᵀ.
  Tensor* find(const Product& p);

 private:
  struct Range {
    std::uintptr_t begin, end;  // addresses
    bool operator==(const Range& other) const { return begin == other.begin && end == other.end; }
  };
  using Weight = std::tuple<std::uintptr_t, int64_t, int64_t>;  // its address, K and N

  static Range range(const real* values, int64_t size) {
    return {reinterpret_cast<std::uintptr_t>(values), reinterpret_cast<std::uintptr_t>(values + size)};
  }
  bool is_held(std::uintptr_t weight) const;

  std::vector<Range> held_;
  std::map<Weight, Tensor> packed_;
};

}  // namespace petroglyph
