// The relation in linear time: the GPU version of cpu/linear_relation.cpp. The derivation is in
// models/linear_causal_rn.cpp; the catalogue defines the order of sums.
//
// A thread processes one channel of a chunk (64 positions) of a sample. Neighbouring threads have neighbouring
// channels, so a warp reads whole cache lines. First each chunk is summed by itself. A short pass then accumulates the
// sums from chunk to chunk. Finally every chunk starts from the sum of those before it (backward: after it).
//
// A thread prefetches the numbers of AT_ONCE positions before it processes the first of them. Otherwise the branches
// would keep the compiler from moving loads of one position above stores of another. Predicted from loads in flight (8
// positions instead of 1), not yet measured: 0.24 → 0.15 ms forward, 0.75 → 0.45 ms backward at the papers' size.

#include <algorithm>

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {

namespace {

constexpr int CHUNK_LENGTH = LinearRelationShape::CHUNK;
constexpr int THREADS = 64;  // of the kernels whose threads are independent

struct Scan {
  int batch, positions, hidden, chunks, before;
  bool causal;

  explicit Scan(const LinearRelationShape& s)
      : batch(s.batch),
        positions(s.positions),
        hidden(s.hidden),
        chunks(s.chunks()),
        before(s.before),
        causal(s.causal) {}
  __host__ __device__ int strips() const { return (hidden + THREADS - 1) / THREADS; }
  unsigned blocks() const { return grid_blocks(static_cast<int64_t>(batch) * chunks * strips()); }
  unsigned blocks_of_samples() const { return grid_blocks(static_cast<int64_t>(batch) * strips()); }
  __device__ int visible(int j) const { return causal ? before + j + 1 : positions; }
};

// The channel and positions of a thread.
struct Place {
  int64_t sample;
  int chunk, channel;
  int begin, end;  // positions
  int64_t row;     // of position `begin` in (B,T)

  __device__ Place(const Scan& s, int64_t sample_and_chunk, int c)
      : sample(sample_and_chunk / s.chunks),
        chunk(static_cast<int>(sample_and_chunk % s.chunks)),
        channel(c),
        begin(chunk * CHUNK_LENGTH),
        end(min(begin + CHUNK_LENGTH, s.positions)),
        row(sample * s.positions + begin) {}
};

__device__ int channel_of_thread(const Scan& s) {
  return static_cast<int>(blockIdx.x % s.strips()) * THREADS + static_cast<int>(threadIdx.x);
}

__device__ Place place_of_thread(const Scan& s) { return {s, blockIdx.x / s.strips(), channel_of_thread(s)}; }

constexpr int AT_ONCE = 8;

// Calls use(j, read(j)) for the positions j < length of a chunk in ascending order
template <class Read, class Use>
__device__ inline void for_positions(int length, Read read, Use use) {
  decltype(read(0)) values[AT_ONCE];
#pragma unroll 1
  for (int first = 0; first < length; first += AT_ONCE) {
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k)
      if (first + k < length) values[k] = read(first + k);
#pragma unroll
    for (int k = 0; k < AT_ONCE; ++k)
      if (first + k < length) use(first + k, values[k]);
  }
}

// ---- Sums of exponentials -------------------------------------------------------------------------------------------

struct Sum {
  float m, s;
};

// sum += later; returns e, the factor of the one with the smaller m.
__device__ inline float add(Sum& sum, Sum later) {
  const float above = later.m - sum.m;
  const float e = numerics::exp_nonpositive(-numerics::abs(above));
  sum.s = above > 0 ? numerics::fma(sum.s, e, later.s) : numerics::fma(later.s, e, sum.s);
  sum.m = above > 0 ? later.m : sum.m;
  return e;
}

// The sum at index n of an array (…,2,H).
__device__ Sum load(const float* sums, int64_t n, int c, int H) {
  return {sums[2 * n * H + c], sums[(2 * n + 1) * H + c]};
}

__device__ void store(float* sums, int64_t n, int c, int H, Sum sum) {
  sums[2 * n * H + c] = sum.m;
  sums[(2 * n + 1) * H + c] = sum.s;
}

// The sum before a chunk's first position. p: the value there, used as the initial m of the first chunk.
__device__ Sum sum_before(const float* sums, const Place& at, float p, const Scan& s) {
  return at.chunk > 0 ? load(sums, at.sample * s.chunks + at.chunk - 1, at.channel, s.hidden) : Sum{p, 0};
}

// ---- Forward ------------------------------------------------------------------------------------------------------

// sums: one per chunk, of that chunk only
__global__ void sum_chunks(float* sums, const float* p, Scan s) {
  const Place at = place_of_thread(s);
  if (at.channel >= s.hidden) return;
  const float* x = p + at.row * s.hidden + at.channel;
  Sum sum = {*x, 0};
#pragma unroll 8
  for (int j = at.begin; j < at.end; ++j, x += s.hidden) add(sum, {*x, 1});
  store(sums, at.sample * s.chunks + at.chunk, at.channel, s.hidden, sum);
}

// Replaces each chunk's own sum by the sum of all chunks up to it.
__global__ void add_chunks_of_sums(float* sums, Scan s) {
  const int c = channel_of_thread(s);
  const int64_t first = static_cast<int64_t>(blockIdx.x / s.strips()) * s.chunks;
  if (c >= s.hidden) return;
  Sum total = load(sums, first, c, s.hidden);
  for (int k = 1; k < s.chunks; ++k) {
    add(total, load(sums, first + k, c, s.hidden));
    store(sums, first + k, c, s.hidden, total);
  }
}

constexpr int MOST_WARPS = 16;  // per block, which loops over strips of channels; two blocks per multiprocessor

unsigned threads_for_channels(int H) {
  return static_cast<unsigned>(std::min((H + WARP - 1) / WARP, MOST_WARPS) * WARP);
}

// The result in lane 0: the maximum without NaNs. Exception: if lane 0 has channel 0 (`first`) and a NaN, that NaN.
__device__ float largest_of_warp(float x, bool first) {
  float top = numerics::max(x, -numerics::INFINITE);
#pragma unroll
  for (int width = WARP / 2; width > 0; width /= 2) top = numerics::max(__shfl_xor_sync(ALL_LANES, top, width), top);
  return first && x != x ? x : top;
}

// largest[j]: shift_j of each position of a chunk. A NaN in channel 0 makes it NaN, as on the CPU. Adding 0 turns −0
// into +0, so that the order does not matter. All threads of the block must call it.
__device__ void find_shifts(float (*largest)[CHUNK_LENGTH], const float* sums, const float* p, const float* q, Place at,
                            Scan s) {
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  for (int strip = 0; strip < s.hidden; strip += threads) {
    at.channel = strip + thread;
    const bool inside = at.channel < s.hidden;
    const int64_t first = at.row * s.hidden + min(at.channel, s.hidden - 1);
    float m = 0;
    if (inside)
      m = s.causal ? sum_before(sums, at, p[first], s).m
                   : load(sums, (at.sample + 1) * s.chunks - 1, at.channel, s.hidden).m;
    const auto read = [&](int j) {
      const int64_t i = first + static_cast<int64_t>(j) * s.hidden;
      return make_float2(p[i], q[i]);
    };
    for_positions(at.end - at.begin, read, [&](int j, float2 x) {
      if (inside && s.causal) m = x.x > m ? x.x : m;
      const float top = largest_of_warp(inside ? x.y + m : -numerics::INFINITE, at.channel == 0);
      if (lane_index() == 0) largest[warp_index()][j] = strip > 0 ? numerics::max(top, largest[warp_index()][j]) : top;
    });
  }
  __syncthreads();
  for (int j = thread; j < at.end - at.begin; j += threads) {
    float top = largest[0][j];
    for (int w = 1; w < threads / WARP; ++w) top = numerics::max(largest[w][j], top);
    largest[0][j] = top + 0;
  }
  __syncthreads();
}

__device__ float relate(Sum sum, float q, bool shifted, float shift, float mean) {
  const float e = shifted ? numerics::exp_nonpositive(q + sum.m - shift) : numerics::exp(q + sum.m);
  return e * sum.s * mean;
}

// One block per chunk of a sample. keep: store its sum here, because sum_chunks does not run for a single chunk.
__global__ void __launch_bounds__(MOST_WARPS* WARP, 2)
    relate_chunk(float* z, float* shift, float* sums, const float* p, const float* q, Scan s, bool keep) {
  SHARED_ARRAY(float, largest, [MOST_WARPS][CHUNK_LENGTH]);
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x);
  Place at(s, blockIdx.x, thread);
  if (shift) {
    find_shifts(largest, sums, p, q, at, s);
    for (int j = thread; j < at.end - at.begin; j += threads) shift[at.row + j] = largest[0][j];
  }
  for (; at.channel < s.hidden; at.channel += threads) {
    const int64_t first = at.row * s.hidden + at.channel;
    Sum sum =
        s.causal ? sum_before(sums, at, p[first], s) : load(sums, (at.sample + 1) * s.chunks - 1, at.channel, s.hidden);
    const auto read = [&](int j) {
      const int64_t i = first + static_cast<int64_t>(j) * s.hidden;
      return make_float2(p[i], q[i]);
    };
    for_positions(at.end - at.begin, read, [&](int j, float2 x) {
      if (s.causal) add(sum, {x.x, 1});
      const float mean = 1 / static_cast<float>(s.visible(at.begin + j));
      z[first + static_cast<int64_t>(j) * s.hidden] =
          relate(sum, x.y, shift != nullptr, shift ? largest[0][j] : 0, mean);
    });
    if (keep) store(sums, at.sample, at.channel, s.hidden, sum);
  }
}

