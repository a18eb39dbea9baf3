// Attention without a softmax: the GPU version of cpu/linear_attention.cpp. Derivation: models/linear_transformer.cpp.
//
// All large work is products (product.cuh) of small matrices, run at once for every chunk of every head and sample:
// what chunks add to the states, the pairs within a chunk, and what both add to values or gradients. Between them,
// kernels with one warp per row mask the pairs, divide and add. A kernel with one thread per element accumulates the
// states from chunk to chunk.

#include <algorithm>

#include "gpu/gpu.h"
#include "gpu/product.cuh"

namespace petroglyph {

using product::Along;
using product::Factor;
using product::Sums;
using product::Tile;
using product::Tiling;

namespace {

constexpr int CHUNK_LENGTH = LinearAttentionShape::CHUNK;
constexpr int THREADS = 128;  // of the kernels whose threads are independent

struct Place {
  int64_t sample;
  int head, chunk;
};

// The chunks first … first+count−1 of every head. A chunk has the positions of its keys; its queries are the last of
// these. Usually they are all; when decoding, the first `lead` positions were queries before.
struct Chunks {
  int samples, heads, width, positions, first, count, lead;

  Chunks(const LinearAttentionShape& s, int begin, int end)
      : samples(s.batch),
        heads(s.heads),
        width(s.head_width),
        positions(s.positions),
        first(begin),
        count(end - begin),
        lead(0) {}
  HOST_DEVICE int64_t total() const { return static_cast<int64_t>(samples) * heads * count; }
  int64_t rows() const { return total() * CHUNK_LENGTH; }
  __device__ Place place(int64_t n) const {
    return {n / count / heads, static_cast<int>(n / count % heads), first + static_cast<int>(n % count)};
  }
  __device__ int keys(const Place& p) const { return min(CHUNK_LENGTH, positions - p.chunk * CHUNK_LENGTH); }
  __device__ int queries(const Place& p) const { return keys(p) - lead; }
  __device__ int visible(int query) const { return lead + query + 1; }
};

// One matrix per chunk; rows are `row` numbers apart.
template <class Real>
struct Matrices {
  Real* data;
  int64_t sample, head, chunk;  // distance to the next sample, head, chunk
  int row;

  HOST_DEVICE Real* of(const Place& p) const { return data + p.sample * sample + p.head * head + p.chunk * chunk; }
};
using Read = Matrices<const float>;
using Write = Matrices<float>;

Read read(const Write& m) { return {m.data, m.sample, m.head, m.chunk, m.row}; }

// ---- Products -------------------------------------------------------------------------------------------------------

enum class Side { QUERIES, KEYS, CHANNELS };
// The pairs matrix is half zero. Terms selects the terms of a row of c: all, keys it sees, or later queries.
enum class Terms { ALL, SEEN, LATER };

// In every chunk: c = a b; c += a b with `add`.
template <Along ALONG_A, Along ALONG_B>
struct ChunkProduct {
  static constexpr Along A = ALONG_A, B = ALONG_B;
  Write c;
  Read a, b;
  Chunks chunks;
  Side rows, columns, depth;
  bool add = false;
  Terms terms = Terms::ALL;
  bool bias = false;  // an additional row behind the rows of b is added at the end

  HOST_DEVICE int size(Side side, int queries, int keys) const {
    return side == Side::QUERIES ? queries : side == Side::KEYS ? keys : chunks.width;
  }
  // The tiles of the longest chunk.
  HOST_DEVICE Tiling longest() const {
    const int most = chunks.positions < CHUNK_LENGTH ? chunks.positions : CHUNK_LENGTH;
    return {size(rows, most, most), size(columns, most, most)};
  }
  int64_t blocks() const { return chunks.total() * longest().tiles(); }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    const int64_t tiles = longest().tiles();
    tile.batch = blockIdx.x / tiles;
    const Place p = chunks.place(tile.batch);
    const int queries = chunks.queries(p), keys = chunks.keys(p);
    const Tiling own = {size(rows, queries, keys), size(columns, queries, keys)};
    if (blockIdx.x % tiles >= own.tiles()) return false;
    own.locate(tile, blockIdx.x % tiles, {a.of(p), a.row}, A, {b.of(p), b.row}, B);
    const int K = size(depth, queries, keys), after = static_cast<int>(tile.row) + tile.rows;
    return tile.cut(terms == Terms::LATER ? tile.row : 0, terms == Terms::SEEN ? min(K, chunks.lead + after) : K,
                    chunk);
  }

