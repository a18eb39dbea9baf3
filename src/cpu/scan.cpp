// The selective scan of Mamba: y (B,T,I) from u and pre_step (B,T,I), A_log (I,S), B and C (B,T,S), D (I). The
// derivation is in models/mamba.cpp, the loops that define it in reference/scan.cpp.
//
// A task is one group of 32 channels of one sample, in vector registers, and processes the positions in order. For each
// state a position costs eleven instructions of exp2 and four more; for each channel it costs one softplus. The
// backward pass processes the segments from the last to the first: it recomputes the states of a segment from the saved
// state before it, then goes back through the segment. So no array of size B·T·channels·states is stored.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/loops.h"
#include "cpu/simd.h"

namespace petroglyph {

namespace {

constexpr int GROUP = ScanShape::GROUP, SEGMENT = ScanShape::SEGMENT;
constexpr real LN2 = real(0.69314718055994531);

constexpr int VECTORS = GROUP / VECTOR_WIDTH;

static_assert(GROUP == LANES, "a group of channels is folded like the lanes of a row");

// One number for each channel of a group; zeros behind the last channel.
struct alignas(64) Row {
  real at[GROUP];
};

// The group of channels and the sample that a task works on.
struct Group {
  const ScanShape& shape;
  int64_t sample;
  int index, first, count;

  Group(const ScanShape& s, int64_t task)
      : shape(s),
        sample(task / s.groups()),
        index(static_cast<int>(task % s.groups())),
        first(index * GROUP),
        count(std::min(GROUP, s.channels - first)) {}

  // The group's channels of position t in (B,T,I), of row r in an array (…,I).
  int64_t position(int64_t t) const { return (sample * shape.length + t) * shape.channels + first; }
  int64_t row(int64_t r) const { return r * shape.channels + first; }
  // B or C of position t; the group's part of dB and dC there, in (B,T,groups,2S).
  int64_t mixed(int64_t t) const { return (sample * shape.length + t) * shape.row; }
  int64_t sums(int64_t t) const { return ((sample * shape.length + t) * shape.groups() + index) * 2 * shape.states; }
};

inline void read_row(Row& row, const real* x, int count) {
  if (count == GROUP) {
#pragma omp simd
    for (int c = 0; c < GROUP; ++c) row.at[c] = x[c];
  } else {
    std::copy_n(x, count, row.at);
    std::fill_n(row.at + count, GROUP - count, real(0));
  }
}

inline void write_row(real* x, const Row& row, int count) {
  if (count == GROUP) {
#pragma omp simd
    for (int c = 0; c < GROUP; ++c) x[c] = row.at[c];
  } else {
    std::copy_n(row.at, count, x);
  }
}

// Read or write the group's states: the rows r … r+S−1 of an array (…,S,I).
void read_states(Row* h, const real* from, int64_t r, const Group& g) {
  for (int s = 0; s < g.shape.states; ++s) read_row(h[s], from + g.row(r + s), g.count);
}

void write_states(real* to, const Row* h, int64_t r, const Group& g) {
  for (int s = 0; s < g.shape.states; ++s) write_row(to + g.row(r + s), h[s], g.count);
}

// rates (groups,S) = A log₂e
void fill_rates(Row* rates, const real* A_log, const ScanShape& shape) {
  const int S = shape.states;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.groups()) * S; ++i) {
    const int64_t first = i / S * GROUP, s = i % S;
    const int64_t count = std::min<int64_t>(GROUP, shape.channels - first);
    Row logs;
    for (int64_t c = 0; c < GROUP; ++c) logs.at[c] = A_log[(first + std::min(c, count - 1)) * S + s];
    for (int c = 0; c < GROUP; ++c) rates[i].at[c] = -numerics::exp(logs.at[c]) * LOG2_E;
  }
}

inline real decay(real step, real rate) { return numerics::exp2_in_range(numerics::max(real(-100), step * rate)); }

// The segment that is read after the current one. It is prefetched row by row while the current one is computed,
// because the rows of a group are too far apart for the hardware prefetcher.
struct NextSegment {
  int64_t first, step;  // the first row's offset in (B,T,I), and the distance between rows
  int length;

  NextSegment(const Group& g, int segment)
      : first(g.position(static_cast<int64_t>(segment) * SEGMENT)),
        step(g.shape.channels),
        length(g.shape.segment_length(segment)) {}

  // Prefetches row i of x. Inlined, because g++ removes calls of a function that only prefetches.
  [[gnu::always_inline]] void prefetch(const real* x, int i) const {
    constexpr int LINE = 64 / sizeof(real);
    if (i >= length) return;
    for (int c = 0; c < GROUP; c += LINE) __builtin_prefetch(x + first + i * step + c);
  }
};

