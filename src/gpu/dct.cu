// The sliding cosine transform and the weights of its frequencies: the GPU version of cpu/dct.cpp. sliding_dct.h has
// the steps of the transform. A thread computes one channel of a run of blocks and, forward, one group of frequencies:
// neighbouring threads of a warp read neighbouring channels and the same waves. Products of the coefficients with the
// weights use product.cuh, one product per head.

#include <algorithm>

#include "gpu/columns.cuh"
#include "gpu/gpu.h"
#include "gpu/product.cuh"
#include "ops/sliding_dct.h"

namespace petroglyph {

using product::Along;
using product::Factor;
using product::Sums;
using product::Tile;
using product::Tiling;

namespace {

constexpr int THREADS = 128;

// The thread's channel; the block's second index selects the head. `more`: what is counted beside channels.
struct Place {
  int h, channel;
  int64_t more;

  __device__ explicit Place(const DctShape& s) {
    const int64_t i = element_of_thread<THREADS>();
    h = static_cast<int>(blockIdx.y);
    channel = static_cast<int>(i % s.head_width);
    more = i / s.head_width;
  }
};

// Offset of one sample's x and c of a head.
__device__ inline int64_t begin_of_x(const DctShape& s, int64_t sample, int h) {
  return sample * s.positions * s.width() + static_cast<int64_t>(h) * s.head_width;
}
__device__ inline int64_t begin_of_c(const DctShape& s, int64_t sample, const DctHead& head) {
  return s.begin(head) + sample * s.positions * head.frequencies * s.head_width;
}

__global__ void transform_runs(float* c, const float* x, DctShape s, int runs) {
  const Place place(s);
  const DctHead head = s.plan[place.h];
  const int groups = (head.frequencies + dct::GROUP - 1) / dct::GROUP;
  const int64_t sample = place.more / groups / runs;
  if (sample >= s.batch) return;
  const dct::Run run(head.window, s.positions, static_cast<int>(place.more / groups % runs));
  dct::transform_run<dct::OneChannel>(c + begin_of_c(s, sample, head) + place.channel,
                                      x + begin_of_x(s, sample, place.h) + place.channel, s, head,
                                      static_cast<int>(place.more % groups) * dct::GROUP, run);
}

__global__ void append_positions(float* c, float* state, const float* x, DctShape s) {
  const Place place(s);
  if (place.more >= s.batch) return;
  const DctHead head = s.plan[place.h];
  const dct::HeadState past(state + place.more * s.state_size, head, s.head_width);
  dct::append<dct::OneChannel>(c + begin_of_c(s, place.more, head), x + begin_of_x(s, place.more, place.h), s, head,
                               past, place.channel);
}

__global__ void gradient_runs(float* dx, const float* dc, DctShape s, int runs) {
  const Place place(s);
  const int64_t sample = place.more / runs;
  if (sample >= s.batch) return;
  const DctHead head = s.plan[place.h];
  const dct::Run run(head.window, s.positions, static_cast<int>(place.more % runs));
  dct::gradient_run<dct::OneChannel>(dx + begin_of_x(s, sample, place.h) + place.channel,
                                     dc + begin_of_c(s, sample, head) + place.channel, s, head, run);
}

dim3 grid_of(const DctShape& s, int64_t more) {
  return {blocks_for(more * s.head_width, THREADS), static_cast<unsigned>(s.heads), 1};
}

}  // namespace

void Gpu::sliding_dct(real* c, real* state, const real* x, const DctShape& s) {
  const int runs = dct::most_runs(s.positions), groups = (s.most + dct::GROUP - 1) / dct::GROUP;
  if (state)
    LAUNCH(append_positions, grid_of(s, s.batch), THREADS, 0, stream_, c, state, x, s);
  else
    LAUNCH(transform_runs, grid_of(s, int64_t{1} * s.batch * runs * groups), THREADS, 0, stream_, c, x, s, runs);
}

void Gpu::sliding_dct_backward(real* dx, const real* dc, const DctShape& s) {
  const int runs = dct::most_runs(s.positions);
  LAUNCH(gradient_runs, grid_of(s, int64_t{1} * s.batch * runs), THREADS, 0, stream_, dx, dc, s, runs);
}

// ---- Weights of the frequencies -------------------------------------------------------------------------------------

namespace {

// The product to compute for a head: o = c W, dc = do Wᵀ, dW = cᵀ do.
enum class Part { OUTPUT, COEFFICIENTS, WEIGHT };

// The same product for every head; the largest head sets the number of tiles. For dW, a block has one chunk of rows.
template <Part PART>
struct HeadProduct {
  static constexpr Along A = PART == Part::WEIGHT ? Along::OUTPUT : Along::K;
  static constexpr Along B = PART == Part::COEFFICIENTS ? Along::K : Along::OUTPUT;
  DctShape s;
  const float *c, *d_o, *weight;
  float* to;       // o, dc, or the sums of chunks (chunks,heads,most,d,d)
  int64_t chunks;  // for dW