  __device__ void store(const Tile& tile, const Sums& sum) const {
    const Place p = chunks.place(tile.batch);
    const int width = chunks.width;
    const float* behind = bias && tile.last ? b.of(p) + static_cast<int64_t>(width) * width + tile.column : nullptr;
    product::store_tile(c.of(p) + tile.row * c.row + tile.column, c.row, behind, add || !tile.first, tile, sum);
  }
};

// How a factor is read: by rows, or transposed.
constexpr Along AS_ROWS = Along::K, TRANSPOSED = Along::OUTPUT;

template <Along A, Along B>
void multiply(const ChunkProduct<A, B>& p, cudaStream_t stream) {
  if (p.chunks.count > 0) product::run(p, p.depth == Side::CHANNELS ? p.chunks.width : CHUNK_LENGTH, stream);
}

// ---- Feature map ----------------------------------------------------------------------------------------------------

// q and k, which are adjacent
__global__ void map_elements(float* qkv, int64_t n, int width) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= n) return;
  float& x = qkv[i / (2 * width) * 3 * width + i % (2 * width)];
  const float e = numerics::exp_nonpositive(numerics::min(0.0f, x));
  x = x > 0 ? x + 1 : e;
}

__global__ void scale_by_slopes(float* dqkv, const float* qkv, int64_t n, int width) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= n) return;
  const int64_t at = i / (2 * width) * 3 * width + i % (2 * width);
  dqkv[at] *= numerics::min(1.0f, qkv[at]);
}

// ---- States ---------------------------------------------------------------------------------------------------------

// The row behind S: Σ_t c_t x_t, or Σ_t x_t, of each chunk; with `add`, added to the stored row.
__global__ void sum_rows(Write states, Read x, Read c, Chunks chunks, bool add) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= chunks.total() * chunks.width) return;
  const Place p = chunks.place(i / chunks.width);
  const int channel = static_cast<int>(i % chunks.width), count = chunks.keys(p);
  const float *from = x.of(p) + channel, *factor = c.data ? c.of(p) : nullptr;
  float sum = 0;
#pragma unroll 8
  for (int t = 0; t < count; ++t, from += x.row) sum = factor ? numerics::fma(factor[t], *from, sum) : sum + *from;
  float& z = states.of(p)[static_cast<int64_t>(chunks.width) * chunks.width + channel];
  z = (add ? z : 0) + sum;
}

// Prefix sums of what each of `count` chunks adds; consecutive chunks are `step` apart. If total is not null, it gets
// the last sum, and no other sum is stored.
__global__ void add_up(float* total, float* sums, int64_t heads, int64_t head_step, int64_t size, int count,
                       int64_t step) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= heads * size) return;
  float* at = sums + i / size * head_step + i % size;
  float sum = *at;
#pragma unroll 4
  for (int n = 1; n < count; ++n) {
    at += step;
    sum += *at;
    if (!total) *at = sum;
  }
  if (total) total[i] = sum;
}

// ---- Rows -----------------------------------------------------------------------------------------------------------

// A query of a chunk, for the kernels with one warp per query.
struct Query {
  Place place;
  int64_t number;  // in the chunk
  int index;
  bool exists;

  __device__ explicit Query(const Chunks& chunks) {
    const int64_t n = row_of_warp();
    number = n / CHUNK_LENGTH;
    index = static_cast<int>(n % CHUNK_LENGTH);
    exists = n < chunks.total() * CHUNK_LENGTH;
    if (!exists) return;
    place = chunks.place(number);
    exists = index < chunks.queries(place);
  }
  template <class Real>
  __device__ Real* row_of(const Matrices<Real>& m) const {
    return m.of(place) + static_cast<int64_t>(index) * m.row;
  }
};

