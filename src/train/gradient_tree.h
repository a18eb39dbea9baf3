// Adds the gradients of a step's parts in one tree, whichever rank computed them: (0+1)+(2+3), and so on, over the
// parts' indices.
//
// A rank has 2^k parts that follow each other, a subtree. It adds them as they come, like a binary counter: after part
// 3 of 8 the sum of 0 … 3 waits for that of 4 … 7, and k arrays suffice. The rest of the tree is over the ranks, by
// recursive halving: rank r and rank r^1 each take one half of the array and add the other's numbers to it; then r and
// r^2 do the same with that half; and so on. Each number is then added up in one place and in just this tree, which
// float addition, being commutative, does not spoil. The way back gives all the sums to all. Each rank sends and takes
// 2·(R−1)/R of the array, the least possible, and no sum depends on R.
#pragma once

#include <utility>
#include <vector>

#include "ops/ops.h"
#include "train/ranks.h"

namespace petroglyph {

class GradientTree {
 public:
  // parts: of this rank, a power of two, as is the number of ranks. size: of the gradients.
  GradientTree(Ops& ops, Ranks& ranks, int parts, int64_t size);
  ~GradientTree();
  GradientTree(const GradientTree&) = delete;
  GradientTree& operator=(const GradientTree&) = delete;

  // Takes this rank's next part. With the last one of a step `gradients` (size) becomes the sum of all parts of all
  // ranks.
  void add(real* gradients);

  // The same tree over a few numbers, one a part or a rank: 2^k of them.
  static double sum(std::vector<double> parts);

 private:
  struct Piece {
    int64_t begin, end;
    int64_t size() const { return end - begin; }
  };

  void add_numbers(real* sum, const real* more, int64_t n);
  void add_ranks(real* gradients);
  void swap(int partner, real* gradients, const Piece& give, real* take, int64_t taken);
  // The halves of a piece: what this rank keeps, what its partner at this distance does.
  std::pair<Piece, Piece> halves(const Piece& piece, int distance) const;

  Ops& ops_;
  Ranks& ranks_;
  int parts_, done_ = 0;
  int64_t size_;
  std::vector<Tensor> waiting_;  // of 1, 2, 4, … parts
  Tensor taken_;                 // a partner's half
  // Where the gradients are on a GPU they pass through memory of the host.
  real* host_ = nullptr;        // (size)
  real* host_taken_ = nullptr;  // (size/2)
};

}  // namespace petroglyph