  HOST_DEVICE Tiling tiling(int frequencies) const {
    const int64_t N = s.rows(), d = s.head_width, K = frequencies * d;
    return PART == Part::OUTPUT ? Tiling{N, d} : PART == Part::COEFFICIENTS ? Tiling{N, K} : Tiling{K, d};
  }
  int64_t blocks() const { return tiling(s.most).tiles() * s.heads * chunks; }
  __device__ int head(const Tile& tile) const { return static_cast<int>(tile.batch % s.heads); }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    const int64_t tiles = tiling(s.most).tiles();
    tile.batch = blockIdx.x / tiles;
    const int h = head(tile), d = s.head_width;
    const DctHead own = s.plan[h];
    const Tiling part = tiling(own.frequencies);
    if (blockIdx.x % tiles >= part.tiles()) return false;
    const int K = own.frequencies * d;
    const Factor of_c = {c + s.begin(own), K}, of_o = {d_o + static_cast<int64_t>(h) * d, s.width()},
                 of_weight = {weight + s.weight(h), d};
    part.locate(tile, blockIdx.x % tiles, PART == Part::COEFFICIENTS ? of_o : of_c, A,
                PART == Part::WEIGHT ? of_o : of_weight, B);
    return tile.cut(0,
                    PART == Part::OUTPUT         ? K
                    : PART == Part::COEFFICIENTS ? d
                                                 : s.rows(),
                    chunk + tile.batch / s.heads);
  }

  __device__ void store(const Tile& tile, const Sums& sum) const {
    const int h = head(tile), d = s.head_width;
    const DctHead own = s.plan[h];
    const int64_t row = PART == Part::OUTPUT ? s.width() : PART == Part::COEFFICIENTS ? own.frequencies * d : d;
    const int64_t begin = PART == Part::OUTPUT         ? static_cast<int64_t>(h) * d
                          : PART == Part::COEFFICIENTS ? s.begin(own)
                                                       : tile.batch / s.heads * s.weight(s.heads) + s.weight(h);
    product::store_tile(to + begin + tile.row * row + tile.column, row, nullptr, PART != Part::WEIGHT && !tile.first,
                        tile, sum);
  }
};

// dweight += the sums of chunks in ascending order, for the frequencies that the head has
__global__ void add_chunks(float* dweight, const float* sums, DctShape s, int64_t chunks) {
  const int64_t i = element_of_thread<THREADS>(), size = s.weight(s.heads);
  if (i >= size) return;
  const int h = static_cast<int>(i / s.weight(1));
  if (i - s.weight(h) >= static_cast<int64_t>(s.plan[h].frequencies) * s.head_width * s.head_width) return;
  float sum = dweight[i];
#pragma unroll 8
  for (int64_t chunk = 0; chunk < chunks; ++chunk) sum += sums[chunk * size + i];
  dweight[i] = sum;
}

}  // namespace

void Gpu::mix_frequencies(real* o, const real* c, const real* weight, const DctShape& s) {
  product::run(HeadProduct<Part::OUTPUT>{s, c, nullptr, weight, o, 1}, int64_t{1} * s.most * s.head_width, stream_);
}

void Gpu::mix_frequencies_backward(real* dc, real* dweight, const real* d_o, const real* c, const real* weight,
                                   const DctShape& s) {
  const int64_t chunks = columns::chunks_of(s.rows()), size = s.weight(s.heads);
  const int64_t at_once = columns::chunks_at_once(limits_, s.rows(), size);
  float* sums = scratch(at_once * size);
  for (int64_t chunk = 0; chunk < chunks; chunk += at_once) {
    const int64_t some = std::min(at_once, chunks - chunk);
    product::run_chunk(HeadProduct<Part::WEIGHT>{s, c, d_o, nullptr, sums, some}, chunk, stream_);
    LAUNCH(add_chunks, blocks_for(size, THREADS), THREADS, 0, stream_, dweight, sums, s, some);
  }
  product::run(HeadProduct<Part::COEFFICIENTS>{s, nullptr, d_o, weight, dc, 1}, s.head_width, stream_);
}

}  // namespace petroglyph