// Adds c to visible pairs and sets masked pairs to zero.
__global__ void mask_pairs(Write pairs, Read c, Chunks chunks) {
  const Query t(chunks);
  if (!t.exists) return;
  float* row = t.row_of(pairs);
  const int visible = chunks.visible(t.index), keys = chunks.keys(t.place);
  if (c.data) {
    const float more = *t.row_of(c);
    for (int s = lane_index(); s < visible; s += WARP) row[s] += more;
  }
  for (int s = lane_index(); s < keys; s += WARP)
    if (s >= visible) row[s] = 0;
}

// y /= the sum of its weights. states.data and pairs.data may be null. `stateful`: the first chunk that has a state.
__global__ void divide_rows(Write y, Write inv_sum, Read q, Read states, Read pairs, Chunks chunks, int stateful) {
  const Query t(chunks);
  if (!t.exists) return;
  const int d = chunks.width;
  float total = 0;
  if (t.place.chunk >= stateful) {
    const float *z = states.of(t.place) + static_cast<int64_t>(d) * d, *own = t.row_of(q);
    total = sum_lanes(d, [&](float sum, int i) { return numerics::fma(z[i], own[i], sum); });
  }
  if (pairs.data) {
    const float* row = t.row_of(pairs);
    total += sum_lanes(chunks.visible(t.index), [&](float sum, int s) { return sum + row[s]; });
  }
  const float inverse = 1 / total;
  float* out = t.row_of(y);
  map_lanes(out, d, [&](int i) { return out[i] * inverse; });
  if (lane_index() == 0) *t.row_of(inv_sum) = inverse;
}

// Replaces dy by g, and inv_sum by c.
__global__ void scale_gradients(Write dy, Read y, Write inv_sum, Chunks chunks) {
  const Query t(chunks);
  if (!t.exists) return;
  float *g = t.row_of(dy), *factor = t.row_of(inv_sum);
  const float *own = t.row_of(y), inverse = *factor;
  const float sum = sum_lanes(chunks.width, [&](float sum, int i) {
    g[i] *= inverse;
    return numerics::fma(g[i], own[i], sum);
  });
  __syncwarp();  // all lanes have read *factor
  if (lane_index() == 0) *factor = -sum;
}

// dq += c z
__global__ void add_divisors_gradient(Write dq, Read c, Read states, Chunks chunks) {
  const Query t(chunks);
  if (!t.exists) return;
  const float *z = states.of(t.place) + static_cast<int64_t>(chunks.width) * chunks.width, factor = *t.row_of(c);
  float* row = t.row_of(dq);
  map_lanes(row, chunks.width, [&](int i) { return numerics::fma(factor, z[i], row[i]); });
}

// ---- Memory layout --------------------------------------------------------------------------------------------------

// q (0), k (1) or v (2) in qkv
template <class Real>
Matrices<Real> input(Real* qkv, int part, const LinearAttentionShape& s) {
  const int64_t row = 3 * s.width();
  return {qkv + part * s.width(), s.positions * row, s.head_width, CHUNK_LENGTH * row, static_cast<int>(row)};
}

template <class Real>
Matrices<Real> output(Real* y, const LinearAttentionShape& s) {
  const int64_t row = s.width();
  return {y, s.positions * row, s.head_width, CHUNK_LENGTH * row, static_cast<int>(row)};
}

// One number per position of each head
template <class Real>
Matrices<Real> numbers(Real* x, const LinearAttentionShape& s) {
  return {x, int64_t{1} * s.heads * s.positions, s.positions, CHUNK_LENGTH, 1};
}