// Decoding. One block per sample; a thread processes the channels c, c + threads, ….
__global__ void __launch_bounds__(MOST_WARPS* WARP, 2)
    relate_stream(float* z, float* shift, float* state, const float* p, const float* q, Scan s) {
  SHARED_ARRAY(float, largest, [MOST_WARPS]);
  const int threads = static_cast<int>(blockDim.x), thread = static_cast<int>(threadIdx.x), H = s.hidden;
  const int64_t running = blockIdx.x * int64_t{3}, own = running + 1, earlier = running + 2;
  for (int j = 0; j < s.positions; ++j) {
    const int position = s.before + j, place = position % CHUNK_LENGTH;
    const bool first_chunk = position < CHUNK_LENGTH;
    const int64_t row = (static_cast<int64_t>(blockIdx.x) * s.positions + j) * H;
    float top = -numerics::INFINITE, first = 0;  // first: of channel 0
    for (int c = thread; c < H; c += threads) {
      const Sum here = {p[row + c], 1}, empty = {p[row + c], 0};
      Sum sum = position == 0 ? empty : load(state, running, c, H);
      add(sum, here);
      store(state, running, c, H, sum);
      const float exponent = q[row + c] + sum.m;
      if (c == 0) first = exponent;
      top = numerics::max(exponent, top);
      if (first_chunk) continue;
      sum = place == 0 ? empty : load(state, own, c, H);
      add(sum, here);
      store(state, own, c, H, sum);
    }
    top = largest_of_warp(first != first ? first : top, thread == 0);
    if (lane_index() == 0) largest[warp_index()] = top;
    __syncthreads();
    top = largest[0];
    for (int w = 1; w < threads / WARP; ++w) top = numerics::max(largest[w], top);
    top += 0;
    __syncthreads();
    if (shift && thread == 0) shift[static_cast<int64_t>(blockIdx.x) * s.positions + j] = top;
    const float mean = 1 / static_cast<float>(s.visible(j));
    for (int c = thread; c < H; c += threads) {
      Sum sum = load(state, running, c, H);
      z[row + c] = relate(sum, q[row + c], shift != nullptr, top, mean);
      if (place + 1 < CHUNK_LENGTH) continue;
      if (!first_chunk) {
        sum = load(state, earlier, c, H);
        add(sum, load(state, own, c, H));
      }
      store(state, earlier, c, H, sum);
      store(state, running, c, H, sum);
    }
  }
}

}  // namespace