// A segment's u, pre_step, step Δ = softplus(pre_step) and input Δ u. All loads come first, so that their cache misses
// overlap. Softplus is computed in two loops: in one loop its chain of 78 instructions would be too long for a
// processor to overlap several. Prefetching, the two loops and the sum in registers (advance()) together gained 31 %
// forward and 20 % backward at 16,384 positions.
struct Inputs {
  Row u[SEGMENT], pre_step[SEGMENT], step[SEGMENT], input[SEGMENT];

  void read(const real* all_u, const real* all_pre_steps, int64_t first, int length, const Group& g) {
    for (int i = 0; i < length; ++i) read_row(u[i], all_u + g.position(first + i), g.count);
    for (int i = 0; i < length; ++i) read_row(pre_step[i], all_pre_steps + g.position(first + i), g.count);
    for (int i = 0; i < length; ++i) {
#pragma omp simd
      for (int c = 0; c < GROUP; ++c) step[i].at[c] = numerics::exp(-numerics::abs(pre_step[i].at[c]));
    }
    for (int i = 0; i < length; ++i) {
#pragma omp simd
      for (int c = 0; c < GROUP; ++c) {
        step[i].at[c] = numerics::softplus_of_exp(pre_step[i].at[c], step[i].at[c]);
        input[i].at[c] = step[i].at[c] * u[i].at[c];
      }
    }
  }
};

// One position: updates h in place; y = Σ_s h C + D u
void advance(Row& y, Row* h, const Row* rates, const Inputs& in, int i, const Row& skip, const real* B, const real* C,
             int S) {
  const Row &step = in.step[i], &input = in.input[i], &u = in.u[i];
  // Sums in registers: in memory they would be a longer chain (store, load, fma) than the states' arithmetic.
  Vector sum[VECTORS] = {};
  for (int s = 0; s < S; ++s) {
    const real write = B[s];
    const Vector read = broadcast(C[s]);
#pragma omp simd
    for (int c = 0; c < GROUP; ++c)
      h[s].at[c] = numerics::fma(decay(step.at[c], rates[s].at[c]), h[s].at[c], input.at[c] * write);
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) sum[v] = fma(load(h[s].at + v * VECTOR_WIDTH), read, sum[v]);
  }
  for (int v = 0; v < VECTORS; ++v) store(y.at + v * VECTOR_WIDTH, sum[v]);
  for (int c = 0; c < GROUP; ++c) y.at[c] = numerics::fma(skip.at[c], u.at[c], y.at[c]);
}

Row* rows(real* scratch) { return reinterpret_cast<Row*>(scratch); }

}  // namespace

void Cpu::selective_scan(real* y, real* state, real* saved, const real* u, const real* pre_step, const real* A_log,
                         const real* B, const real* C, const real* D, const ScanShape& shape) {
  const int S = shape.states;
  const int64_t table = static_cast<int64_t>(shape.groups()) * S;
  reserve_scratch((table + S) * GROUP);
  Row* const rates = rows(scratch(0));
  fill_rates(rates, A_log, shape);
  const int64_t last = static_cast<int64_t>(shape.batch) * shape.groups() - 1;
  parallel(threads_, last + 1, 1, shape.rows() * shape.channels * S * PASS, [&](int64_t task, int64_t, int thread) {
    const Group g(shape, task), next_group(shape, std::min(task + 1, last));
    Row* const h = rows(scratch(thread)) + table;
    Row skip, sum;
    Inputs in;
    read_row(skip, D + g.first, g.count);
    if (state)
      read_states(h, state, g.sample * S, g);
    else
      std::fill_n(h->at, S * GROUP, real(0));
    for (int segment = 0; segment < shape.segments(); ++segment) {
      const int64_t first = static_cast<int64_t>(segment) * SEGMENT;
      const int length = shape.segment_length(segment);
      if (saved) write_states(saved, h, (g.sample * shape.segments() + segment) * S, g);
      const NextSegment next =
          segment + 1 < shape.segments() ? NextSegment(g, segment + 1) : NextSegment(next_group, 0);
      in.read(u, pre_step, first, length, g);
      for (int i = 0; i < length; ++i) {
        const int64_t at = g.mixed(first + i);
        next.prefetch(u, i);
        next.prefetch(pre_step, i);
        advance(sum, h, rates + g.index * S, in, i, skip, B + at, C + at, S);
        write_row(y + g.position(first + i), sum, g.count);
      }
    }
    if (state) write_states(state, h, g.sample * S, g);
  });
}

