#include "ptx/registers.h"

#include <algorithm>

namespace ptx {
namespace {

using Set = std::vector<uint64_t>;  // of values, one bit each

bool has(const Set& set, int n) { return (set[static_cast<size_t>(n) / 64] >> (n % 64) & 1) != 0; }
void put(Set& set, int n) { set[static_cast<size_t>(n) / 64] |= uint64_t(1) << (n % 64); }
void remove(Set& set, int n) { set[static_cast<size_t>(n) / 64] &= ~(uint64_t(1) << (n % 64)); }

// The values that some path from the first instruction reads before it writes them: a liveness analysis, which iterates
// backwards over the instructions until nothing changes.
Set find_living(const std::vector<Instruction>& code, const std::vector<Use>& uses, size_t words) {
  std::vector<Set> live(code.size() + 1, Set(words));  // before each instruction
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t n = code.size(); n-- > 0;) {
      const Instruction& i = code[n];
      const bool goes_on = i.guarded || (i.flow != Flow::BRANCH && i.flow != Flow::EXIT);
      Set before = goes_on ? live[n + 1] : Set(words);
      if (i.flow == Flow::BRANCH)
        for (size_t w = 0; w < words; ++w) before[w] |= live[static_cast<size_t>(i.target)][w];
      for (const int value : uses[n].writes)
        if (uses[n].always) remove(before, value);
      for (const int value : uses[n].reads) put(before, value);
      if (before == live[n]) continue;
      live[n] = std::move(before);
      changed = true;
    }
  }
  return live[0];
}

// Bytes of a value. A predicate is one word; any other value has one number per lane, aligned for vector instructions.
uint32_t size_of(int bits) { return bits == 1 ? 4 : static_cast<uint32_t>(bits / 8 * LANES); }

}  // namespace

Places assign_places(const std::vector<Value>& values, const std::vector<Instruction>& code,
                     const std::vector<Use>& uses) {
  Places places;
  for (const Value& value : values) {
    const uint32_t alignment = std::min<uint32_t>(size_of(value.bits), 64);
    places.of.push_back((places.bytes + alignment - 1) / alignment * alignment);
    places.bytes = places.of.back() + size_of(value.bits);
  }
  places.bytes = (places.bytes + 63) / 64 * 64;
  const Set living = find_living(code, uses, values.size() / 64 + 1);
  for (int v = 0; v < static_cast<int>(values.size()); ++v)
    if (has(living, v) && !values[static_cast<size_t>(v)].fixed) places.doubtful.push_back(v);
  return places;
}

}  // namespace ptx
