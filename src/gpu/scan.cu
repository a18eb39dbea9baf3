// The selective scan of Mamba: the twin of cpu/scan.cpp. The derivation stands in models/mamba.cpp.
//
// A block is one warp, which has one sample and one group of 32 channels; a lane has one channel, with STATES of its
// states in registers while time runs. Where there are more states, they take turns: the sums over states that one turn
// leaves in y, du and dpre_step are where the next one goes on. The inputs of STEPS positions pass through shared memory
// at once.
//
// The backward pass goes over a segment twice: first down it, to know h before every STEPS positions, then back over
// STEPS positions at a time, whose states and decays find room in shared memory.

#include "gpu/gpu.h"
#include "gpu/lanes.cuh"

namespace petroglyph {

namespace {

using numerics::fma;

constexpr int GROUP = ScanShape::GROUP, SEGMENT = ScanShape::SEGMENT;
constexpr int STATES = 16;
constexpr int STEPS = 8;
constexpr float LN2 = 0.69314718055994531f;

static_assert(GROUP == WARP && SEGMENT % STEPS == 0, "a lane has a channel, a segment is cut evenly");

struct Scan {
  const float *u, *pre_step, *A_log, *B, *C, *D;
  ScanShape shape;
};

// The channel of this lane, and the states of this turn.
struct Place {
  const ScanShape& shape;
  int64_t sample;
  int group, channel;
  bool active;        // not beyond the last channel
  int first, count;   // states of this turn
  bool begins, ends;  // the first turn, the last

  __device__ explicit Place(const ScanShape& s)
      : shape(s),
        sample(blockIdx.x / s.groups()),
        group(static_cast<int>(blockIdx.x % s.groups())),
        channel(group * GROUP + lane_index()),
        active(channel < s.channels) {}

  __device__ void take_turn(int state) {
    first = state;
    count = min(STATES, shape.states - state);
    begins = state == 0;
    ends = state + STATES >= shape.states;
  }
  __device__ int64_t row(int64_t t) const { return sample * shape.length + t; }
  __device__ int64_t position(int64_t t) const { return row(t) * shape.channels + channel; }
  // State s of this turn in row r of an array (…,S,I).
  __device__ int64_t state(int64_t r, int s) const { return (r * shape.states + first + s) * shape.channels + channel; }
};

// What STEPS positions read; B and C are the warp's, the rest each lane's own.
struct Inputs {
  float u[STEPS][WARP], pre_step[STEPS][WARP], step[STEPS][WARP], input[STEPS][WARP];
  float B[STEPS][STATES], C[STEPS][STATES];

