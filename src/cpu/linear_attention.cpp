// Attention without a softmax: y (B,T,H) from qkv (B,T,3H), in heads of d channels. Each chunk of positions reads the
// state (d,d) of the chunks before it. The formulas and the order of every sum are in the catalogue, the derivation in
// models/linear_transformer.cpp, the loops that define it in reference/linear_attention.cpp.
//
// If there are enough heads and samples for all threads, a task is one head of one sample and processes its chunks one
// after another. Otherwise the states are computed first, by tasks for some rows of a state, and then all chunks at the
// same time.
//
// Within a chunk, as in softmax attention, the products (ROWS, keys) of ROWS queries with keys are in the thread's
// scratch. Keys that no query of the ROWS sees are skipped. A pair that is not seen has a zero: a zero term does not
// change a chain.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/loops.h"
#include "cpu/product.h"
#include "cpu/scratch.h"

namespace petroglyph {

namespace {

using numerics::fma;

constexpr int CHUNK_LENGTH = LinearAttentionShape::CHUNK;
constexpr int ROWS = FEW_ROWS;  // queries, or in the backward pass keys, of one product

// Rows of d numbers, one for each position.
template <class Real>
struct Rows {
  Real* data;
  int64_t step;

  Real* row(int64_t t) const { return data + t * step; }
  Rows from(int64_t t) const { return {row(t), step}; }
  View view() const { return {data, step, 1}; }
  View transposed() const { return {data, 1, step}; }
};
using Read = Rows<const real>;
using Write = Rows<real>;

Read read(const Write& rows) { return {rows.data, rows.step}; }

// The addresses of one head of one sample in the arrays.
struct Head {
  const LinearAttentionShape& shape;
  int64_t number, in, out;

  Head(const LinearAttentionShape& s, int64_t n) : shape(s), number(n) {
    const int64_t sample = n / s.heads, index = n % s.heads;
    in = sample * s.positions * 3 * s.width() + index * s.head_width;
    out = sample * s.positions * s.width() + index * s.head_width;
  }
  // part 0: q, 1: k, 2: v
  template <class Real>
  Rows<Real> of_input(Real* qkv, int part) const {
    return {qkv + in + part * shape.width(), 3 * shape.width()};
  }
  template <class Real>
  Rows<Real> of_output(Real* y) const {
    return {y + out, shape.width()};
  }
  template <class Real>
  Real* of_rows(Real* x) const {
    return x + number * shape.positions;
  }
  // This head's state of the chunks before a chunk, and of those up to and including it; null: there is none.
  template <class Real>
  Real* before(Real* states, int chunk) const {
    return shape.causal ? state(states, chunk - 1) : state(states, 0);
  }
  template <class Real>
  Real* after(Real* states, int chunk) const {
    return shape.causal ? state(states, chunk) : state(states, 0);
  }

