// The relation in linear time. The derivation stands in models/linear_causal_rn.cpp.
//
// Positions pass one after another, the channels of each side by side in vectors, so that all arrays are read and written
// once and in order, beside a few rows that stay in the cache. Where there are too few samples to keep the threads busy, chunks
// of positions are worked on at the same time: first what each has by itself, then, briefly, what passes from chunk to chunk,
// then what needs that. The order of every sum is the same either way.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/parallel.h"

namespace petroglyph {

namespace {

using numerics::abs;
using numerics::exp;
using numerics::fma;

constexpr int CHUNK_LENGTH = LinearRelationShape::CHUNK;

// Whether each thread takes whole samples, which saves a pass over p: with many of them, or the same number for every
// thread, none waits long for another. Where not causal the sum must be complete before the first position needs it.
bool whole_samples(const LinearRelationShape& shape, int threads) {
  return shape.causal && (shape.chunks() == 1 || shape.batch % threads == 0 || shape.batch > 3 * threads);
}

// ---- Sums of exponentials -------------------------------------------------------------------------------------------
// For each channel m (H), the largest p_i, and behind it s (H) = Σ exp(p_i − m).

// (m, s) + (later_m, later_s)
inline void add_pair(real& m, real& s, real later_m, real later_s) {
  const real above = later_m - m;
  const real e = exp(-abs(above));
  s = above > 0 ? fma(s, e, later_s) : fma(later_s, e, s);
  m = above > 0 ? later_m : m;
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

// A chunk's sum takes in the position at this place of the chunk.
void add_position(real* sum, const real* p, int place, int H) {
  if (place == 0) {
    std::copy_n(p, H, sum);
    std::fill_n(sum + H, H, real(1));
    return;
  }
#pragma omp simd
  for (int c = 0; c < H; ++c) add_pair(sum[c], sum[H + c], p[c], real(1));
}

// The same; returns the sum of all positions so far, of the earlier chunks (null: none) and of this one.
const real* advance(real* chunk, real* total, const real* earlier, const real* p, int place, int H) {
  add_position(chunk, p, place, H);
  if (!earlier) return chunk;
  add_sums(total, earlier, chunk, H);
  return total;
}

// z_j and shift_j from the sum of the positions that j sees
void relate(real* z, real* shift, const real* sum, const real* q, int visible, int H) {
  const real off = shift ? max_lanes(H, [&](int64_t c) { return q[c] + sum[c]; }) : 0;
  if (shift) *shift = off;
  const real mean = 1 / static_cast<real>(visible);
#pragma omp simd
  for (int c = 0; c < H; ++c) z[c] = exp(q[c] + sum[c] - off) * sum[H + c] * mean;
}

// ---- Forward ------------------------------------------------------------------------------------------------------

// One sample's rows and the sums of its chunks.
struct Forward {
  const LinearRelationShape& shape;
  real *z, *shift, *sums;
  const real *p, *q;

  Forward sample(int64_t b) const {
    const int64_t row = b * shape.positions, H = shape.hidden;
    return {shape, z + row * H, shift ? shift + row : nullptr, sums + b * shape.chunks() * 2 * H, p + row * H, q + row * H};
  }
  real* sum(int64_t chunk) const { return sums + chunk * 2 * shape.hidden; }
  void relate(int64_t j, const real* sum) const {
    const int H = shape.hidden;
    petroglyph::relate(z + j * H, shift ? shift + j : nullptr, sum, q + j * H, shape.visible(static_cast<int>(j)), H);
  }
};

// A chunk's positions, after the chunks before it; returns the sum of all of them. scratch: 4H
const real* relate_chunk(const Forward& f, int k, real* scratch) {
  const int H = f.shape.hidden, begin = f.shape.begin(k);
  const real *earlier = k > 0 ? f.sum(k - 1) : nullptr, *sum = nullptr;
  for (int64_t j = begin; j < f.shape.end(k); ++j) {
    sum = advance(scratch, scratch + 2 * H, earlier, f.p + j * H, static_cast<int>(j) - begin, H);
    f.relate(j, sum);
  }
  return sum;
}

// The newest positions of a stream. state: the sum of its whole chunks, then that of the positions since. scratch: 2H
void relate_stream(const Forward& f, real* state, real* scratch) {
  const int H = f.shape.hidden;
  real *earlier = state, *chunk = state + 2 * H;
  for (int64_t j = 0; j < f.shape.positions; ++j) {
    const int position = f.shape.before + static_cast<int>(j), place = position % CHUNK_LENGTH;
    const real* sum = advance(chunk, scratch, position < CHUNK_LENGTH ? nullptr : earlier, f.p + j * H, place, H);
    f.relate(j, sum);
    if (place == CHUNK_LENGTH - 1) std::copy_n(sum, 2 * H, earlier);
  }
}

}  // namespace

void Cpu::linear_relation(real* z, real* shift, real* sums, real* state, const real* p, const real* q,
                          const LinearRelationShape& shape) {
  const int H = shape.hidden, K = shape.chunks();
  const Forward all{shape, z, shift, sums, p, q};
  reserve_scratch(4 * H);
  if (!sums) {
    parallel(threads_, shape.batch, 1, [&](int64_t b, int64_t, int thread) {
      relate_stream(all.sample(b), state + b * 4 * H, scratch(thread));
    });
    return;
  }
  if (whole_samples(shape, threads_)) {
    parallel(threads_, shape.batch, 1, [&](int64_t b, int64_t, int thread) {
      const Forward f = all.sample(b);
      for (int k = 0; k < K; ++k) std::copy_n(relate_chunk(f, k, scratch(thread)), 2 * H, f.sum(k));
    });
    return;
  }
  const auto chunks_of_samples = [&](auto f) {
    parallel(threads_, static_cast<int64_t>(shape.batch) * K, 1, [&](int64_t task, int64_t, int thread) {
      f(all.sample(task / K), static_cast<int>(task % K), thread);
    });
  };
  chunks_of_samples([&](const Forward& f, int k, int) {
    for (int64_t j = shape.begin(k); j < shape.end(k); ++j)
      add_position(f.sum(k), f.p + j * H, static_cast<int>(j) - shape.begin(k), H);
  });
  parallel(threads_, shape.batch, 1, [&](int64_t b, int64_t, int) {
    const Forward f = all.sample(b);
    for (int k = 1; k < K; ++k) add_sums(f.sum(k), f.sum(k - 1), f.sum(k), H);
  });
  chunks_of_samples([&](const Forward& f, int k, int thread) {
    if (shape.causal) return void(relate_chunk(f, k, scratch(thread)));
    for (int64_t j = shape.begin(k); j < shape.end(k); ++j) f.relate(j, f.sum(K - 1));
  });
}

// ---- Backward -----------------------------------------------------------------------------------------------------

namespace {

// One sample's rows, the sums of its chunks, and what passes between these on the way back.
struct Backward {
  const LinearRelationShape& shape;
  real *dp, *dq, *later_sums;
  const real *dz, *shift, *sums, *p, *q;

