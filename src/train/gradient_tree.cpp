#include "train/gradient_tree.h"

#include <algorithm>

namespace petroglyph {

namespace {
constexpr int64_t LINE = 16;  // pieces begin on a cache line
}

GradientTree::GradientTree(Ops& ops, Ranks& ranks, int parts, int64_t size)
    : ops_(ops), ranks_(ranks), parts_(parts), size_(size) {
  for (int n = 1; n < parts; n *= 2) waiting_.emplace_back(ops, Shape{size});
  if (ranks.count() == 1) return;
  const int64_t half = (size + 1) / 2 + LINE;
  taken_ = Tensor(ops, {half});
  if (ops.on_host()) return;
  host_ = static_cast<real*>(ops.allocate_host(static_cast<size_t>(size + half) * sizeof(real)));
  host_taken_ = host_ + size;
}

GradientTree::~GradientTree() {
  if (host_) ops_.release_host(host_);
}

void GradientTree::add(real* gradients) {
  size_t level = 0;
  for (int n = done_; n % 2 == 1; n /= 2, ++level) add_numbers(gradients, waiting_[level].data(), size_);
  if (++done_ < parts_) {
    ops_.copy(waiting_[level].data(), 0, gradients, 0, static_cast<size_t>(size_) * sizeof(real), 1);
    return;
  }
  done_ = 0;
  if (ranks_.count() > 1) add_ranks(gradients);
}

double GradientTree::sum(std::vector<double> parts) {
  for (size_t n = parts.size(); n > 1; n /= 2)
    for (size_t i = 0; i < n / 2; ++i) parts[i] = parts[2 * i] + parts[2 * i + 1];
  return parts.at(0);
}

void GradientTree::add_numbers(real* sum, const real* more, int64_t n) {
  constexpr int ROW = 1024;
  const int64_t rows = n / ROW;
  const int rest = static_cast<int>(n % ROW);
  if (rows > 0) ops_.add(sum, ROW, sum, more, rows, ROW);
  if (rest > 0) ops_.add(sum + rows * ROW, rest, sum + rows * ROW, more + rows * ROW, 1, rest);
}

std::pair<GradientTree::Piece, GradientTree::Piece> GradientTree::halves(const Piece& piece, int distance) const {
  const int64_t middle = piece.begin + piece.size() / LINE / 2 * LINE;
  const Piece low{piece.begin, middle}, high{middle, piece.end};
  return (ranks_.rank() & distance) ? std::pair(high, low) : std::pair(low, high);
}

void GradientTree::add_ranks(real* gradients) {
  Piece mine{0, size_};
  std::vector<Piece> others;
  for (int distance = 1; distance < ranks_.count(); distance *= 2) {
    const auto [keep, give] = halves(mine, distance);
    swap(ranks_.rank() ^ distance, gradients, give, taken_.data(), keep.size());
    add_numbers(gradients + keep.begin, taken_.data(), keep.size());
    others.push_back(give);
    mine = keep;
  }
  for (int distance = ranks_.count() / 2; distance > 0; distance /= 2) {
    const Piece other = others.back();
    others.pop_back();
    swap(ranks_.rank() ^ distance, gradients, mine, gradients + other.begin, other.size());
    mine = {std::min(mine.begin, other.begin), std::max(mine.end, other.end)};
  }
}

void GradientTree::swap(int partner, real* gradients, const Piece& give, real* take, int64_t taken) {
  const size_t given = static_cast<size_t>(give.size()) * sizeof(real),
               bytes = static_cast<size_t>(taken) * sizeof(real);
  if (!host_) {
    ranks_.swap(partner, gradients + give.begin, given, take, bytes);
    return;
  }
  ops_.download(host_, gradients + give.begin, given);
  ranks_.swap(partner, host_, given, host_taken_, bytes);
  ops_.upload(take, host_taken_, bytes);
}

}  // namespace petroglyph
