// Held ranges of memory, and the packed copies of the weights in them.

#include "cpu/packed_weights.h"

#include <algorithm>
#include <iterator>

namespace petroglyph {

bool PackedWeights::is_held(std::uintptr_t weight) const {
  return std::any_of(held_.begin(), held_.end(),
                     [&](const Range& range) { return range.begin <= weight && weight < range.end; });
}

void PackedWeights::release(const real* values, int64_t size) noexcept {
  held_.erase(std::find(held_.begin(), held_.end(), range(values, size)));
  for (auto weight = packed_.begin(); weight != packed_.end();)
    weight = is_held(std::get<0>(weight->first)) ? std::next(weight) : packed_.erase(weight);
}

void PackedWeights::forget(const void* memory, size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), end = begin + bytes;
  for (auto weight = packed_.begin(); weight != packed_.end();) {
    const auto& [address, K, N] = weight->first;
    const bool written = address < end && begin < address + static_cast<size_t>(K * N) * sizeof(real);
    weight = written ? packed_.erase(weight) : std::next(weight);
  }
}

Tensor* PackedWeights::find(const Product& p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p.b.data);
  const bool whole = p.b.row == 1 && p.b.column == p.K;
  return whole && is_held(address) ? &packed_[{address, p.K, p.N}] : nullptr;
}

}  // namespace petroglyph
