// The selective scan of Mamba: the GPU version of cpu/scan.cpp. The derivation is in models/mamba.cpp.
//
// Forward: a block is one warp, for one sample and one group of 32 channels. A lane has one channel and keeps STATES of
// its states in registers through time. More states are processed in turns: each turn leaves its sums over states in y,
// du and dpre_step, and the next turn continues them. The inputs of STEPS positions are loaded to shared memory at
// once.
//
// Backward: a segment is processed twice. The first pass goes forward and stores h before every STEPS positions. The
// second goes back, STEPS positions at a time. A block has STATES warps, one per state, with one lane per channel of
// the group. So a thread has one state of one channel and keeps STEPS of its h and decays in registers. Sums over
// channels (dB, dC) are sums over lanes. Sums over states (du, dpre_step) are chains over warps: in a second phase each
// warp has one position and reads from shared memory what each state adds to it.
//
// Predicted, not yet measured: backward 6.8 → about 1.8 ms at the papers' size. 54 KB of shared memory hold 16 warps.
// One warp per block with all states of its channels needed as much and left four warps per multiprocessor.

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

// A lane's channel and the states of the current turn.
struct Place {
  const ScanShape& shape;
  int64_t sample;
  int group, channel;
  bool active;        // whether the channel exists
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
  // Index of state s of this turn (s = count: the element behind its last state) in (B,S+1,I).
  __device__ int64_t sample_sum(int s) const {
    return (sample * (shape.states + 1) + first + s) * shape.channels + channel;
  }
  // Index of state s of this turn in row r of an array (…,S,I).
  __device__ int64_t state(int64_t r, int s) const { return (r * shape.states + first + s) * shape.channels + channel; }
};

// The inputs of STEPS positions; B and C are shared by the warp, the others are per lane.
struct Inputs {
  float u[STEPS][WARP], pre_step[STEPS][WARP], step[STEPS][WARP], input[STEPS][WARP];
  float B[STEPS][STATES], C[STEPS][STATES];