Write pairs_of(float* pairs, const LinearAttentionShape& s) {
  const int64_t size = CHUNK_LENGTH * CHUNK_LENGTH;
  return {pairs, int64_t{1} * s.heads * s.chunks() * size, s.chunks() * size, size, CHUNK_LENGTH};
}
int64_t pairs_size(const LinearAttentionShape& s) {
  return int64_t{1} * s.batch * s.heads * s.chunks() * CHUNK_LENGTH * CHUNK_LENGTH;
}

// `count` states per head; the first belongs to chunk `zero`. If not causal, all chunks share one state.
template <class Real>
Matrices<Real> states_of(Real* states, int count, int zero, const LinearAttentionShape& s) {
  const int64_t size = s.state_size(), step = s.causal ? size : 0;
  return {states - zero * step, int64_t{1} * s.heads * count * size, count * size, step, s.head_width};
}

}  // namespace

// ---- Forward --------------------------------------------------------------------------------------------------------

namespace {

// y of the queries: from states, where they exist, plus (if causal) from the pairs within their chunk. pairs: scratch
struct Attention {
  Write y, inv_sum;  // inv_sum.data may be null
  Read q, k, v, states;
  Write pairs;
  int stateful;  // the first chunk that has a state

  void run(const Chunks& all, bool causal, cudaStream_t stream) const {
    Chunks later = all, first = all;
    later.first = std::max(all.first, stateful);
    later.count = all.first + all.count - later.first;
    first.count = all.count - later.count;
    multiply(ChunkProduct<AS_ROWS, TRANSPOSED>{y, q, states, later, Side::QUERIES, Side::CHANNELS, Side::CHANNELS},
             stream);
    if (causal) {
      multiply(ChunkProduct<AS_ROWS, AS_ROWS>{pairs, q, k, all, Side::QUERIES, Side::KEYS, Side::CHANNELS}, stream);
      LAUNCH_ROWS(mask_pairs, all.rows(), stream, pairs, Read{}, all);
      ChunkProduct<AS_ROWS, TRANSPOSED> values{y, read(pairs), v, first, Side::QUERIES, Side::CHANNELS, Side::KEYS};
      values.terms = Terms::SEEN;
      multiply(values, stream);
      values.chunks = later;
      values.add = true;
      multiply(values, stream);
    }
    if (inv_sum.data)
      LAUNCH_ROWS(divide_rows, all.rows(), stream, y, inv_sum, q, states, causal ? read(pairs) : Read{}, all, stateful);
  }
};

// What each chunk adds to a state: x ⊗ w, and in the row behind it Σ x, weighted by c unless c.data is null.
void form_states(const Write& states, const Read& x, const Read& w, const Read& c, const Chunks& chunks, bool add,
                 bool normalized, cudaStream_t stream) {
  ChunkProduct<TRANSPOSED, TRANSPOSED> outer{states, x, w, chunks, Side::CHANNELS, Side::CHANNELS, Side::KEYS};
  outer.add = add;
  multiply(outer, stream);
  const int64_t elements = chunks.total() * chunks.width;
  if (normalized && elements > 0)
    LAUNCH(sum_rows, blocks_for(elements, THREADS), THREADS, 0, stream, states, x, c, chunks, add);
}

// The states of whole sequences. Causal: for each chunk the sum of all chunks before it (descending: after it). Not
// causal: one sum of all chunks; own: scratch for what each chunk adds
void add_states(float* states, float* own, const Read& x, const Read& w, const Read& c, bool descending,
                const LinearAttentionShape& s, cudaStream_t stream) {
  const int K = s.chunks();
  const int64_t heads = int64_t{1} * s.batch * s.heads, size = s.state_size();
  if (!s.causal) {
    LinearAttentionShape single = s;  // one matrix per chunk
    single.causal = true;
    form_states(states_of(own, K, 0, single), x, w, c, {s, 0, K}, false, s.normalized, stream);
    LAUNCH(add_up, blocks_for(heads * size, THREADS), THREADS, 0, stream, states, own, heads, K * size, size, K, size);
    return;
  }
  if (K == 1) return;
  const int first = descending ? 1 : 0;
  form_states(states_of(states, K - 1, first, s), x, w, c, {s, first, first + K - 1}, false, s.normalized, stream);
  if (K > 2)
    LAUNCH(add_up, blocks_for(heads * size, THREADS), THREADS, 0, stream, nullptr,
           states + (descending ? (K - 2) * size : 0), heads, (K - 1) * size, size, K - 1, descending ? -size : size);
}

// Appends the new k and v to those of the unfinished chunk.
__global__ void keep_keys(Write kept, Read k, Read v, Chunks chunks) {
  const int64_t i = element_of_thread<THREADS>();
  const int count = chunks.positions - chunks.lead, d = chunks.width;
  if (i >= chunks.total() * count * d) return;
  const Place p = chunks.place(i / d / count);
  const int t = static_cast<int>(i / d % count), c = static_cast<int>(i % d);
  float* to = kept.of(p) + static_cast<int64_t>(chunks.lead + t) * d + c;
  to[0] = k.of(p)[static_cast<int64_t>(t) * k.row + c];
  to[CHUNK_LENGTH * d] = v.of(p)[static_cast<int64_t>(t) * v.row + c];
}

template <class Real>
Matrices<Real> from(Matrices<Real> m, int row) {
  m.data += static_cast<int64_t>(row) * m.row;
  return m;
}

// Incremental decoding: attends from the newest positions, at most to the end of a chunk in each iteration.
void attend_stream(float* y, float* inv_sum, float* state, const float* qkv, float* pairs,
                   const LinearAttentionShape& s, cudaStream_t stream) {
  const int64_t size = s.decoder_state_size();
  const Write sums = {state, s.heads * size, size, 0, s.head_width};
  const Write k = {state + s.state_size(), s.heads * size, size, 0, s.head_width}, v = from(k, CHUNK_LENGTH);
  LinearAttentionShape one = s;  // chunk
  for (int done = 0, count = 0; done < s.positions; done += count) {
    const int position = s.before + done, place = position % CHUNK_LENGTH;
    count = std::min(CHUNK_LENGTH - place, s.positions - done);
    Chunks chunk(s, 0, 1);
    chunk.lead = place;
    chunk.positions = one.positions = place + count;
    LAUNCH(keep_keys, blocks_for(chunk.total() * count * s.head_width, THREADS), THREADS, 0, stream, k,
           from(input(qkv, 1, s), done), from(input(qkv, 2, s), done), chunk);
    const bool stateful = position >= CHUNK_LENGTH;
    Attention{from(output(y, s), done),
              from(numbers(inv_sum, s), inv_sum ? done : 0),
              from(input(qkv, 0, s), done),
              read(k),
              read(v),
              read(sums),
              pairs_of(pairs, one),
              stateful ? 0 : 1}
        .run(chunk, true, stream);
    if (place + count < CHUNK_LENGTH) continue;
    chunk.lead = 0;
    form_states(sums, read(k), read(v), Read{}, chunk, stateful, s.normalized, stream);
  }
}

}  // namespace