  __device__ void read(const Scan& scan, const Place& p, int64_t t, int steps) {
    const int lane = lane_index();
    __syncthreads();  // nobody still reads what was here
    for (int i = 0; i < steps; ++i) {
      u[i][lane] = p.active ? scan.u[p.position(t + i)] : 0;
      pre_step[i][lane] = p.active ? scan.pre_step[p.position(t + i)] : 0;
    }
    for (int j = lane; j < steps * STATES; j += WARP) {
      const int i = j / STATES, s = j % STATES;
      const int64_t at = p.row(t + i) * p.shape.row + p.first + s;
      if (s >= p.count) continue;
      B[i][s] = scan.B[at];
      C[i][s] = scan.C[at];
    }
    for (int i = 0; i < steps; ++i) {
      step[i][lane] = numerics::softplus(pre_step[i][lane]);
      input[i][lane] = step[i][lane] * u[i][lane];
    }
    __syncthreads();
  }
};

// exp(Δ A), for rate = A log₂e
__device__ inline float decay(float step, float rate) {
  return numerics::exp2_in_range(numerics::max(-100.0f, step * rate));
}

__device__ void load_rates(float (&rates)[STATES], const Scan& scan, const Place& p) {
#pragma unroll
  for (int s = 0; s < STATES; ++s) {
    const bool there = p.active && s < p.count;
    rates[s] =
        there ? -numerics::exp(scan.A_log[static_cast<int64_t>(p.channel) * p.shape.states + p.first + s]) * LOG2_E : 0;
  }
}

// h (STATES) from row r of an array (…,S,I), or zeros where there is none
__device__ void load_states(float (&h)[STATES], const float* from, int64_t r, const Place& p) {
#pragma unroll
  for (int s = 0; s < STATES; ++s) h[s] = from && p.active && s < p.count ? from[p.state(r, s)] : 0;
}

__device__ void store_states(float* to, const float (&h)[STATES], int64_t r, const Place& p) {
#pragma unroll
  for (int s = 0; s < STATES; ++s)
    if (p.active && s < p.count) to[p.state(r, s)] = h[s];
}

__global__ void scan_forward(float* y, float* state, float* kept, Scan scan) {
  SHARED_ARRAY(Inputs, in, );
  const int lane = lane_index();
  Place p(scan.shape);
  const float skip = p.active ? scan.D[p.channel] : 0;
  for (int turn = 0; turn < p.shape.states; turn += STATES) {
    p.take_turn(turn);
    float rates[STATES], h[STATES];
    load_rates(rates, scan, p);
    load_states(h, state, p.sample, p);
    for (int t = 0; t < p.shape.length; t += STEPS) {
      const int steps = min(STEPS, p.shape.length - t);
      if (kept && t % SEGMENT == 0) store_states(kept, h, p.sample * p.shape.segments() + t / SEGMENT, p);
      in.read(scan, p, t, steps);
      for (int i = 0; i < steps; ++i) {
        const int64_t at = p.position(t + i);
        const float step = in.step[i][lane], input = in.input[i][lane];
        float sum = p.begins || !p.active ? 0 : y[at];
#pragma unroll
        for (int s = 0; s < STATES; ++s) {
          if (s >= p.count) break;
          h[s] = fma(decay(step, rates[s]), h[s], input * in.B[i][s]);
          sum = fma(h[s], in.C[i][s], sum);
        }
        if (p.active) y[at] = p.ends ? fma(skip, in.u[i][lane], sum) : sum;
      }
    }
    if (state) store_states(state, h, p.sample, p);
  }
}

// ---- Backward -----------------------------------------------------------------------------------------------------

struct Gradients {
  float *du, *dpre_step;  // (B,T,I)
  float* group_sums;      // (B,T,groups,2S)
  float* sample_sums;     // (B,S+1,I)
  const float *dy, *kept;
};

// What the backward pass of one group holds in shared memory; each lane has its own column.
struct Rewind {
  Inputs in;
  float starts[SEGMENT / STEPS][STATES][WARP];  // h before every STEPS positions of the segment
  float before[STEPS][STATES][WARP];            // h before each of STEPS positions
  float decays[STEPS][STATES][WARP];
};
static_assert(sizeof(Rewind) <= size_t(64) << 10, "a block has no more shared memory at compute capability 7.5");

// Fills `starts`, from h before the segment.
__device__ void find_starts(Rewind& r, float (&h)[STATES], const float (&rates)[STATES], const Scan& scan,
                            const Place& p, int64_t first, int length) {
  const int lane = lane_index();
  for (int t = 0; t < length; t += STEPS) {
#pragma unroll
    for (int s = 0; s < STATES; ++s) r.starts[t / STEPS][s][lane] = h[s];
    if (t + STEPS >= length) break;
    r.in.read(scan, p, first + t, STEPS);
    for (int i = 0; i < STEPS; ++i) {
      const float step = r.in.step[i][lane], input = r.in.input[i][lane];
#pragma unroll
      for (int s = 0; s < STATES; ++s) {
        if (s >= p.count) break;
        h[s] = fma(decay(step, rates[s]), h[s], input * r.in.B[i][s]);
      }
    }
  }
}

// Fills `before` and `decays` for some positions, and leaves h after the last of them.
__device__ void recompute(Rewind& r, float (&h)[STATES], const float (&rates)[STATES], const Place& p, int start,
                          int steps) {
  const int lane = lane_index();
#pragma unroll
  for (int s = 0; s < STATES; ++s) h[s] = r.starts[start][s][lane];
  for (int i = 0; i < steps; ++i) {
    const float step = r.in.step[i][lane], input = r.in.input[i][lane];
#pragma unroll
    for (int s = 0; s < STATES; ++s) {
      if (s >= p.count) break;
      const float a = decay(step, rates[s]);
      r.before[i][s][lane] = h[s];
      r.decays[i][s][lane] = a;
      h[s] = fma(a, h[s], input * r.in.B[i][s]);
    }
  }
}

// A lane's sums that last through all segments of a turn, and what it passes back through time.
struct Sums {
  float h[STATES];   // after the position at hand
  float dh[STATES];  // from later positions
  float dA[STATES];
  float dD;
};

// One position back: du, dpre_step and the group's part of dB and dC there.
__device__ void retreat(Rewind& r, Sums& sums, const float (&rates)[STATES], const Gradients& out, float skip,
                        const Place& p, int64_t t, int i) {
  const int lane = lane_index(), S = p.shape.states;
  const int64_t at = p.position(t);
  const float step = r.in.step[i][lane], input = r.in.input[i][lane], u = r.in.u[i][lane];
  const float dy = p.active ? out.dy[at] : 0;
  float dinput = p.begins || !p.active ? 0 : out.du[at], dstep_of_decay = p.begins || !p.active ? 0 : out.dpre_step[at];
  float products[2 * STATES] = {};  // for dB, then for dC
#pragma unroll
  for (int s = 0; s < STATES; ++s) {
    if (s >= p.count) break;
    const float before = r.before[i][s][lane];
    const float d = fma(dy, r.in.C[i][s], sums.dh[s]);
    const float passed = d * r.decays[i][s][lane];
    const float slope = passed * before;
    sums.dh[s] = passed;
    sums.dA[s] = fma(slope, step, sums.dA[s]);
    products[s] = d * input;
    products[STATES + s] = dy * sums.h[s];
    dinput = fma(d, r.in.B[i][s], dinput);
    dstep_of_decay = fma(slope, rates[s], dstep_of_decay);
    sums.h[s] = before;
  }
  const float folded = fold_many<2 * STATES>(products, lane);
  const int s = lane % STATES;
  if (s < p.count)
    out.group_sums[((p.row(t) * p.shape.groups() + p.group) * 2 + lane / STATES) * S + p.first + s] = folded;
  if (!p.active) return;
  if (p.ends) {
    const float dstep = fma(u, dinput, dstep_of_decay * LN2);
    dinput = fma(step, dinput, skip * dy);
    dstep_of_decay = dstep * numerics::sigmoid(r.in.pre_step[i][lane]);
    sums.dD = fma(dy, u, sums.dD);
  }
  out.du[at] = dinput;
  out.dpre_step[at] = dstep_of_decay;
}

__global__ void scan_backward(Gradients out, Scan scan) {
  SHARED_MEMORY(float, memory);
  Rewind& r = *reinterpret_cast<Rewind*>(memory);
  Place p(scan.shape);
  const float skip = p.active ? scan.D[p.channel] : 0;
  const int64_t sums_row = p.sample * (p.shape.states + 1);
  Sums sums = {};
  for (int turn = 0; turn < p.shape.states; turn += STATES) {
    p.take_turn(turn);
    float rates[STATES];
    load_rates(rates, scan, p);
#pragma unroll
    for (int s = 0; s < STATES; ++s) sums.dh[s] = sums.dA[s] = 0;
    for (int segment = p.shape.segments(); segment-- > 0;) {
      const int64_t first = static_cast<int64_t>(segment) * SEGMENT;
      const int length = p.shape.segment_length(segment);
      load_states(sums.h, out.kept, p.sample * p.shape.segments() + segment, p);
      find_starts(r, sums.h, rates, scan, p, first, length);
      for (int start = (length - 1) / STEPS; start >= 0; --start) {
        const int steps = min(STEPS, length - start * STEPS);
        r.in.read(scan, p, first + start * STEPS, steps);
        recompute(r, sums.h, rates, p, start, steps);
        for (int i = steps; i-- > 0;) retreat(r, sums, rates, out, skip, p, first + start * STEPS + i, i);
      }
    }
#pragma unroll
    for (int s = 0; s < STATES; ++s)
      if (p.active && s < p.count)
        out.sample_sums[(sums_row + p.first + s) * p.shape.channels + p.channel] = sums.dA[s];
  }
  if (p.active) out.sample_sums[(sums_row + p.shape.states) * p.shape.channels + p.channel] = sums.dD;
}

constexpr int THREADS = 128;

// dA_log += A Σ_b, dD += Σ_b of the samples' sums (B,S+1,I)
__global__ void add_samples(float* dA_log, float* dD, const float* sums, const float* A_log, ScanShape shape) {
  const int64_t i = element_of_thread<THREADS>();
  const int S = shape.states;
  const int64_t size = static_cast<int64_t>(S + 1) * shape.channels;
  if (i >= size) return;
  float total = 0;
#pragma unroll 8
  for (int b = 0; b < shape.batch; ++b) total += sums[b * size + i];
  const int64_t s = i / shape.channels, c = i % shape.channels;
  if (s == S)
    dD[c] += total;
  else
    dA_log[c * S + s] = fma(-numerics::exp(A_log[c * S + s]), total, dA_log[c * S + s]);
}

// dB and dC, from the groups' sums (B,T,groups,2S)
__global__ void add_groups(float* dB, float* dC, const float* sums, ScanShape shape) {
  const int64_t i = element_of_thread<THREADS>();
  const int S = shape.states;
  if (i >= shape.rows() * 2 * S) return;
  const int64_t n = i / (2 * S);
  const int s = static_cast<int>(i % (2 * S));
  float total = 0;
#pragma unroll 8
  for (int group = 0; group < shape.groups(); ++group) total += sums[(n * shape.groups() + group) * 2 * S + s];
  (s < S ? dB + s : dC + s - S)[n * shape.row] = total;
}

unsigned warps(const ScanShape& shape) { return grid_blocks(int64_t{1} * shape.batch * shape.groups()); }

}  // namespace

void Gpu::selective_scan(real* y, real* state, real* kept, const real* u, const real* pre_step, const real* A_log,
                         const real* B, const real* C, const real* D, const ScanShape& shape) {
  LAUNCH(scan_forward, warps(shape), WARP, 0, stream_, y, state, kept, Scan{u, pre_step, A_log, B, C, D, shape});
}

void Gpu::selective_scan_backward(real* du, real* dpre_step, real* dA_log, real* dB, real* dC, real* dD, real* partial,
                                  const real* dy, const real* kept, const real* u, const real* pre_step,
                                  const real* A_log, const real* B, const real* C, const real* D,
                                  const ScanShape& shape) {
  real* const sample_sums = partial + shape.group_sums_size();
  LAUNCH(scan_backward, warps(shape), WARP, sizeof(Rewind), stream_,
         Gradients{du, dpre_step, partial, sample_sums, dy, kept}, Scan{u, pre_step, A_log, B, C, D, shape});
  const int64_t samples = static_cast<int64_t>(shape.states + 1) * shape.channels;
  LAUNCH(add_samples, blocks_for(samples, THREADS), THREADS, 0, stream_, dA_log, dD, sample_sums, A_log, shape);
  LAUNCH(add_groups, blocks_for(shape.rows() * 2 * shape.states, THREADS), THREADS, 0, stream_, dB, dC, partial, shape);
}

}  // namespace petroglyph
