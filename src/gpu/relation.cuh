// Shared parts of the pairwise relation's kernels: the shape on the device, and the sweep, in which each thread owns
// some channels.
#pragma once

#include <type_traits>

#include "gpu/lanes.cuh"
#include "math/activation.h"
#include "ops/ops.h"

namespace petroglyph {

// RelationShape for kernels.
struct Pairs {
  int batch, queries, keys, capacity, hidden, heads, width;
  bool causal;

  explicit Pairs(const RelationShape& s)
      : batch(s.batch),
        queries(s.queries),
        keys(s.keys),
        capacity(s.capacity),
        hidden(s.hidden),
        heads(s.heads),
        width(s.head_width()),
        causal(s.causal) {}

  HOST_DEVICE int64_t count() const { return static_cast<int64_t>(batch) * heads; }  // number of (sample, head)

  // The number of keys visible to a query; below: the first query that sees a key.
  __device__ int visible(int query) const { return causal ? keys - queries + query + 1 : keys; }
  __device__ int first_query(int key) const { return causal ? max(key - (keys - queries), 0) : 0; }

  // Offsets of one (sample, head) in (B,capacity,H), (B,Q,H) and (B,heads,Q,T).
  __device__ int64_t key_offset(int64_t number) const {
    return number / heads * capacity * hidden + number % heads * width;
  }
  __device__ int64_t query_offset(int64_t number) const {
    return number / heads * queries * hidden + number % heads * width;
  }
  __device__ int64_t pair_offset(int64_t number) const { return number * queries * keys; }
};

// Reads N adjacent numbers of shared memory, 16 (or 8) bytes at a time.
template <int N>
__device__ inline void read_row(float (&to)[N], const float* from) {
  static_assert(N == 2 || N % 4 == 0, "as float2 or float4");
  if constexpr (N == 2) {
    const float2 x = *reinterpret_cast<const float2*>(from);
    to[0] = x.x, to[1] = x.y;
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const float4 x = *reinterpret_cast<const float4*>(from + i);
      to[i] = x.x, to[i + 1] = x.y, to[i + 2] = x.z, to[i + 3] = x.w;
    }
  }
}

// ---- The sweep ----------------------------------------------------------------------------------------------------
//
// A block owns OWN neighbouring queries (or keys) and some channels of one head. A thread keeps all these rows of
// CHANNELS channels in registers and goes through the partners (keys, or queries) in ascending order. A pair's factor
// and inv_std are the same for all channels: they are loaded to shared memory for PARTNERS partners at a time and read
// in fours. A pair and channel then costs little more than its arithmetic.

constexpr int OWN = 8;
constexpr int PARTNERS = 64;
constexpr int SWEEP_THREADS = 128;  // at most

enum class Sweep { VALUE, QUERY_GRADIENT, KEY_GRADIENT };

struct SweepArguments {
  float* out;            // VALUE: z; gradients: the sums of inv_std·g
  const float* dz;       // gradients: already multiplied by 1/n
  const float* inv_std;  // or null: 1
  const float* shift;    // or null: 0
  const float *p, *q;
  Pairs pairs;
};

struct alignas(16) PartnerRows {
  float row[PARTNERS][OWN];
};

template <class Psi, Sweep SWEEP, int CHANNELS>
class Sweeper {
 public:
  static constexpr bool OWNS_KEYS = SWEEP == Sweep::KEY_GRADIENT, GRADIENT = SWEEP != Sweep::VALUE;
  static constexpr int BLIND = OWNS_KEYS ? OWN - 1 : 0;  // the own row that sees no partner of a partial range