void Gpu::linear_attention(real* y, real* inv_sum, real* states, real* state, real* qkv,
                           const LinearAttentionShape& s) {
  const int64_t mapped = int64_t{2} * s.batch * s.positions * s.width();
  if (s.feature_map == FeatureMap::ELU_PLUS_ONE)
    LAUNCH(map_elements, blocks_for(mapped, THREADS), THREADS, 0, stream_, qkv, mapped, s.width());
  if (state) {
    LinearAttentionShape chunk = s;
    chunk.positions = CHUNK_LENGTH;
    return attend_stream(y, inv_sum, state, qkv, scratch(pairs_size(chunk)), s, stream_);
  }
  const Read q = input<const float>(qkv, 0, s), k = input<const float>(qkv, 1, s), v = input<const float>(qkv, 2, s);
  float* room = scratch(s.causal ? pairs_size(s) : int64_t{1} * s.batch * s.heads * s.chunks() * s.state_size());
  add_states(states, room, k, v, Read{}, false, s, stream_);
  const int stateful = s.causal ? 1 : 0;
  Attention{
      output(y, s), numbers(inv_sum, s), q, k, v, read(states_of(states, s.states(), stateful, s)), pairs_of(room, s),
      stateful}
      .run({s, 0, s.chunks()}, s.causal, stream_);
}

