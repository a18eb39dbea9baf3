// The merges of a byte pair encoding, and merging by them.
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
  std::vector<Merge> list;  // in the order in which they are made
  PairTable ranks;          // the place in the list of the merge of two neighbours

  Merges() { byte_tokens.fill(-1); }
  // Adds it as the last one; false where these two are merged already.
  bool add(int32_t left, int32_t right, int32_t result);
};

// Merges the bytes of one piece of text after another. The tokens of a piece are a list, linked through their places,
// so that a merge costs the same wherever it happens; a heap has the pairs that may be merged, the first of the list
// on top.
class PieceMerger {
 public:
  explicit PieceMerger(const Merges& merges) : merges_(merges) {}
  void append(std::string_view piece, std::vector<int32_t>& out);

 private:
  static constexpr uint32_t END = UINT32_MAX, GONE = UINT32_MAX - 1;
  struct Node {
    int32_t token;
    uint32_t before, next;  // END beyond the first and the last
    uint32_t rank;          // of this token with the next one; GONE where it has become part of the one before
  };

  void rank(uint32_t at);
  void merge_all_of_one_rank();
  void merge(uint32_t at);

  const Merges& merges_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;  // rank, place
  std::vector<uint32_t> places_;
};

}  // namespace petroglyph
