// The merges of a byte pair encoding, and the algorithm that applies them.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "tokenizers/pair_table.h"

namespace petroglyph {

struct Merges {
  struct Merge {
    int32_t left, right, result;
  };
  std::array<int32_t, 256> byte_tokens{};
  std::vector<Merge> list;  // in the order in which they were learned
  PairTable ranks;          // the index in `list` of the merge of two adjacent tokens

  Merges() { byte_tokens.fill(-1); }
  // Appends a merge; returns false if these two tokens already have one.
  bool add(int32_t left, int32_t right, int32_t result);
};

// Applies the merges to one piece of text at a time. The tokens of a piece form a linked list, so that a merge takes
// the same time at every position. A heap contains the pairs that can be merged; the pair that is earliest in the
// list of merges is on top.
class PieceMerger {
 public:
  explicit PieceMerger(const Merges& merges) : merges_(merges) {}
  void append(std::string_view piece, std::vector<int32_t>& out);

 private:
  static constexpr uint32_t END = UINT32_MAX, GONE = UINT32_MAX - 1;
  struct Node {
    int32_t token;
    uint32_t before, next;  // END before the first and after the last token
    uint32_t rank;          // of the merge with the next token; GONE if it was merged into the previous token
  };

  void rank(uint32_t at);
  void merge_all_of_one_rank();
  void merge(uint32_t at);

  const Merges& merges_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;  // rank and position
  std::vector<uint32_t> places_;
};

}  // namespace petroglyph