  __device__ void read(const Scan& scan, const Place& p, int64_t t, int steps) {
    const int lane = lane_index(), threads = static_cast<int>(blockDim.x);
    __syncthreads();  // no thread still reads the previous contents
    for (int i = warp_index(); i < steps; i += threads / WARP) {
      u[i][lane] = p.active ? scan.u[p.position(t + i)] : 0;
      pre_step[i][lane] = p.active ? scan.pre_step[p.position(t + i)] : 0;
    }
    for (int j = static_cast<int>(threadIdx.x); j < steps * STATES; j += threads) {
      const int i = j / STATES, s = j % STATES;
      const int64_t at = p.row(t + i) * p.shape.row + p.first + s;
      if (s >= p.count) continue;
      B[i][s] = scan.B[at];
      C[i][s] = scan.C[at];
    }
    for (int i = warp_index(); i < steps; i += threads / WARP) {
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

__global__ void scan_forward(float* y, float* state, float* saved, Scan scan) {
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
      if (saved && t % SEGMENT == 0) store_states(saved, h, p.sample * p.shape.segments() + t / SEGMENT, p);
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
  const float *dy, *saved;
};

// The shared memory of one group's backward pass.
struct Rewind {
  Inputs in;
  float dy[STEPS][WARP];
  float starts[SEGMENT / STEPS][STATES][WARP];               // h before every STEPS positions of the segment
  float d[STEPS][STATES][WARP], slope[STEPS][STATES][WARP];  // what a state adds to du and to dpre_step
  float rates[STATES][WARP];
  float sums[STEPS][2][STATES];  // the group's part of dB and of dC

  __device__ void read(const Scan& scan, const float* gradient, const Place& p, int64_t t, int steps) {
    in.read(scan, p, t, steps);
    for (int i = warp_index(); i < steps; i += STATES) dy[i][lane_index()] = p.active ? gradient[p.position(t + i)] : 0;
    __syncthreads();
  }
};
static_assert(sizeof(Rewind) <= size_t(64) << 10, "a block has no more shared memory at compute capability 7.5");

// One state of one channel.
class State {
 public:
  int s;        // in this turn
  bool exists;  // whether this turn has it; the same for all lanes
  float rate;   // A log₂e
  float h;
  float dh, dA;  // from later positions

  __device__ State(const Scan& scan, const Place& p)
      : s(warp_index()), exists(s < p.count), rate(0), h(0), dh(0), dA(0) {
    if (exists && p.active)
      rate = -numerics::exp(scan.A_log[static_cast<int64_t>(p.channel) * p.shape.states + p.first + s]) * LOG2_E;
  }

  // Stores h before every STEPS positions of a segment in `starts`.
  __device__ void find_starts(Rewind& r, const Scan& scan, const Place& p, int64_t first, int length) {
    const int lane = lane_index();
    for (int t = 0; t < length; t += STEPS) {
      r.starts[t / STEPS][s][lane] = h;
      if (t + STEPS >= length) break;
      r.in.read(scan, p, first + t, STEPS);
      if (!exists) continue;
#pragma unroll
      for (int i = 0; i < STEPS; ++i) h = fma(decay(r.in.step[i][lane], rate), h, r.in.input[i][lane] * r.in.B[i][s]);
    }
  }

  // Recomputes some positions forwards, then goes back over them and stores `d`, `slope` and `sums`. The sums for dC
  // are stored on the way forward, those for dB on the way back: registers hold only STEPS of them at a time.
  __device__ void retreat(Rewind& r, int start, int steps) {
    const int lane = lane_index();
    float before[STEPS], products[STEPS] = {};
    h = r.starts[start][s][lane];
#pragma unroll
    for (int i = 0; i < STEPS; ++i) {
      if (i >= steps) break;
      before[i] = h;
      const float a = decay(r.in.step[i][lane], rate);
      r.slope[i][s][lane] = a;  // decay, until the slope is known
      h = fma(a, h, r.in.input[i][lane] * r.in.B[i][s]);
      products[i] = r.dy[i][lane] * h;
    }
    store_sums(r, products, 1);
#pragma unroll
    for (int i = STEPS - 1; i >= 0; --i) {
      if (i >= steps) continue;
      const float d = fma(r.dy[i][lane], r.in.C[i][s], dh);
      dh = d * r.slope[i][s][lane];
      const float slope = dh * before[i];
      dA = fma(slope, r.in.step[i][lane], dA);
      products[i] = d * r.in.input[i][lane];
      r.d[i][s][lane] = d;
      r.slope[i][s][lane] = slope;
    }
    store_sums(r, products, 0);
  }

 private:
  __device__ void store_sums(Rewind& r, const float (&products)[STEPS], int part) const {
    const float folded = fold_many<STEPS>(products, lane_index());
    constexpr int SHARE = WARP / STEPS;  // number of lanes with the same total
    if (lane_index() % SHARE == 0) r.sums[lane_index() / SHARE][part][s] = folded;
  }
};

// Adds the states of this turn to du and dpre_step of position t, which is the i-th in shared memory.
__device__ void add_states(const Rewind& r, const Gradients& out, const float* D, const Place& p, int64_t t, int i) {
  const int lane = lane_index();
  if (!p.active) return;
  const int64_t at = p.position(t);
  float dinput = p.begins ? 0 : out.du[at], dstep_of_decay = p.begins ? 0 : out.dpre_step[at];
#pragma unroll
  for (int s = 0; s < STATES; ++s) {
    if (s >= p.count) break;
    dinput = fma(r.d[i][s][lane], r.in.B[i][s], dinput);
    dstep_of_decay = fma(r.slope[i][s][lane], r.rates[s][lane], dstep_of_decay);
  }
  if (p.ends) {
    const float dstep = fma(r.in.u[i][lane], dinput, dstep_of_decay * LN2);
    dinput = fma(r.in.step[i][lane], dinput, D[p.channel] * r.dy[i][lane]);
    dstep_of_decay = dstep * numerics::sigmoid(r.in.pre_step[i][lane]);
  }
  out.du[at] = dinput;
  out.dpre_step[at] = dstep_of_decay;
}

// Stores the group's sums over channels of `steps` positions, beginning with t. One sum per thread.
__device__ void store_group_sums(const Rewind& r, const Gradients& out, const Place& p, int64_t t, int steps) {
  const int thread = static_cast<int>(threadIdx.x), s = thread % STATES, part = thread / STATES % 2;
  const int i = thread / STATES / 2;
  if (i < steps && s < p.count)
    out.group_sums[((p.row(t + i) * p.shape.groups() + p.group) * 2 + part) * p.shape.states + p.first + s] =
        r.sums[i][part][s];
}

__global__ void __launch_bounds__(STATES* WARP, 2) scan_backward(Gradients out, Scan scan) {
  static_assert(STEPS * 2 * STATES <= STATES * WARP && STEPS < STATES, "a thread has one sum, a warp one position");
  SHARED_MEMORY(float, memory);
  Rewind& r = *reinterpret_cast<Rewind*>(memory);
  Place p(scan.shape);
  float dD = 0;  // only in the last warp
  for (int turn = 0; turn < p.shape.states; turn += STATES) {
    p.take_turn(turn);
    State state(scan, p);
    __syncthreads();  // all threads have finished with the previous turn's rates
    r.rates[state.s][lane_index()] = state.rate;
    for (int segment = p.shape.segments(); segment-- > 0;) {
      const int64_t first = static_cast<int64_t>(segment) * SEGMENT;
      const int length = p.shape.segment_length(segment);
      const int64_t kept_row = p.sample * p.shape.segments() + segment;
      state.h = state.exists && p.active ? out.saved[p.state(kept_row, state.s)] : 0;
      state.find_starts(r, scan, p, first, length);
      for (int start = (length - 1) / STEPS; start >= 0; --start) {
        const int64_t t = first + start * STEPS;
        const int steps = min(STEPS, length - start * STEPS);
        r.read(scan, out.dy, p, t, steps);
        if (state.exists) state.retreat(r, start, steps);
        __syncthreads();
        if (warp_index() < steps) add_states(r, out, scan.D, p, t + warp_index(), warp_index());
        store_group_sums(r, out, p, t, steps);
        if (warp_index() == STATES - 1 && p.ends)
          for (int i = steps; i-- > 0;) dD = fma(r.dy[i][lane_index()], r.in.u[i][lane_index()], dD);
      }
    }
    if (p.active && state.exists) out.sample_sums[p.sample_sum(state.s)] = state.dA;
  }
  if (p.active && warp_index() == STATES - 1) out.sample_sums[p.sample_sum(p.count)] = dD;
}

constexpr int THREADS = 128;

// From the samples' sums (B,S+1,I): dA_log += A Σ_b, dD += Σ_b
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

// dB and dC: sums of the groups' sums (B,T,groups,2S)
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

unsigned groups(const ScanShape& shape) { return grid_blocks(int64_t{1} * shape.batch * shape.groups()); }

}  // namespace

void Gpu::selective_scan(real* y, real* state, real* saved, const real* u, const real* pre_step, const real* A_log,
                         const real* B, const real* C, const real* D, const ScanShape& shape) {
  LAUNCH(scan_forward, groups(shape), WARP, 0, stream_, y, state, saved, Scan{u, pre_step, A_log, B, C, D, shape});
}

void Gpu::selective_scan_backward(real* du, real* dpre_step, real* dA_log, real* dB, real* dC, real* dD, real* partial,
                                  const real* dy, const real* saved, const real* u, const real* pre_step,
                                  const real* A_log, const real* B, const real* C, const real* D,
                                  const ScanShape& shape) {
  real* const sample_sums = partial + shape.group_sums_size();
  LAUNCH(scan_backward, groups(shape), STATES * WARP, sizeof(Rewind), stream_,
         Gradients{du, dpre_step, partial, sample_sums, dy, saved}, Scan{u, pre_step, A_log, B, C, D, shape});
  const int64_t samples = static_cast<int64_t>(shape.states + 1) * shape.channels;
  LAUNCH(add_samples, blocks_for(samples, THREADS), THREADS, 0, stream_, dA_log, dD, sample_sums, A_log, shape);
  LAUNCH(add_groups, blocks_for(shape.rows() * 2 * shape.states, THREADS), THREADS, 0, stream_, dB, dC, partial, shape);
}

}  // namespace petroglyph
