// The relation in linear time: z (B,T,H) from p and q (B,T,H), z_j = exp(q_j) Σ_i exp(p_i) / n_j. The derivation is in
// models/linear_causal_rn.cpp, the loops that define it in reference/linear_relation.cpp.
//
// A task processes positions one after another, with the channels in vectors. So it reads and writes all arrays once
// and in order, and the running sums stay in the cache. If there are too few samples for all threads, the chunks of
// positions are processed in parallel in three passes: the sum of each chunk, the sums over chunks (short), then all
// positions. The order of every sum is the same in both cases.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/loops.h"

namespace petroglyph {

namespace {

using numerics::abs;
using numerics::exp_nonpositive;
using numerics::fma;

constexpr int CHUNK_LENGTH = LinearRelationShape::CHUNK;

// Whether a task is a whole sample, which saves one pass. Gain: 5 % of a step of Linear CausalRN at n = 128.
// The number of samples must be large or a multiple of the number of threads, so that no thread waits long for another.
// If not causal, the sum must be complete before the first position reads it.
bool whole_samples(const LinearRelationShape& shape, int threads) {
  return shape.causal && (shape.chunks() == 1 || shape.batch % threads == 0 || shape.batch > 3 * threads);
}

int64_t work_of(const LinearRelationShape& shape) {
  return static_cast<int64_t>(shape.batch) * shape.positions * shape.hidden * FUNCTION;
}

// Calls f(one sample's arrays, chunk, thread) for all chunks of all samples.
template <class Arrays, class F>
void for_chunks(const Threads& threads, const Arrays& all, F f, const char* caller = __builtin_FUNCTION()) {
  const int64_t K = all.shape.chunks();
  const auto call = [&](int64_t task, int64_t, int thread) {
    f(all.sample(task / K), static_cast<int>(task % K), thread);
  };
  parallel(threads, all.shape.batch * K, 1, work_of(all.shape), call, caller);
}

// ---- Sums of exponentials -------------------------------------------------------------------------------------------
// A sum is (2,H): for each channel m, the largest p_i, then s = Σ exp(p_i − m).

// (m, s) += (later_m, later_s). Returns e, the factor that was applied to the s of the smaller m.
inline real add_pair(real& m, real& s, real later_m, real later_s) {
  const real above = later_m - m;
  const real e = exp_nonpositive(-abs(above));
  s = above > 0 ? fma(s, e, later_s) : fma(later_s, e, s);
  m = above > 0 ? later_m : m;
  return e;
}

// The empty sum before p is added: m = p, s = 0
void start_sum(real* sum, const real* p, int H) {
  std::copy_n(p, H, sum);
  std::fill_n(sum + H, H, real(0));
}

void add_position(real* sum, const real* p, int H) {
#pragma omp simd
  for (int c = 0; c < H; ++c) add_pair(sum[c], sum[H + c], p[c], real(1));
}

// total = earlier + later
void add_sums(real* total, const real* earlier, const real* later, int H) {
#pragma omp simd
  for (int c = 0; c < H; ++c) {
    real m = earlier[c], s = earlier[H + c];
    add_pair(m, s, later[c], later[H + c]);
    total[c] = m;
    total[H + c] = s;
  }
}

// ---- Forward ------------------------------------------------------------------------------------------------------

// The rows of one sample, and its sums (chunks,2,H) after each chunk.
struct Forward {
  const LinearRelationShape& shape;
  real *z, *shift, *sums;
  const real *p, *q;

