#include "tokenizers/added_tokens.h"

#include <algorithm>
#include <numeric>

namespace petroglyph {

AddedTokenFinder::AddedTokenFinder() { states_.push_back({0}); }

void AddedTokenFinder::add(std::string_view word, int32_t number, bool special) {
  int32_t state = 0;
  for (auto byte = word.rbegin(); byte != word.rend(); ++byte) {
    const auto key = static_cast<unsigned char>(*byte);
    uint32_t& edge = edges_.at(state, key);
    if (edge == PairTable::NONE) {
      edge = static_cast<uint32_t>(states_.size());
      states_.push_back({state, 0, states_[static_cast<size_t>(state)].length + 1, key});
      if (state == 0) first_[key] = static_cast<int32_t>(edge);
    }
    state = static_cast<int32_t>(edge);
  }
  State& whole = states_[static_cast<size_t>(state)];
  for (size_t all = special ? 1 : 0; all < 2; ++all)
    if (whole.whole[all] < 0) whole.whole[all] = number;
  longest_ = std::max(longest_, word.size());
  lengths_.resize(std::max(lengths_.size(), static_cast<size_t>(number) + 1));
  lengths_[static_cast<size_t>(number)] = static_cast<uint32_t>(word.size());
}

// A state's failure link is the state of its longest proper suffix. That state is shorter, so it is computed earlier.
void AddedTokenFinder::finish() {
  std::vector<int32_t> order(states_.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const State &one = states_[static_cast<size_t>(a)], &other = states_[static_cast<size_t>(b)];
    return one.length != other.length ? one.length < other.length : a < b;
  });
  for (const int32_t i : order) {
    State& state = states_[static_cast<size_t>(i)];
    if (state.length > 1) state.fail = next(states_[static_cast<size_t>(state.parent)].fail, state.byte);
    for (size_t all = 0; i > 0 && all < 2; ++all)
      if (state.whole[all] < 0) state.whole[all] = states_[static_cast<size_t>(state.fail)].whole[all];
  }
}

int32_t AddedTokenFinder::next(int32_t state, unsigned char byte) const {
  for (; state != 0; state = states_[static_cast<size_t>(state)].fail)
    if (const uint32_t edge = edges_.find(state, byte); edge != PairTable::NONE) return static_cast<int32_t>(edge);
  return first_[byte];
}

// Processes the text in blocks. The backward scan starts far enough after a block that no word of the block is cut
// off.
void AddedTokenFinder::find(std::string_view text, bool with_special, const Found& found) const {
  if (empty()) return;
  const size_t block = std::max<size_t>(longest_, 1 << 16);
  std::vector<int32_t> begins(block);  // the number of the longest word that begins at each position; −1: none
  size_t at = 0;
  for (size_t begin = 0; begin < text.size(); begin += block) {
    const size_t end = std::min(text.size(), begin + block);
    int32_t state = 0;
    for (size_t i = std::min(text.size(), end + longest_ - 1); i-- > begin;) {
      state = next(state, static_cast<unsigned char>(text[i]));
      if (i < end) begins[i - begin] = states_[static_cast<size_t>(state)].whole[with_special];
    }
    for (at = std::max(at, begin); at < end;) {
      const int32_t number = begins[at - begin];
      if (number >= 0) found(at, number);
      at += number >= 0 ? lengths_[static_cast<size_t>(number)] : 1;
    }
  }
}

}  // namespace petroglyph
