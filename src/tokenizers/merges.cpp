#include "tokenizers/merges.h"

#include <algorithm>
#include <functional>

#include "base/error.h"

namespace petroglyph {

bool Merges::add(int32_t left, int32_t right, int32_t result) {
  uint32_t& rank = ranks.at(left, right);
  if (rank != PairTable::NONE) return false;
  rank = static_cast<uint32_t>(list.size());
  list.push_back({left, right, result});
  return true;
}

void PieceMerger::append(std::string_view piece, std::vector<int32_t>& out) {
  if (piece.size() >= GONE) throw Error("a piece of text without an end of a word is longer than 4 GB");
  const auto count = static_cast<uint32_t>(piece.size());
  nodes_.resize(count);
  for (uint32_t i = 0; i < count; ++i)
    nodes_[i] = {merges_.byte_tokens[static_cast<unsigned char>(piece[i])], i == 0 ? END : i - 1,
                 i + 1 == count ? END : i + 1, PairTable::NONE};
  for (uint32_t i = 0; i + 1 < count; ++i) rank(i);
  while (!heap_.empty()) merge_all_of_one_rank();
  for (uint32_t at = 0; at < count && at != END; at = nodes_[at].next) out.push_back(nodes_[at].token);
}

// Looks up the merge of the token at `at` with the next token.
void PieceMerger::rank(uint32_t at) {
  Node& node = nodes_[at];
  node.rank = node.next == END ? PairTable::NONE : merges_.ranks.find(node.token, nodes_[node.next].token);
  if (node.rank == PairTable::NONE) return;
  heap_.push_back(static_cast<uint64_t>(node.rank) << 32 | at);
  std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
}

// All positions of this rank are removed from the heap before the first merge. A merge may create a pair with a lower
// rank, but that pair must wait until all merges of the current rank are done.
void PieceMerger::merge_all_of_one_rank() {
  const auto best = static_cast<uint32_t>(heap_.front() >> 32);
  places_.clear();
  while (!heap_.empty() && heap_.front() >> 32 == best) {
    places_.push_back(static_cast<uint32_t>(heap_.front()));
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
    heap_.pop_back();
  }
  for (const uint32_t at : places_) {
    if (nodes_[at].rank == best) merge(at);  // otherwise one of the two tokens has already been merged
  }
}

void PieceMerger::merge(uint32_t at) {
  Node& left = nodes_[at];
  Node& right = nodes_[left.next];
  left.token = merges_.list[left.rank].result;
  right.rank = GONE;
  left.next = right.next;
  if (left.next != END) nodes_[left.next].before = at;
  rank(at);
  if (left.before != END) rank(left.before);
}

}  // namespace petroglyph