  Forward sample(int64_t b) const {
    const int64_t row = b * shape.positions, H = shape.hidden;
    return {shape,       z + row * H, shift ? shift + row : nullptr, sums ? sums + b * shape.chunks() * 2 * H : nullptr,
            p + row * H, q + row * H};
  }
  real* sum(int64_t chunk) const { return sums + chunk * 2 * shape.hidden; }
  const real* key(int64_t j) const { return p + j * shape.hidden; }
};

// z_j and shift_j from the sum of the positions that j sees
void relate(const Forward& f, int64_t j, const real* sum) {
  const int H = f.shape.hidden;
  const real mean = 1 / static_cast<real>(f.shape.visible(static_cast<int>(j)));
  const real* q = f.q + j * H;
  real* z = f.z + j * H;
  if (!f.shift) {
#pragma omp simd
    for (int c = 0; c < H; ++c) z[c] = numerics::exp(q[c] + sum[c]) * sum[H + c] * mean;
    return;
  }
  const real shift = max_lanes(H, [&](int64_t c) { return q[c] + sum[c]; });
  f.shift[j] = shift;
#pragma omp simd
  for (int c = 0; c < H; ++c) z[c] = exp_nonpositive(q[c] + sum[c] - shift) * sum[H + c] * mean;
}

// All positions of a sample or, in decoding, the newest ones. state (3,2,H): the sum of all positions so far, the sum
// of the incomplete chunk alone, and the sum of the chunks before it.
void relate_sample(const Forward& f, real* state) {
  const int H = f.shape.hidden;
  real *running = state, *own = state + 2 * H, *earlier = state + 4 * H;
  for (int j = 0; j < f.shape.positions; ++j) {
    const int position = f.shape.before + j, place = position % CHUNK_LENGTH;
    const bool first_chunk = position < CHUNK_LENGTH;  // its sum is `running`
    if (position == 0) start_sum(running, f.key(j), H);
    add_position(running, f.key(j), H);
    if (!first_chunk && place == 0) start_sum(own, f.key(j), H);
    if (!first_chunk) add_position(own, f.key(j), H);
    relate(f, j, running);
    if (place + 1 < CHUNK_LENGTH && !(f.sums && j + 1 == f.shape.positions)) continue;
    if (first_chunk)
      std::copy_n(running, 2 * H, earlier);
    else
      add_sums(earlier, earlier, own, H);
    std::copy_n(earlier, 2 * H, running);
    if (f.sums) std::copy_n(earlier, 2 * H, f.sum(position / CHUNK_LENGTH));
  }
}

void sum_chunk(const Forward& f, int k) {
  const int H = f.shape.hidden, begin = f.shape.begin(k);
  start_sum(f.sum(k), f.key(begin), H);
  for (int j = begin; j < f.shape.end(k); ++j) add_position(f.sum(k), f.key(j), H);
}

// z and shift of a chunk's positions, from the sums after all chunks.
void relate_chunk(const Forward& f, int k, real* running) {
  const int H = f.shape.hidden, begin = f.shape.begin(k);
  if (f.shape.causal && k == 0) start_sum(running, f.p, H);
  if (f.shape.causal && k > 0) std::copy_n(f.sum(k - 1), 2 * H, running);
  for (int j = begin; j < f.shape.end(k); ++j) {
    if (f.shape.causal) add_position(running, f.key(j), H);
    relate(f, j, f.shape.causal ? running : f.sum(f.shape.chunks() - 1));
  }
}

}  // namespace

void Cpu::linear_relation(real* z, real* shift, real* sums, real* state, const real* p, const real* q,
                          const LinearRelationShape& shape) {
  const int H = shape.hidden, K = shape.chunks();
  const Forward all{shape, z, shift, sums, p, q};
  reserve_scratch(6 * H);
  if (!sums || whole_samples(shape, threads_.count)) {
    parallel(threads_, shape.batch, 1, work_of(shape), [&](int64_t b, int64_t, int thread) {
      relate_sample(all.sample(b), sums ? scratch(thread) : state + b * 6 * H);
    });
    return;
  }
  for_chunks(threads_, all, [&](const Forward& f, int k, int) { sum_chunk(f, k); });
  parallel(threads_, shape.batch, 1, K * H * FUNCTION * shape.batch, [&](int64_t b, int64_t, int) {
    const Forward f = all.sample(b);
    for (int k = 1; k < K; ++k) add_sums(f.sum(k), f.sum(k - 1), f.sum(k), H);
  });
  for_chunks(threads_, all, [&](const Forward& f, int k, int thread) { relate_chunk(f, k, scratch(thread)); });
}

// ---- Backward -----------------------------------------------------------------------------------------------------

namespace {

// The rows of one sample, its sums after each chunk, and later_sums (chunks,H): the sum of g that later chunks pass
// back to each.
struct Backward {
  const LinearRelationShape& shape;
  real *dp, *dq, *later_sums;
  const real *dz, *shift, *sums, *p, *q;