namespace {

// The buffers of the backward pass of one group: a recomputed segment, and sums over all segments.
struct GroupBackward {
  Row* states;  // (SEGMENT+1,S): h before every position of the segment, and after its last one
  Row* decays;  // (SEGMENT,S): exp(Δ A)
  Row* dh;      // (S): the gradient of h from later positions
  Row* dA;      // (S): Σ_t of the gradient of A
  real* quads;  // (SEGMENT,2S,4): the terms of dB, then of dC, summed over the channels except for the last two folds
  Inputs in;
  Row dy[SEGMENT], dD = {};

  static int64_t rows(int S) { return static_cast<int64_t>(S) * (2 * SEGMENT + 3 + SEGMENT / 4); }
  GroupBackward(Row* scratch, int S)
      : states(scratch), decays(states + (SEGMENT + 1) * S), dh(decays + SEGMENT * S), dA(dh + S), quads(dA[S].at) {
    std::fill_n(dh->at, 2 * S * GROUP, real(0));  // dA too
  }
};

// states and decays of a segment, from the state before it and r.in.
void recompute(GroupBackward& r, const Row* rates, const real* B, int64_t first, int length, const Group& g) {
  const int S = g.shape.states;
  for (int i = 0; i < length; ++i) {
    const real* b = B + g.mixed(first + i);
    const Row *before = r.states + i * S, &step = r.in.step[i], &input = r.in.input[i];
    Row *after = r.states + (i + 1) * S, *decays = r.decays + i * S;
    for (int s = 0; s < S; ++s) {
      const real write = b[s];
#pragma omp simd
      for (int c = 0; c < GROUP; ++c) {
        const real a = decay(step.at[c], rates[s].at[c]);
        decays[s].at[c] = a;
        after[s].at[c] = numerics::fma(a, before[s].at[c], input.at[c] * write);
      }
    }
  }
}

// One position back: r.dh changes from the gradient that position i + 1 passes back to that of position i. Adds to
// r.dA, writes the quads. dinput = Σ_s dh B, dstep_of_decay = Σ_s slope rate, where slope is the gradient of
// log(decay).
void step_back(GroupBackward& r, Row& dinput, Row& dstep_of_decay, const Row* rates, int i, const real* B,
               const real* C, int S) {
  const Row *before = r.states + i * S, *after = before + S, *decays = r.decays + i * S;
  real* quads = r.quads + i * 2 * S * 4;
  Vector dy[VECTORS], step[VECTORS], input[VECTORS], input_sum[VECTORS] = {}, rate_sum[VECTORS] = {};
  for (int v = 0; v < VECTORS; ++v) {
    dy[v] = load(r.dy[i].at + v * VECTOR_WIDTH);
    step[v] = load(r.in.step[i].at + v * VECTOR_WIDTH);
    input[v] = load(r.in.input[i].at + v * VECTOR_WIDTH);
  }
  for (int s = 0; s < S; ++s) {
    const Vector write = broadcast(B[s]), read = broadcast(C[s]);
    Row for_B, for_C;  // folded here: storing all of them would take longer than the rest of this loop
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) {
      const int c = v * VECTOR_WIDTH;
      const Vector d = fma(dy[v], read, load(r.dh[s].at + c));
      const Vector passed = d * load(decays[s].at + c);
      const Vector slope = passed * load(before[s].at + c);
      store(r.dh[s].at + c, passed);
      store(r.dA[s].at + c, fma(slope, step[v], load(r.dA[s].at + c)));
      store(for_B.at + c, d * input[v]);
      store(for_C.at + c, dy[v] * load(after[s].at + c));
      input_sum[v] = fma(d, write, input_sum[v]);
      rate_sum[v] = fma(slope, load(rates[s].at + c), rate_sum[v]);
    }
    fold_to_quad(quads + 4 * s, for_B.at);
    fold_to_quad(quads + 4 * (S + s), for_C.at);
  }
  for (int v = 0; v < VECTORS; ++v) {
    store(dinput.at + v * VECTOR_WIDTH, input_sum[v]);
    store(dstep_of_decay.at + v * VECTOR_WIDTH, rate_sum[v]);
  }
}

// Replaces dinput by du and dstep_of_decay by dpre_step at position i of the segment; adds to dD. The factor ln 2
// cancels the log₂e in the rates.
void finish_position(GroupBackward& r, Row& dinput, Row& dstep_of_decay, const Row& skip, int i) {
  const Row &u = r.in.u[i], &pre_step = r.in.pre_step[i], &step = r.in.step[i], &dy = r.dy[i];
#pragma omp simd
  for (int c = 0; c < GROUP; ++c) {
    const real dstep = numerics::fma(u.at[c], dinput.at[c], dstep_of_decay.at[c] * LN2);
    dinput.at[c] = numerics::fma(step.at[c], dinput.at[c], skip.at[c] * dy.at[c]);
    dstep_of_decay.at[c] = dstep * numerics::sigmoid(pre_step.at[c]);
    r.dD.at[c] = numerics::fma(dy.at[c], u.at[c], r.dD.at[c]);
  }
}