// ---- Backward -------------------------------------------------------------------------------------------------------

void Gpu::linear_attention_backward(real* dqkv, real* later, real* dy, const real* y, real* inv_sum, const real* states,
                                    const real* qkv, const LinearAttentionShape& s) {
  const int K = s.chunks();
  const Chunks all(s, 0, K), before(s, s.causal ? 1 : 0, K), after(s, 0, s.causal ? K - 1 : K);
  const Chunks first(s, 0, before.first), last(s, after.count, K);
  const Read q = input(qkv, 0, s), k = input(qkv, 1, s), v = input(qkv, 2, s), g = read(output(dy, s));
  const Write dq = input(dqkv, 0, s), dk = input(dqkv, 1, s), dv = input(dqkv, 2, s);
  const Read c = s.normalized ? read(numbers(inv_sum, s)) : Read{};
  const Read S = states_of(states, s.states(), before.first, s), L = read(states_of(later, s.states(), 0, s));
  float* room = scratch(s.causal ? 2 * pairs_size(s) : int64_t{1} * s.batch * s.heads * K * s.state_size());

  if (s.normalized)
    LAUNCH_ROWS(scale_gradients, all.rows(), stream_, output(dy, s), output(y, s), numbers(inv_sum, s), all);
  add_states(later, room, q, g, c, s.causal, s, stream_);

  const Side positions = Side::KEYS, channels = Side::CHANNELS;
  multiply(ChunkProduct<AS_ROWS, AS_ROWS>{dq, g, S, before, positions, channels, channels}, stream_);
  if (s.normalized && before.count > 0) LAUNCH_ROWS(add_divisors_gradient, before.rows(), stream_, dq, c, S, before);
  ChunkProduct<AS_ROWS, AS_ROWS> keys{dk, v, L, after, positions, channels, channels};
  keys.bias = s.normalized;
  multiply(keys, stream_);
  multiply(ChunkProduct<AS_ROWS, TRANSPOSED>{dv, k, L, after, positions, channels, channels}, stream_);

  if (s.causal) {
    const Write weights = pairs_of(room, s), gradients = pairs_of(room + pairs_size(s), s);
    multiply(ChunkProduct<AS_ROWS, AS_ROWS>{weights, q, k, all, positions, positions, channels}, stream_);
    multiply(ChunkProduct<AS_ROWS, AS_ROWS>{gradients, g, v, all, positions, positions, channels}, stream_);
    LAUNCH_ROWS(mask_pairs, all.rows(), stream_, weights, Read{}, all);
    LAUNCH_ROWS(mask_pairs, all.rows(), stream_, gradients, c, all);
    const auto seen = [&](const Chunks& chunks, bool add) {
      multiply(ChunkProduct<AS_ROWS, TRANSPOSED>{dq, read(gradients), k, chunks, positions, channels, positions, add,
                                                 Terms::SEEN},
               stream_);
    };
    const auto seeing = [&](const Write& to, const Write& pairs, const Read& x, const Chunks& chunks, bool add) {
      multiply(ChunkProduct<TRANSPOSED, TRANSPOSED>{to, read(pairs), x, chunks, positions, channels, positions, add,
                                                    Terms::LATER},
               stream_);
    };
    seen(first, false);
    seen(before, true);
    seeing(dv, weights, g, after, true);
    seeing(dv, weights, g, last, false);
    seeing(dk, gradients, q, after, true);
    seeing(dk, gradients, q, last, false);
  }
  if (s.feature_map != FeatureMap::ELU_PLUS_ONE) return;
  const int64_t mapped = int64_t{2} * s.batch * s.positions * s.width();
  LAUNCH(scale_by_slopes, blocks_for(mapped, THREADS), THREADS, 0, stream_, dqkv, qkv, mapped, s.width());
}

}  // namespace petroglyph