  Backward sample(int64_t b) const {
    const int64_t row = b * shape.positions, chunk = b * shape.chunks(), H = shape.hidden;
    return {shape, dp + row * H, dq + row * H, later_sums + chunk * H, dz + row * H, shift ? shift + row : nullptr,
            sums + chunk * 2 * H, p + row * H, q + row * H};
  }
  const real* sum(int64_t chunk) const { return sums + chunk * 2 * shape.hidden; }
  const real* earlier(int64_t chunk) const { return chunk > 0 ? sum(chunk - 1) : nullptr; }
  real* later(int64_t chunk) const { return later_sums + chunk * shape.hidden; }
};

// dq_j, and g_j into dp_j, for the sum that z_j was made of
void scale_gradient(const Backward& b, int64_t j, const real* sum) {
  const int H = b.shape.hidden;
  const real *dz = b.dz + j * H, *q = b.q + j * H;
  real *g = b.dp + j * H, *dq = b.dq + j * H;
  const real off = b.shift ? b.shift[j] : 0, mean = 1 / static_cast<real>(b.shape.visible(static_cast<int>(j)));
#pragma omp simd
  for (int c = 0; c < H; ++c) {
    const real gradient = dz[c] * exp(q[c] + sum[c] - off) * mean;
    g[c] = gradient;
    dq[c] = gradient * sum[H + c];
  }
}

// a, the chunk's sum of the later g at m_i, takes in g_i; dp_i, in g_i's place, is a·exp(p_i − m_i); a goes on to m_{i−1}.
void step_back(real* dp, real* a, const real* p, const real* m_before, int H) {
#pragma omp simd
  for (int c = 0; c < H; ++c) {
    const real above = p[c] - m_before[c];  // if positive, p_i is m_i
    const real e = exp(-abs(above));
    const real sum = a[c] + dp[c], scaled = sum * e;
    dp[c] = above > 0 ? sum : scaled;
    a[c] = above > 0 ? scaled : sum;
  }
}

// dq of a chunk's positions, and dp as far as it comes from the chunk itself. later(k) gets the chunk's sum of g, at the m of
// the sum before it. scratch: (CHUNK_LENGTH + 5)·H
void chunk_backward(const Backward& b, int k, real* scratch) {
  const int H = b.shape.hidden, begin = b.shape.begin(k), end = b.shape.end(k);
  real* m = scratch + 4 * H;  // (CHUNK_LENGTH + 1,H): before each position
  std::copy_n(k > 0 ? b.earlier(k) : b.p, H, m);
  for (int64_t j = begin; j < end; ++j) {
    const real* sum = advance(scratch, scratch + 2 * H, b.earlier(k), b.p + j * H, static_cast<int>(j) - begin, H);
    scale_gradient(b, j, sum);
    std::copy_n(sum, H, m + (j + 1 - begin) * H);
  }
  std::fill_n(b.later(k), H, real(0));
  for (int64_t j = end - 1; j >= begin; --j) step_back(b.dp + j * H, b.later(k), b.p + j * H, m + (j - begin) * H, H);
}

// passed: the sum of g of the chunks after k, at the m after k. It becomes later(k), and goes on with k's own.
void pass_back(const Backward& b, int k, real* passed) {
  const int H = b.shape.hidden;
  real* later = b.later(k);
  for (int c = 0; c < H; ++c) {
    const real own = later[c];
    later[c] = passed[c];
    if (k > 0) passed[c] = fma(passed[c], exp(b.earlier(k)[c] - b.sum(k)[c]), own);
  }
}

// dp_i += later·exp(p_i − m)
void add_later(const Backward& b, int k, const real* later, const real* m) {
  const int H = b.shape.hidden;
  for (int64_t j = b.shape.begin(k); j < b.shape.end(k); ++j) {
    const real* p = b.p + j * H;
    real* dp = b.dp + j * H;
#pragma omp simd
    for (int c = 0; c < H; ++c) dp[c] = fma(later[c], exp(p[c] - m[c]), dp[c]);
  }
}

// Not causal: dq of a chunk's positions, and the chunk's sum of g, all of them at the one m. dp starts from zero.
void chunk_backward_of_all(const Backward& b, int k) {
  const int H = b.shape.hidden;
  real* sum = b.later(k);
  std::fill_n(sum, H, real(0));
  for (int64_t j = b.shape.begin(k); j < b.shape.end(k); ++j) {
    real* g = b.dp + j * H;
    scale_gradient(b, j, b.sum(b.shape.chunks() - 1));
    for (int c = 0; c < H; ++c) sum[c] += g[c];
    std::fill_n(g, H, real(0));
  }
}

}  // namespace

void Cpu::linear_relation_backward(real* dp, real* dq, real* later, const real* dz, const real* shift, const real* sums,
                                   const real* p, const real* q, const LinearRelationShape& shape) {
  const int H = shape.hidden, K = shape.chunks();
  const Backward all{shape, dp, dq, later, dz, shift, sums, p, q};
  reserve_scratch((CHUNK_LENGTH + 6) * static_cast<int64_t>(H));
  if (whole_samples(shape, threads_)) {
    parallel(threads_, shape.batch, 1, [&](int64_t number, int64_t, int thread) {
      const Backward b = all.sample(number);
      real* passed = scratch(thread) + (CHUNK_LENGTH + 5) * static_cast<int64_t>(H);
      std::fill_n(passed, H, real(0));
      for (int k = K - 1; k >= 0; --k) {
        chunk_backward(b, k, scratch(thread));
        pass_back(b, k, passed);
        if (k < K - 1) add_later(b, k, b.later(k), b.sum(k));
      }
    });
    return;
  }
  const auto chunks_of_samples = [&](auto f) {
    parallel(threads_, static_cast<int64_t>(shape.batch) * K, 1, [&](int64_t task, int64_t, int thread) {
      f(all.sample(task / K), static_cast<int>(task % K), thread);
    });
  };
  chunks_of_samples([&](const Backward& b, int k, int thread) {
    if (shape.causal) return chunk_backward(b, k, scratch(thread));
    chunk_backward_of_all(b, k);
  });
  parallel(threads_, shape.batch, 1, [&](int64_t number, int64_t, int thread) {
    const Backward b = all.sample(number);
    std::fill_n(scratch(thread), H, real(0));
    if (shape.causal)
      for (int k = K - 1; k >= 0; --k) pass_back(b, k, scratch(thread));
    else
      for (int k = 1; k < K; ++k)
        for (int c = 0; c < H; ++c) b.later(0)[c] += b.later(k)[c];
  });
  chunks_of_samples([&](const Backward& b, int k, int) {
    if (!shape.causal)
      add_later(b, k, b.later(0), b.sum(K - 1));
    else if (k < K - 1)
      add_later(b, k, b.later(k), b.sum(k));
  });
}

}  // namespace petroglyph