// For the channels of a group: dA_log += A Σ_b and dD += Σ_b of the samples' sums (B,S+1,I)
void add_samples(real* dA_log, real* dD, const real* sums, const real* A_log, const Group& g) {
  const int S = g.shape.states;
  for (int64_t s = 0; s <= S; ++s) {
    Row total = {};
    for (int64_t b = 0; b < g.shape.batch; ++b) {
      const real* part = sums + g.row(b * (S + 1) + s);
      for (int c = 0; c < g.count; ++c) total.at[c] += part[c];
    }
    for (int64_t c = 0; c < g.count; ++c) {
      const int64_t i = (g.first + c) * S + s;
      if (s == S)
        dD[g.first + c] += total.at[c];
      else
        dA_log[i] = numerics::fma(-numerics::exp(A_log[i]), total.at[c], dA_log[i]);
    }
  }
}

// dB and dC of row n, the sums over groups of its partial sums (groups,2S)
void add_groups(real* dB, real* dC, const real* sums, int64_t n, const ScanShape& shape) {
  const int S = shape.states;
  dB += n * shape.row;
  dC += n * shape.row;
  std::fill_n(dB, S, real(0));
  std::fill_n(dC, S, real(0));
  for (int64_t group = n * shape.groups(); group < (n + 1) * shape.groups(); ++group) {
    const real* part = sums + group * 2 * S;
    for (int s = 0; s < S; ++s) dB[s] += part[s];
    for (int s = 0; s < S; ++s) dC[s] += part[S + s];
  }
}

}  // namespace

void Cpu::selective_scan_backward(real* du, real* dpre_step, real* dA_log, real* dB, real* dC, real* dD, real* partial,
                                  const real* dy, const real* saved, const real* u, const real* pre_step,
                                  const real* A_log, const real* B, const real* C, const real* D,
                                  const ScanShape& shape) {
  const int S = shape.states;
  const int64_t table = static_cast<int64_t>(shape.groups()) * S;
  real *const group_sums = partial, *const sample_sums = partial + shape.group_sums_size();
  reserve_scratch((table + GroupBackward::rows(S)) * GROUP);
  Row* const all_rates = rows(scratch(0));
  fill_rates(all_rates, A_log, shape);
  const int64_t last = static_cast<int64_t>(shape.batch) * shape.groups() - 1;
  parallel(threads_, last + 1, 1, shape.rows() * shape.channels * S * 2 * PASS, [&](int64_t task, int64_t, int thread) {
    const Group g(shape, task), next_group(shape, std::min(task + 1, last));
    const Row* rates = all_rates + g.index * S;
    GroupBackward r(rows(scratch(thread)) + table, S);
    Row skip, dinput, dstep_of_decay;
    read_row(skip, D + g.first, g.count);
    for (int segment = shape.segments(); segment-- > 0;) {
      const int64_t first = static_cast<int64_t>(segment) * SEGMENT;
      const int length = shape.segment_length(segment);
      const NextSegment next =
          segment > 0 ? NextSegment(g, segment - 1) : NextSegment(next_group, shape.segments() - 1);
      read_states(r.states, saved, (g.sample * shape.segments() + segment) * S, g);
      r.in.read(u, pre_step, first, length, g);
      for (int i = 0; i < length; ++i) read_row(r.dy[i], dy + g.position(first + i), g.count);
      recompute(r, rates, B, first, length, g);
      for (int i = length; i-- > 0;) {
        next.prefetch(u, i);
        next.prefetch(pre_step, i);
        next.prefetch(dy, i);
        step_back(r, dinput, dstep_of_decay, rates, i, B + g.mixed(first + i), C + g.mixed(first + i), S);
        finish_position(r, dinput, dstep_of_decay, skip, i);
        write_row(du + g.position(first + i), dinput, g.count);
        write_row(dpre_step + g.position(first + i), dstep_of_decay, g.count);
      }
      for (int i = 0; i < length; ++i) fold_quads(group_sums + g.sums(first + i), r.quads + i * 2 * S * 4, 2 * S);
    }
    write_states(sample_sums, r.dA, g.sample * (S + 1), g);
    write_row(sample_sums + g.row(g.sample * (S + 1) + S), r.dD, g.count);
  });
  parallel(threads_, shape.groups(), 1, int64_t{1} * shape.batch * shape.channels * S * PASS,
           [&](int64_t group, int64_t, int) { add_samples(dA_log, dD, sample_sums, A_log, Group(shape, group)); });
  parallel_rows(threads_, shape.rows(), 64, shape.group_sums_size() * PASS,
                [&](int64_t n, int) { add_groups(dB, dC, group_sums, n, shape); });
}

}  // namespace petroglyph