 private:
  template <class Real>
  Real* state(Real* states, int n) const {
    return n < 0 || n >= shape.states() ? nullptr : states + (number * shape.states() + n) * shape.state_size();
  }
};

// ---- States ---------------------------------------------------------------------------------------------------------

// Rows begin … end−1 of state: S = before + Σ_t x_t ⊗ w_t over `count` positions, and z = before + Σ_t c_t x_t (c null:
// c_t = 1). before: null for the first terms, which start from zero. scratch: state_scratch() numbers
void add_to_state(real* state, const real* before, const Read& x, const Read& w, const real* c, int count, int begin,
                  int end, const LinearAttentionShape& shape, real* scratch) {
  const int d = shape.head_width;
  Parts parts(scratch);
  const Packed packed = pack(parts.take(packed_size(count, d)), w.view(), count, d);
  real* const rows = state + static_cast<int64_t>(begin) * d;
  const bool copied = before && before != state;
  if (copied) std::copy_n(before + static_cast<int64_t>(begin) * d, static_cast<int64_t>(end - begin) * d, rows);
  multiply_transposed(
      {rows, d, Read{x.data + begin, x.step}.transposed(), {}, end - begin, d, count, before ? Into::ADD : Into::WRITE},
      packed, parts.take(packed_rows_size(end - begin, count)));
  if (!shape.normalized) return;
  real *const z = state + static_cast<int64_t>(d) * d, *const sum = parts.take(d);
  std::fill(sum + begin, sum + end, real(0));
  for (int t = 0; t < count; ++t)
    for (int i = begin; i < end; ++i) sum[i] = c ? fma(c[t], x.row(t)[i], sum[i]) : sum[i] + x.row(t)[i];
  for (int i = begin; i < end; ++i) z[i] = (before ? before[d * static_cast<int64_t>(d) + i] : 0) + sum[i];
}

int64_t state_scratch(const LinearAttentionShape& s) {
  const int d = s.head_width;
  return packed_size(CHUNK_LENGTH, d) + packed_rows_size(d, CHUNK_LENGTH) + d + 48;
}

int64_t work_of(const LinearAttentionShape& s) {
  return static_cast<int64_t>(s.batch) * s.positions * s.heads * s.head_width * (s.head_width + CHUNK_LENGTH);
}

// For every chunk k of every head calls prepare(head, k, thread), then add(head, k, begin, end, thread), which adds the
// chunk to rows begin … end−1 of the state, and finish(head, k, thread), which reads the state. finish() is called when
// the state contains all chunks or, if causal, those before k. The order of chunks is ascending, or descending from the
// last one. If causal, the last chunk in this order is not added, because no chunk reads it.
template <class Prepare, class Add, class Finish>
void for_chunks(const Threads& threads, const LinearAttentionShape& s, bool descending, Prepare prepare, Add add,
                Finish finish, const char* caller = __builtin_FUNCTION()) {
  const int K = s.chunks(), added = s.causal ? K - 1 : K, d = s.head_width;
  const int64_t heads = static_cast<int64_t>(s.batch) * s.heads;
  const auto chunk = [=](int64_t n) { return static_cast<int>(descending ? K - 1 - n : n); };
  const auto for_all = [&](auto f) {
    parallel(
        threads, heads * K, 1, work_of(s),
        [&](int64_t task, int64_t, int thread) { f(Head(s, task / K), static_cast<int>(task % K), thread); }, caller);
  };
  const int64_t wanted = (2 * threads.count + heads - 1) / heads;
  const int rows = static_cast<int>(round_up((d + wanted - 1) / wanted, ROWS)), parts = (d + rows - 1) / rows;
  const auto add_rows = [&](int64_t task, int64_t, int thread) {
    const int begin = static_cast<int>(task % parts) * rows;
    for (int n = 0; n < added; ++n) add(Head(s, task / parts), chunk(n), begin, std::min(begin + rows, d), thread);
  };
  for_all(prepare);
  parallel(threads, heads * parts, 1, work_of(s), add_rows, caller);
  for_all(finish);
}

// ---- Forward --------------------------------------------------------------------------------------------------------

// One chunk. Its queries are at the last positions of its keys.
struct Chunk {
  Read q, k, v;
  int queries, keys;
  const real* state;  // the state before the chunk, or null