  __device__ Sweeper(const SweepArguments& arguments, int64_t number, int first, int channel)
      : a_(arguments), number_(number), first_(first) {
    const Pairs& s = a_.pairs;
    own_ = min(OWN, (OWNS_KEYS ? s.keys : s.queries) - first);
#pragma unroll
    for (int k = 0; k < CHANNELS; ++k) channel_[k] = channel + k * static_cast<int>(blockDim.x);
    const float* rows = OWNS_KEYS ? a_.p + s.key_offset(number) : a_.q + s.query_offset(number);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
      const float off = OWNS_KEYS ? 0 : shift_of(row(r));
#pragma unroll
      for (int k = 0; k < CHANNELS; ++k) {
        const int64_t at = static_cast<int64_t>(row(r)) * s.hidden + column(k);
        own_row_[r][k] = rows[at] - off;
        if (SWEEP == Sweep::QUERY_GRADIENT) own_dz_[r][k] = a_.dz[s.query_offset(number) + at];
        sum_[r][k] = 0;
      }
    }
  }

  // Goes through all partners in order. Rows that see only some of the partners skip the others.
  __device__ void sweep(PartnerRows& factors, PartnerRows& scales) {
    const Pairs& s = a_.pairs;
    const int last = first_ + own_ - 1;
    const int begin = OWNS_KEYS ? s.first_query(first_) : 0, end = OWNS_KEYS ? s.queries : s.visible(last);
    const int all_begin = OWNS_KEYS ? s.first_query(last) : 0, all_end = OWNS_KEYS ? end : s.visible(first_);
    for (int from = begin; from < end; from += PARTNERS) {
      const int to = min(from + PARTNERS, end);
      __syncthreads();
      fill(factors, scales, from, to);
      __syncthreads();
      if (OWNS_KEYS) sweep_some<true>(factors, scales, from, from, min(to, all_begin));
      sweep_some<false>(factors, scales, from, max(from, all_begin), min(to, all_end));
      if (!OWNS_KEYS) sweep_some<true>(factors, scales, from, max(from, all_end), to);
    }
  }

  __device__ void store() const {
    const Pairs& s = a_.pairs;
    float* rows = a_.out + (OWNS_KEYS ? s.key_offset(number_) : s.query_offset(number_));
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
      if (r >= own_) break;
      const float mean = GRADIENT ? 1 : 1 / static_cast<float>(s.visible(first_ + r));
#pragma unroll
      for (int k = 0; k < CHANNELS; ++k)
        if (channel_[k] < s.width)
          rows[static_cast<int64_t>(first_ + r) * s.hidden + channel_[k]] = GRADIENT ? sum_[r][k] : sum_[r][k] * mean;
    }
  }

 private:
  // A row or column out of range repeats the last one that exists; its result is not stored.
  __device__ int row(int r) const { return first_ + min(r, own_ - 1); }
  __device__ int column(int k) const { return min(channel_[k], a_.pairs.width - 1); }

  __device__ float shift_of(int query) const {
    return Psi::SHIFTED && a_.shift ? a_.shift[number_ / a_.pairs.heads * a_.pairs.queries + query] : 0;
  }

  __device__ void fill(PartnerRows& factors, PartnerRows& scales, int from, int to) const {
    const Pairs& s = a_.pairs;
    for (int n = static_cast<int>(threadIdx.x); n < (to - from) * OWN; n += static_cast<int>(blockDim.x)) {
      const int own = row(n % OWN), partner = from + n / OWN;
      const int64_t pair = static_cast<int64_t>(OWNS_KEYS ? partner : own) * s.keys + (OWNS_KEYS ? own : partner);
      const float inv_std = a_.inv_std ? a_.inv_std[s.pair_offset(number_) + pair] : 1;
      factors.row[n / OWN][n % OWN] = Psi::factor(inv_std);
      if (GRADIENT) scales.row[n / OWN][n % OWN] = inv_std;
    }
  }

  __device__ bool sees(int r, int partner) const {
    return OWNS_KEYS ? partner >= a_.pairs.first_query(row(r)) : partner < a_.pairs.visible(row(r));
  }

  // The partners begin … end−1. `from`: the first partner in shared memory.
  template <bool PARTIAL>
  __device__ void sweep_some(const PartnerRows& factors, const PartnerRows& scales, int from, int begin, int end) {
    const Pairs& s = a_.pairs;
    const int64_t stride = s.hidden;
    const float *other[CHANNELS], *dz[CHANNELS];
#pragma unroll
    for (int k = 0; k < CHANNELS; ++k) {
      const int64_t at = (OWNS_KEYS ? s.query_offset(number_) : s.key_offset(number_)) + begin * stride + column(k);
      other[k] = (OWNS_KEYS ? a_.q : a_.p) + at;
      dz[k] = a_.dz + at;
    }
    const float *factor = factors.row[begin - from], *scale = scales.row[begin - from];
#pragma unroll(PARTIAL || !std::is_same_v <Psi, ExpInRange> ? 1 : 2)  // the others are long, and seldom used
    for (int partner = begin; partner < end; ++partner) {
      step<PARTIAL>(partner, other, dz, factor, scale);
#pragma unroll
      for (int k = 0; k < CHANNELS; ++k) other[k] += stride, dz[k] += stride;
      factor += OWN, scale += OWN;
    }
  }

  template <bool PARTIAL>
  __device__ void step(int partner, const float* const* others, const float* const* dzs, const float* factors,
                       const float* scales) {
    const float off = OWNS_KEYS ? shift_of(partner) : 0;
    float other[CHANNELS], dz[CHANNELS], factor[OWN], scale[OWN];
#pragma unroll
    for (int k = 0; k < CHANNELS; ++k) {
      other[k] = OWNS_KEYS && Psi::SHIFTED ? *others[k] - off : *others[k];
      if (OWNS_KEYS) dz[k] = *dzs[k];
    }
    read_row(factor, factors);
    if (GRADIENT) read_row(scale, scales);
#pragma unroll
    for (int r = 0; r < OWN; ++r) {
      if (PARTIAL && (r == BLIND || !sees(r, partner))) continue;
#pragma unroll
      for (int k = 0; k < CHANNELS; ++k) {
        const float d = other[k] + own_row_[r][k];
        if (GRADIENT) {
          const float g = (OWNS_KEYS ? dz[k] : own_dz_[r][k]) * Psi::slope(factor[r], d);
          sum_[r][k] = numerics::fma(scale[r], g, sum_[r][k]);
        } else {
          sum_[r][k] = add_value<Psi>(sum_[r][k], factor[r], d);
        }
      }
    }
  }

  const SweepArguments& a_;
  int64_t number_;
  int first_, own_;
  int channel_[CHANNELS];
  float own_row_[OWN][CHANNELS], sum_[OWN][CHANNELS];
  float own_dz_[SWEEP == Sweep::QUERY_GRADIENT ? OWN : 1][CHANNELS];
};

