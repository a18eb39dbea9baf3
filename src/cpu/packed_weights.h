// Weights that products use again and again without a change, packed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "cpu/product.h"

namespace petroglyph {

// Every token of a stream is multiplied with the same weights: packing each for one row would cost more than the product.
class PackedWeights {
 public:
  // Until release() of the same numbers, called as often, weights among them may be kept packed.
  void hold(const real* values, int64_t size) { held_.push_back(range(values, size)); }
  void release(const real* values, int64_t size) noexcept;
  // To be called where numbers are written: their weights are to be packed anew.
  void forget(const void* memory, size_t bytes) noexcept;

  // The memory of p.b packed, empty before its first product; null where it is no held weight (N,K) used as Wᵀ.
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