  Backward sample(int64_t b) const {
    const int64_t row = b * shape.positions, chunk = b * shape.chunks(), H = shape.hidden;
    return {shape,
            dp + row * H,
            dq + row * H,
            later_sums + chunk * H,
            dz + row * H,
            shift ? shift + row : nullptr,
            sums + chunk * 2 * H,
            p + row * H,
            q + row * H};
  }
  const real* sum(int64_t chunk) const { return sums + chunk * 2 * shape.hidden; }
  real* later(int64_t chunk) const { return later_sums + chunk * shape.hidden; }
  const real* key(int64_t j) const { return p + j * shape.hidden; }
};

// dq_j and, in the place of dp_j, g_j. sum: the one from which z_j was computed
void scale_gradient(const Backward& b, int64_t j, const real* sum) {
  const int H = b.shape.hidden;
  const real *dz = b.dz + j * H, *q = b.q + j * H;
  real *g = b.dp + j * H, *dq = b.dq + j * H;
  const real mean = 1 / static_cast<real>(b.shape.visible(static_cast<int>(j)));
  const auto store = [&](int c, real e) {
    const real gradient = dz[c] * e * mean;
    g[c] = gradient;
    dq[c] = gradient * sum[H + c];
  };
  if (!b.shift) {
#pragma omp simd
    for (int c = 0; c < H; ++c) store(c, numerics::exp(q[c] + sum[c]));
    return;
  }
  const real shift = b.shift[j];
#pragma omp simd
  for (int c = 0; c < H; ++c) store(c, exp_nonpositive(q[c] + sum[c] - shift));
}

// Adds a position to the sum. step (H) out: the factor e, with a negative sign where p is the new m
void add_position_and_save(real* sum, real* step, const real* p, int H) {
#pragma omp simd
  for (int c = 0; c < H; ++c) {
    const real before = sum[c];
    const real e = add_pair(sum[c], sum[H + c], p[c], real(1));
    step[c] = p[c] > before ? -e : e;
  }
}

// One position back. a is the sum of the later g, relative to m_i. This adds g_i to a, replaces g_i by dp_i = a·exp(p_i
// − m_i), and makes a relative to m_{i−1}. The same for own, the part of a that comes from this chunk.
void step_back(real* dp, real* a, real* own, const real* step, int H) {
#pragma omp simd
  for (int c = 0; c < H; ++c) {
    const bool grew = step[c] < 0;  // then p_i = m_i > m_{i−1}; otherwise m_i = m_{i−1}
    const real e = abs(step[c]), g = dp[c];
    const real all = a[c] + g, part = own[c] + g;
    dp[c] = grew ? all : all * e;
    a[c] = grew ? all * e : all;
    own[c] = grew ? part * e : part;
  }
}

// dp and dq of a chunk's positions. later (H): the sum that later chunks pass back, relative to the m after the chunk;
// null: zero. own (H) out: the chunk's own part of the sum, relative to the m before the chunk. scratch: (CHUNK_LENGTH
// + 3)·H numbers
void chunk_backward(const Backward& b, int k, const real* later, real* own, real* scratch) {
  const int H = b.shape.hidden, begin = b.shape.begin(k), end = b.shape.end(k);
  real *running = scratch, *a = scratch + 2 * H, *steps = scratch + 3 * H;
  if (k == 0)
    start_sum(running, b.p, H);
  else
    std::copy_n(b.sum(k - 1), 2 * H, running);
  for (int64_t j = begin; j < end; ++j) {
    add_position_and_save(running, steps + (j - begin) * H, b.key(j), H);
    scale_gradient(b, j, running);
  }
  if (later)
    std::copy_n(later, H, a);
  else
    std::fill_n(a, H, real(0));
  std::fill_n(own, H, real(0));
  for (int64_t j = end - 1; j >= begin; --j) step_back(b.dp + j * H, a, own, steps + (j - begin) * H, H);
}

// later(k) contains chunk k's own part of the sum, and `passed` the sum of the later chunks. Stores `passed` in
// later(k), and adds chunk k's own part to `passed`, relative to the m before chunk k.
void pass_back(const Backward& b, int k, real* passed) {
  const int H = b.shape.hidden;
  real* later = b.later(k);
  for (int c = 0; c < H; ++c) {
    const real own = later[c];
    later[c] = passed[c];
    if (k > 0) passed[c] = fma(passed[c], exp_nonpositive(b.sum(k - 1)[c] - b.sum(k)[c]), own);
  }
}

// Not causal: all positions read the same sum, so only Σ g over all positions is needed. Computes dq of a chunk's
// positions, and the chunk's part of Σ g.
void chunk_gradients(const Backward& b, int k) {
  const int H = b.shape.hidden;
  real* sum = b.later(k);
  std::fill_n(sum, H, real(0));
  for (int64_t j = b.shape.begin(k); j < b.shape.end(k); ++j) {
    const real* g = b.dp + j * H;
    scale_gradient(b, j, b.sum(b.shape.chunks() - 1));
    for (int c = 0; c < H; ++c) sum[c] += g[c];
  }
}

// dp_i = Σ g · exp(p_i − m)
void scale_keys(const Backward& b, int k) {
  const int H = b.shape.hidden;
  const real *sum = b.later(0), *m = b.sum(b.shape.chunks() - 1);
  for (int64_t j = b.shape.begin(k); j < b.shape.end(k); ++j) {
    const real* p = b.key(j);
    real* dp = b.dp + j * H;
#pragma omp simd
    for (int c = 0; c < H; ++c) dp[c] = sum[c] * exp_nonpositive(p[c] - m[c]);
  }
}

}  // namespace

void Cpu::linear_relation_backward(real* dp, real* dq, real* later, const real* dz, const real* shift, const real* sums,
                                   const real* p, const real* q, const LinearRelationShape& shape) {
  const int H = shape.hidden, K = shape.chunks();
  const Backward all{shape, dp, dq, later, dz, shift, sums, p, q};
  reserve_scratch((CHUNK_LENGTH + 4) * static_cast<int64_t>(H));
  if (whole_samples(shape, threads_.count)) {
    parallel(threads_, shape.batch, 1, work_of(shape), [&](int64_t sample, int64_t, int thread) {
      const Backward b = all.sample(sample);
      real* passed = scratch(thread);
      std::fill_n(passed, H, real(0));
      for (int k = K - 1; k >= 0; --k) {
        chunk_backward(b, k, passed, b.later(k), passed + H);
        pass_back(b, k, passed);
      }
    });
    return;
  }
  if (!shape.causal) {
    for_chunks(threads_, all, [&](const Backward& b, int k, int) { chunk_gradients(b, k); });
    for (int64_t sample = 0; sample < shape.batch; ++sample)
      for (int k = 1; k < K; ++k)
        for (int c = 0; c < H; ++c) all.sample(sample).later(0)[c] += all.sample(sample).later(k)[c];
    for_chunks(threads_, all, [&](const Backward& b, int k, int) { scale_keys(b, k); });
    return;
  }
  for_chunks(threads_, all,
             [&](const Backward& b, int k, int thread) { chunk_backward(b, k, nullptr, b.later(k), scratch(thread)); });
  parallel(threads_, shape.batch, 1, work_of(shape), [&](int64_t sample, int64_t, int thread) {
    std::fill_n(scratch(thread), H, real(0));
    for (int k = K - 1; k >= 0; --k) pass_back(all.sample(sample), k, scratch(thread));
  });
  for_chunks(threads_, all, [&](const Backward& b, int k, int thread) {
    chunk_backward(b, k, b.later(k), scratch(thread), scratch(thread) + H);
  });
}

}  // namespace petroglyph