template <class Psi, Sweep SWEEP, int CHANNELS>
__global__ void __launch_bounds__(SWEEP_THREADS) sweep_pairs(SweepArguments arguments, int tiles, int strips) {
  SHARED_ARRAY(PartnerRows, factors, );
  SHARED_ARRAY(PartnerRows, scales, );
  const int strip = static_cast<int>(blockIdx.x % strips);
  const int tile = static_cast<int>(blockIdx.x / strips % tiles);
  // Start with the tiles that have the most partners.
  const int first = (SWEEP == Sweep::KEY_GRADIENT ? tile : tiles - 1 - tile) * OWN;
  Sweeper<Psi, SWEEP, CHANNELS> sweeper(
      arguments, blockIdx.x / strips / tiles, first,
      strip * static_cast<int>(blockDim.x) * CHANNELS + static_cast<int>(threadIdx.x));
  sweeper.sweep(factors, scales);
  sweeper.store();
}

template <class Psi, Sweep SWEEP, int CHANNELS>
void run_sweep(const SweepArguments& arguments, cudaStream_t stream) {
  const Pairs& s = arguments.pairs;
  const int tiles = static_cast<int>(blocks_for(SWEEP == Sweep::KEY_GRADIENT ? s.keys : s.queries, OWN));
  const int strips = static_cast<int>(blocks_for(s.width, SWEEP_THREADS * CHANNELS));
  const unsigned threads = blocks_for(s.width, strips * CHANNELS * WARP) * WARP;
  LAUNCH((sweep_pairs<Psi, SWEEP, CHANNELS>), grid_blocks(s.count() * tiles * strips), threads, 0, stream, arguments,
         tiles, strips);
}

// In a narrow head half of the threads would have no channel. For ExpInRange, narrow heads use another kernel for the
// gradient of queries (relation_backward.cu).
template <class Psi, Sweep SWEEP>
void run_sweep(const SweepArguments& arguments, cudaStream_t stream) {
  if constexpr (SWEEP != Sweep::QUERY_GRADIENT || !std::is_same_v<Psi, ExpInRange>)
    if (arguments.pairs.width <= WARP) return run_sweep<Psi, SWEEP, 1>(arguments, stream);
  run_sweep<Psi, SWEEP, 2>(arguments, stream);
}

}  // namespace petroglyph