void Gpu::linear_relation(real* z, real* shift, real* sums, real* state, const real* p, const real* q,
                          const LinearRelationShape& shape) {
  const Scan s(shape);
  const unsigned threads = threads_for_channels(s.hidden);
  if (!sums) {
    LAUNCH(relate_stream, static_cast<unsigned>(s.batch), threads, 0, stream_, z, shift, state, p, q, s);
    return;
  }
  const bool only_chunk = s.causal && s.chunks == 1;
  if (!only_chunk) LAUNCH(sum_chunks, s.blocks(), THREADS, 0, stream_, sums, p, s);
  if (s.chunks > 1) LAUNCH(add_chunks_of_sums, s.blocks_of_samples(), THREADS, 0, stream_, sums, s);
  LAUNCH(relate_chunk, grid_blocks(static_cast<int64_t>(s.batch) * s.chunks), threads, 0, stream_, z, shift, sums, p, q,
         s, only_chunk);
}

// ---- Backward -----------------------------------------------------------------------------------------------------

namespace {

struct Arrays {
  float *dp, *dq, *later;
  const float *dz, *shift, *sums, *p, *q;
};

// The inputs of a position's gradient.
struct Position {
  float p, q, dz, shift;
  bool shifted;

  __device__ Position() {}
  __device__ Position(const Arrays& a, int64_t i, int64_t row)
      : p(a.p[i]), q(a.q[i]), dz(a.dz[i]), shift(a.shift ? a.shift[row] : 0), shifted(a.shift) {}
  // g_j, given the sum from which z_j was computed
  __device__ float scaled_gradient(Sum sum, float mean) const {
    return dz * (shifted ? numerics::exp_nonpositive(q + sum.m - shift) : numerics::exp(q + sum.m)) * mean;
  }
};

// Goes through a chunk forwards, then backwards. OWN: only stores in `later` what the chunk adds to A, for pass_back().
// Otherwise: computes dp and dq from `later` (null: nothing comes later).
template <bool OWN>
__global__ void chunk_backward(Arrays a, Scan s) {
  SHARED_ARRAY(float, gradient, [CHUNK_LENGTH][THREADS]);
  SHARED_ARRAY(float, step, [CHUNK_LENGTH][THREADS]);  // e, negative where p is the new m
  const Place at = place_of_thread(s);
  if (at.channel >= s.hidden) return;  // allowed: this kernel has no barrier
  const int thread = static_cast<int>(threadIdx.x), length = at.end - at.begin;
  const int64_t first = at.row * s.hidden + at.channel;
  const int64_t later = (at.sample * s.chunks + at.chunk) * s.hidden + at.channel;
  Sum sum = sum_before(a.sums, at, a.p[first], s);
  const auto read = [&](int j) { return Position(a, first + static_cast<int64_t>(j) * s.hidden, at.row + j); };
  for_positions(length, read, [&](int j, const Position& x) {
    const float before = sum.m, e = add(sum, {x.p, 1});
    const float g = x.scaled_gradient(sum, 1 / static_cast<float>(s.visible(at.begin + j)));
    step[j][thread] = x.p > before ? -e : e;
    gradient[j][thread] = g;
    if (!OWN) a.dq[first + static_cast<int64_t>(j) * s.hidden] = g * sum.s;
  });
  float all = OWN || !a.later ? 0 : a.later[later];
#pragma unroll 4
  for (int j = length - 1; j >= 0; --j) {
    const float e = step[j][thread];
    const bool grew = e < 0;
    all = all + gradient[j][thread];
    const float scaled = all * numerics::abs(e);
    if (!OWN) a.dp[first + static_cast<int64_t>(j) * s.hidden] = grew ? all : scaled;
    all = grew ? scaled : all;
  }
  if (OWN) a.later[later] = all;
}

// Replaces what each chunk adds to A by what all later chunks pass to it.
__global__ void pass_back(float* later, const float* sums, Scan s) {
  const int c = channel_of_thread(s);
  const int64_t first = static_cast<int64_t>(blockIdx.x / s.strips()) * s.chunks;
  if (c >= s.hidden) return;
  float passed = 0;
  for (int k = s.chunks - 1; k >= 0; --k) {
    float* place = later + (first + k) * s.hidden + c;
    const float own = *place;
    *place = passed;
    if (k == 0) break;
    const float down = load(sums, first + k - 1, c, s.hidden).m - load(sums, first + k, c, s.hidden).m;
    passed = numerics::fma(passed, numerics::exp_nonpositive(down), own);
  }
}

// Not causal: dq, and each chunk's part of Σ g.
__global__ void gradients_of_all(Arrays a, Scan s) {
  const Place at = place_of_thread(s);
  if (at.channel >= s.hidden) return;
  const Sum sum = load(a.sums, (at.sample + 1) * s.chunks - 1, at.channel, s.hidden);
  const float mean = 1 / static_cast<float>(s.positions);
  float total = 0;
  const auto read = [&](int j) { return Position(a, (at.row + j) * s.hidden + at.channel, at.row + j); };
  for_positions(at.end - at.begin, read, [&](int j, const Position& x) {
    const float g = x.scaled_gradient(sum, mean);
    a.dq[(at.row + j) * s.hidden + at.channel] = g * sum.s;
    total += g;
  });
  a.later[(at.sample * s.chunks + at.chunk) * s.hidden + at.channel] = total;
}

// Stores the sum over all chunks of a sample in its first chunk.
__global__ void add_gradients(float* later, Scan s) {
  const int c = channel_of_thread(s);
  if (c >= s.hidden) return;
  float* parts = later + static_cast<int64_t>(blockIdx.x / s.strips()) * s.chunks * s.hidden + c;
  float total = *parts;
  for (int k = 1; k < s.chunks; ++k) total += parts[static_cast<int64_t>(k) * s.hidden];
  *parts = total;
}

__global__ void scale_keys(Arrays a, Scan s) {
  const Place at = place_of_thread(s);
  if (at.channel >= s.hidden) return;
  const float m = load(a.sums, (at.sample + 1) * s.chunks - 1, at.channel, s.hidden).m;
  const float total = a.later[at.sample * s.chunks * s.hidden + at.channel];
  const auto element = [&](int j) { return (at.row + j) * s.hidden + at.channel; };
  for_positions(
      at.end - at.begin, [&](int j) { return a.p[element(j)]; },
      [&](int j, float p) { a.dp[element(j)] = total * numerics::exp_nonpositive(p - m); });
}

}  // namespace

void Gpu::linear_relation_backward(real* dp, real* dq, real* later, const real* dz, const real* shift, const real* sums,
                                   const real* p, const real* q, const LinearRelationShape& shape) {
  const Scan s(shape);
  const Arrays a{dp, dq, later, dz, shift, sums, p, q};
  if (!s.causal) {
    LAUNCH(gradients_of_all, s.blocks(), THREADS, 0, stream_, a, s);
    LAUNCH(add_gradients, s.blocks_of_samples(), THREADS, 0, stream_, later, s);
    LAUNCH(scale_keys, s.blocks(), THREADS, 0, stream_, a, s);
    return;
  }
  if (s.chunks > 1) LAUNCH(chunk_backward<true>, s.blocks(), THREADS, 0, stream_, a, s);
  if (s.chunks > 1) LAUNCH(pass_back, s.blocks_of_samples(), THREADS, 0, stream_, later, sums, s);
  Arrays last = a;
  if (s.chunks == 1) last.later = nullptr;
  LAUNCH(chunk_backward<false>, s.blocks(), THREADS, 0, stream_, last, s);
}

}  // namespace petroglyph