  int visible(int query) const { return keys - queries + query + 1; }
};

// y = q S, and sums = q·z if normalized: what the queries read from the state of earlier chunks
void read_state(const Chunk& c, const Write& y, real* sums, const LinearAttentionShape& shape, Parts& parts) {
  const int d = shape.head_width;
  if (c.state) {
    const Packed S = pack(parts.take(packed_size(d, d)), {c.state, d, 1}, d, d);
    multiply({y.data, y.step, c.q.view(), {}, c.queries, d, d, Into::WRITE}, S);
  }
  if (!shape.normalized) return;
  for (int t = 0; t < c.queries; ++t) sums[t] = c.state ? dot(c.state + static_cast<int64_t>(d) * d, c.q.row(t), d) : 0;
}

// Adds to y and sums what the queries read from the keys of their own chunk.
void read_chunk(const Chunk& c, const Write& y, real* sums, const LinearAttentionShape& shape, Parts& parts) {
  const int d = shape.head_width;
  const int64_t step = row_step(c.keys);
  const Packed keys = pack(parts.take(packed_size(d, c.keys)), c.k.transposed(), d, c.keys);
  const Packed values = pack(parts.take(packed_size(c.keys, d)), c.v.view(), c.keys, d);
  real* const products = parts.take(ROWS * step);
  for (int first = 0; first < c.queries; first += ROWS) {
    const int rows = std::min(ROWS, c.queries - first), seen = c.visible(first + rows - 1);
    multiply({products, step, c.q.from(first).view(), {}, rows, seen, d, Into::WRITE}, keys);
    for (int i = 0; i < rows; ++i) {
      real* const row = products + i * step;
      const int64_t visible = c.visible(first + i), lanes = round_up(seen, LANES);  // zeros do not change a lane either
      std::fill(row + visible, row + lanes, real(0));
      if (shape.normalized) sums[first + i] += sum_lanes(lanes, [&](real sum, int64_t s) { return sum + row[s]; });
    }
    multiply({y.row(first), y.step, {products, step, 1}, {}, rows, d, seen, c.state ? Into::ADD : Into::WRITE}, values);
  }
}

// y of the chunk's queries. inv_sum (queries) out, or null
void attend(const Chunk& c, const Write& y, real* inv_sum, const LinearAttentionShape& shape, real* scratch) {
  Parts parts(scratch);
  read_state(c, y, inv_sum, shape, parts);
  if (shape.causal) read_chunk(c, y, inv_sum, shape, parts);
  if (!shape.normalized) return;
  for (int t = 0; t < c.queries; ++t) {
    inv_sum[t] = 1 / inv_sum[t];
    for (int i = 0; i < shape.head_width; ++i) y.row(t)[i] *= inv_sum[t];
  }
}

int64_t attend_scratch(const LinearAttentionShape& s) {
  const int d = s.head_width;
  return packed_size(d, d) + packed_size(d, CHUNK_LENGTH) + packed_size(CHUNK_LENGTH, d) +
         ROWS * row_step(CHUNK_LENGTH) + 64;
}

// Replaces q and k of the positions begin … end−1 by φ(q) and φ(k). A NaN remains a NaN.
void map_features(const Head& head, real* qkv, int begin, int end) {
  if (head.shape.feature_map == FeatureMap::IDENTITY) return;
  for (int part = 0; part < 2; ++part)
    for (int t = begin; t < end; ++t) {
      real* const x = head.of_input(qkv, part).row(t);
#pragma omp simd
      for (int i = 0; i < head.shape.head_width; ++i) {
        const real e = numerics::exp_nonpositive(numerics::min(real(0), x[i]));
        x[i] = x[i] > 0 ? x[i] + 1 : e;
      }
    }
}

// Decoding: y of the newest positions, at most up to the end of a chunk at a time. state: the sums of all complete
// chunks, then k and v (CHUNK_LENGTH,d) of the incomplete chunk.
void decode(real* y, real* inv_sum, real* state, const real* qkv, const Head& head, real* scratch) {
  const LinearAttentionShape& s = head.shape;
  const int d = s.head_width;
  const Write k{state + s.state_size(), d}, v{k.row(CHUNK_LENGTH), d};
  const Read q = head.of_input(qkv, 0), new_k = head.of_input(qkv, 1), new_v = head.of_input(qkv, 2);
  const Write out = head.of_output(y);
  for (int done = 0; done < s.positions;) {
    const int position = s.before + done, place = position % CHUNK_LENGTH;
    const int count = std::min(CHUNK_LENGTH - place, s.positions - done);
    for (int t = 0; t < count; ++t) {
      std::copy_n(new_k.row(done + t), d, k.row(place + t));
      std::copy_n(new_v.row(done + t), d, v.row(place + t));
    }
    const real* before = position < CHUNK_LENGTH ? nullptr : state;
    attend({q.from(done), read(k), read(v), count, place + count, before}, out.from(done),
           inv_sum ? head.of_rows(inv_sum) + done : nullptr, s, scratch);
    if (place + count == CHUNK_LENGTH)
      add_to_state(state, before, read(k), read(v), nullptr, CHUNK_LENGTH, 0, d, s, scratch);
    done += count;
  }
}

}  // namespace

void Cpu::linear_attention(real* y, real* inv_sum, real* states, real* state, real* qkv,
                           const LinearAttentionShape& shape) {
  reserve_scratch(std::max(state_scratch(shape), attend_scratch(shape)));
  if (state) {
    parallel(threads_, static_cast<int64_t>(shape.batch) * shape.heads, 1, work_of(shape),
             [&](int64_t n, int64_t, int thread) {
               const Head head(shape, n);
               map_features(head, qkv, 0, shape.positions);
               decode(y, inv_sum, state + n * shape.decoder_state_size(), qkv, head, scratch(thread));
             });
    return;
  }
  for_chunks(
      threads_, shape, false,
      [&](const Head& head, int k, int) { map_features(head, qkv, shape.begin(k), shape.end(k)); },
      [&](const Head& head, int k, int begin, int end, int thread) {
        const int first = shape.begin(k);
        add_to_state(head.after(states, k), k > 0 ? head.after(states, k - 1) : nullptr,
                     head.of_input<const real>(qkv, 1).from(first), head.of_input<const real>(qkv, 2).from(first),
                     nullptr, shape.end(k) - first, begin, end, shape, scratch(thread));
      },
      [&](const Head& head, int k, int thread) {
        const int begin = shape.begin(k), count = shape.end(k) - begin;
        const auto input = [&](int part) { return head.of_input<const real>(qkv, part).from(begin); };
        attend({input(0), input(1), input(2), count, count, head.before(states, k)}, head.of_output(y).from(begin),
               inv_sum ? head.of_rows(inv_sum) + begin : nullptr, shape, scratch(thread));
      });
}

// ---- Backward -------------------------------------------------------------------------------------------------------

namespace {

// Replaces dy by g = dy · inv_sum and inv_sum by c = −g·y.
void scale_gradient(const Write& dy, const Read& y, real* inv_sum, int begin, int end, int d) {
  for (int t = begin; t < end; ++t) {
    real* const g = dy.row(t);
    for (int i = 0; i < d; ++i) g[i] *= inv_sum[t];
    inv_sum[t] = -dot(g, y.row(t), d);
  }
}

void map_features_backward(const Write& dx, const Read& phi, int length, const LinearAttentionShape& shape) {
  if (shape.feature_map == FeatureMap::IDENTITY) return;
  for (int t = 0; t < length; ++t)
    for (int i = 0; i < shape.head_width; ++i) dx.row(t)[i] *= numerics::min(real(1), phi.row(t)[i]);
}

// A chunk in which all positions are queries and keys, and its gradients.
struct ChunkGradient {
  Write dq, dk, dv;
  Read q, k, v, g;
  const real* c;  // (length), or null
  int length;
  const real* before;  // S and z of the earlier chunks, or null
  const real* after;   // L and h of the later chunks, or null
};

void read_states_backward(const ChunkGradient& x, const LinearAttentionShape& shape, Parts parts) {
  const int d = shape.head_width, n = x.length;
  real* const packed = parts.take(packed_size(d, d));
  if (x.before) {
    multiply({x.dq.data, x.dq.step, x.g.view(), {}, n, d, d, Into::WRITE}, pack(packed, {x.before, 1, d}, d, d));
    const real* z = x.before + static_cast<int64_t>(d) * d;
    for (int t = 0; x.c && t < n; ++t)
      for (int i = 0; i < d; ++i) x.dq.row(t)[i] = fma(x.c[t], z[i], x.dq.row(t)[i]);
  }
  if (x.after) {
    const real* h = x.c ? x.after + static_cast<int64_t>(d) * d : nullptr;
    multiply({x.dk.data, x.dk.step, x.v.view(), {}, n, d, d, Into::WRITE, h}, pack(packed, {x.after, 1, d}, d, d));
    multiply({x.dv.data, x.dv.step, x.k.view(), {}, n, d, d, Into::WRITE}, pack(packed, {x.after, d, 1}, d, d));
  }
}

// Rows first … last of to (n,step): a bᵀ + c for the keys that each query sees, zeros for keys that only other queries
// of the same ROWS see.
void form_pairs(real* to, int64_t step, const Read& a, const Packed& b, const real* c, int first, int last, int d) {
  multiply({to + first * step, step, a.from(first).view(), {}, last - first + 1, last + 1, d, Into::WRITE}, b);
  for (int t = first; t <= last; ++t) {
    real* const row = to + t * step;
    for (int s = 0; c && s <= t; ++s) row[s] += c[t];
    std::fill(row + t + 1, row + last + 1, real(0));
  }
}

void read_chunk_backward(const ChunkGradient& x, const LinearAttentionShape& shape, Parts parts) {
  const int d = shape.head_width, n = x.length;
  const int64_t step = row_step(n);
  const auto packed = [&](View view, int rows, int columns) {
    return pack(parts.take(packed_size(rows, columns)), view, rows, columns);
  };
  const Packed along_k = packed(x.k.transposed(), d, n), along_v = packed(x.v.transposed(), d, n);
  const Packed k = packed(x.k.view(), n, d), q = packed(x.q.view(), n, d), g = packed(x.g.view(), n, d);
  real *const weights = parts.take(n * step), *const gradients = parts.take(n * step);
  for (int first = 0; first < n; first += ROWS) {
    const int last = std::min(first + ROWS, n) - 1;
    form_pairs(weights, step, x.q, along_k, nullptr, first, last, d);
    form_pairs(gradients, step, x.g, along_v, x.c, first, last, d);
    const View ds{gradients + first * step, step, 1};
    const Into into = x.before ? Into::ADD : Into::WRITE;
    multiply({x.dq.row(first), x.dq.step, ds, {}, last - first + 1, d, last + 1, into}, k);
  }
  const Into into = x.after ? Into::ADD : Into::WRITE;
  for (int first = 0; first < n; first += ROWS) {  // first: a key, and the first query that sees it
    const int rows = std::min(ROWS, n - first);
    const int64_t corner = first * step + first;
    multiply({x.dv.row(first), x.dv.step, {weights + corner, 1, step}, {}, rows, d, n - first, into}, g, first);
    multiply({x.dk.row(first), x.dk.step, {gradients + corner, 1, step}, {}, rows, d, n - first, into}, q, first);
  }
}

int64_t chunk_backward_scratch(const LinearAttentionShape& s) {
  const int d = s.head_width;
  return packed_size(d, d) + 2 * packed_size(d, CHUNK_LENGTH) + 3 * packed_size(CHUNK_LENGTH, d) +
         2 * CHUNK_LENGTH * row_step(CHUNK_LENGTH) + 128;
}

}  // namespace

void Cpu::linear_attention_backward(real* dqkv, real* later, real* dy, const real* y, real* inv_sum, const real* states,
                                    const real* qkv, const LinearAttentionShape& shape) {
  reserve_scratch(std::max(state_scratch(shape), chunk_backward_scratch(shape)));
  const int K = shape.chunks();
  const auto c = [&](const Head& head, int t) { return shape.normalized ? head.of_rows(inv_sum) + t : nullptr; };
  for_chunks(
      threads_, shape, shape.causal,
      [&](const Head& head, int k, int) {
        if (shape.normalized)
          scale_gradient(head.of_output(dy), head.of_output(y), head.of_rows(inv_sum), shape.begin(k), shape.end(k),
                         shape.head_width);
      },
      [&](const Head& head, int k, int begin, int end, int thread) {
        const int first = shape.begin(k), earlier = shape.causal ? k + 1 : k - 1;  // the chunk that was added before k
        add_to_state(head.before(later, k), earlier >= 0 && earlier < K ? head.before(later, earlier) : nullptr,
                     head.of_input(qkv, 0).from(first), read(head.of_output(dy).from(first)), c(head, first),
                     shape.end(k) - first, begin, end, shape, scratch(thread));
      },
      [&](const Head& head, int k, int thread) {
        const int begin = shape.begin(k);
        const auto gradient = [&](int part) { return head.of_input(dqkv, part).from(begin); };
        const auto input = [&](int part) { return head.of_input(qkv, part).from(begin); };
        const ChunkGradient x{gradient(0),
                              gradient(1),
                              gradient(2),
                              input(0),
                              input(1),
                              input(2),
                              read(head.of_output(dy).from(begin)),
                              c(head, begin),
                              shape.end(k) - begin,
                              head.before(states, k),
                              head.after(static_cast<const real*>(later), k)};
        read_states_backward(x, shape, Parts(scratch(thread)));
        if (shape.causal) read_chunk_backward(x, shape, Parts(scratch(thread)));
        map_features_backward(x.dq, x.q, x.length, shape);
        map_features_backward(x.dk, x.k, x.length, shape);
      });
}

}  // namespace petroglyph
