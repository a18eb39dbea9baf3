// Linear layers and embeddings (all operations whose weight is a matrix): the GPU version of cpu/linear.cpp.

#include <algorithm>

#include "gpu/columns.cuh"
#include "gpu/gpu.h"
#include "gpu/product.cuh"

namespace petroglyph {

using columns::chunks_at_once;
using columns::chunks_of;
using product::Along;
using product::Factor;
using product::Plain;
using product::Sums;
using product::Tile;
using product::Tiling;

namespace {

// dyᵀ x over one chunk of rows: added to dweight or, for several chunks at once, written to `sums`.
struct WeightGradient {
  static constexpr Along A = Along::OUTPUT, B = Along::OUTPUT;
  float* dweight;
  float* sums;  // (chunks,out,in) or null
  Factor dy, x;
  Tiling tiling;  // (out,in)
  int64_t rows, chunks;

  int64_t blocks() const { return tiling.tiles() * chunks; }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    tile.batch = blockIdx.x / tiling.tiles();
    tiling.locate(tile, blockIdx.x % tiling.tiles(), dy, A, x, B);
    return tile.cut(0, rows, chunk + tile.batch);
  }

  __device__ void store(const Tile& tile, const Sums& sum) const {
    float* to = sums ? sums + tile.batch * tiling.M * tiling.N : dweight;
    product::store_tile(to + tile.row * tiling.N + tile.column, tiling.N, nullptr, !sums, tile, sum);
  }
};

// The same in tiles of 32 × 32, for weights so small that tiles of 96 × 64 would leave multiprocessors idle. A thread
// computes 4 × 4 outputs. A chunk is one chain of 1024 fma; 16 chains side by side end four times as early as 64.
// Predicted, not yet measured: the gradient of a weight (192,192) from 2176 rows takes 0.02 ms instead of about 0.08;
// it needs 18 blocks of the large tile or 108 of the small one.
constexpr int SMALL = 32, SMALL_THREADS = SMALL / 4 * SMALL / 4, SMALL_DEPTH = 32;

struct alignas(16) SmallSlice {
  float terms[SMALL_DEPTH][SMALL];
};

// Copies terms k … k+terms−1 of 32 columns of dy or x. Columns out of range repeat the last one; they are never used.
__device__ inline void copy_small(SmallSlice& slice, const Factor& from, int64_t k, int terms, int column,
                                  int columns) {
  const int c = static_cast<int>(threadIdx.x) % SMALL, first = static_cast<int>(threadIdx.x) / SMALL;
  const float* data = from.data + k * from.stride + min(column + c, columns - 1);
#pragma unroll 8
  for (int term = first; term < terms; term += SMALL_THREADS / SMALL)
    __pipeline_memcpy_async(&slice.terms[term][c], data + static_cast<int64_t>(term) * from.stride, sizeof(float));
}

__device__ inline void multiply_small(float (&sum)[4][4], const SmallSlice& dy, const SmallSlice& x, int terms) {
  const int row = static_cast<int>(threadIdx.x) / (SMALL / 4) * 4,
            column = static_cast<int>(threadIdx.x) % (SMALL / 4) * 4;
#pragma unroll 8
  for (int k = 0; k < terms; ++k) {
    const float4 a = *reinterpret_cast<const float4*>(&dy.terms[k][row]);
    const float4 b = *reinterpret_cast<const float4*>(&x.terms[k][column]);
    const float rows[4] = {a.x, a.y, a.z, a.w}, columns[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
    for (int n = 0; n < 16; ++n) {  // odd rows from right to left, as in product.cuh
      const int r = n / 4, c = r % 2 ? 3 - n % 4 : n % 4;
      sum[r][c] = numerics::fma(rows[r], columns[c], sum[r][c]);
    }
  }
}

int64_t small_tiles(const Tiling& tiling) {
  return int64_t{1} * blocks_for(tiling.M, SMALL) * blocks_for(tiling.N, SMALL);
}

__global__ void __launch_bounds__(SMALL_THREADS) small_weight_gradient(WeightGradient g, int64_t first_chunk) {
  SHARED_ARRAY(SmallSlice, dy, [2]);
  SHARED_ARRAY(SmallSlice, x, [2]);
  const int out = static_cast<int>(g.tiling.M), in = static_cast<int>(g.tiling.N);
  const int across = (in + SMALL - 1) / SMALL, tiles = (out + SMALL - 1) / SMALL * across;
  const int tile = static_cast<int>(blockIdx.x) % tiles, row = tile / across * SMALL, column = tile % across * SMALL;
  const int64_t number = blockIdx.x / tiles, begin = (first_chunk + number) * CHUNK;
  const int terms = static_cast<int>(min(g.rows - begin, static_cast<int64_t>(CHUNK)));
  const auto copy = [&](int slice, int done) {
    const int some = min(terms - done, SMALL_DEPTH);
    copy_small(dy[slice], g.dy, begin + done, some, row, out);
    copy_small(x[slice], g.x, begin + done, some, column, in);
    __pipeline_commit();
  };
  float sum[4][4] = {};
  copy(0, 0);
  for (int done = 0, slice = 0; done < terms; done += SMALL_DEPTH, slice ^= 1) {
    __pipeline_wait_prior(0);
    __syncthreads();  // this slice has arrived, and all threads have finished the previous one
    if (done + SMALL_DEPTH < terms) copy(slice ^ 1, done + SMALL_DEPTH);
    multiply_small(sum, dy[slice], x[slice], min(terms - done, SMALL_DEPTH));
  }
  float* to = g.sums + number * out * in;
#pragma unroll
  for (int n = 0; n < 16; ++n) {
    const int r = row + static_cast<int>(threadIdx.x) / (SMALL / 4) * 4 + n / 4;
    const int c = column + static_cast<int>(threadIdx.x) % (SMALL / 4) * 4 + n % 4;
    if (r < out && c < in) to[static_cast<int64_t>(r) * in + c] = 0 + sum[n / 4][n % 4];  // a sum of −0 becomes +0
  }
}

struct AddRow {
  const float* dy;
  int out;

  __device__ float operator()(float sum, int64_t n, int c) const { return sum + dy[n * out + c]; }
};

}  // namespace

void Gpu::linear(real* y, const real* x, const real* weight, const real* bias, int64_t N, int in, int out, Into into) {
  product::run(Plain<Along::K, Along::K>{y, {x, in}, {weight, in}, {N, out}, in, into, bias}, in, stream_);
}

void Gpu::linear_backward_input(real* dx, const real* dy, const real* weight, int64_t N, int in, int out, Into into) {
  product::run(Plain<Along::K, Along::OUTPUT>{dx, {dy, out}, {weight, in}, {N, in}, out, into, nullptr}, out, stream_);
}

// dweight alone has few tiles. If they do not occupy the GPU, all chunks of rows that fit the scratch are multiplied at
// once and then added in order. Small tiles are used if there are fewer large tiles than multiprocessors.
void Gpu::linear_backward_weight(real* dweight, real* dbias, const real* dy, const real* x, int64_t N, int in,
                                 int out) {
  WeightGradient gradient{dweight, nullptr, {dy, out}, {x, in}, {out, in}, N, 1};
  const int64_t size = static_cast<int64_t>(out) * in, at_once = chunks_at_once(limits_, N, size);
  if (at_once == 1 || gradient.blocks() >= multiprocessors_ * product::BLOCKS_AT_ONCE) {
    product::run(gradient, N, stream_);
  } else {
    gradient.sums = scratch(at_once * size);
    for (int64_t chunk = 0; chunk < chunks_of(N); chunk += at_once) {
      gradient.chunks = std::min(at_once, chunks_of(N) - chunk);
      if (gradient.blocks() < multiprocessors_)
        LAUNCH(small_weight_gradient, grid_blocks(small_tiles(gradient.tiling) * gradient.chunks), SMALL_THREADS, 0,
               stream_, gradient, chunk);
      else
        product::run_chunk(gradient, chunk, stream_);
      columns::add(dweight, gradient.sums, gradient.chunks, size, stream_);
    }
  }
  if (dbias) add_row_backward(dbias, dy, N, out);
}

void Gpu::add_row_backward(real* drow, const real* dy, int64_t N, int D) {
  columns::sum(drow, scratch(chunks_of(N) * D), AddRow{dy, D}, N, D, stream_);
}

// ---- Embedding ----------------------------------------------------------------------------------------------------

namespace {

__global__ void embed(float* x, const float* token_table, const float* position_table, const int32_t* tokens, int first,
                      int64_t rows, int T, int D) {
  const int64_t n = row_of_warp();
  if (n >= rows) return;
  const float* token = token_table + static_cast<int64_t>(tokens[n]) * D;
  const float* position = position_table ? position_table + (first + n % T) * D : nullptr;
  for (int c = lane_index(); c < D; c += WARP) x[n * D + c] = position ? token[c] + position[c] : token[c];
}

// The gradient of the token table is a scatter: each row of dx is added to the table row of its token. Adding in
// the catalogue's order without atomics takes three steps. Each chunk of 1024 rows is sorted by token (stable),
// so that a token's rows are adjacent and in order. One thread per (chunk, token, column) adds them. One warp per
// token of the vocabulary finds the token in the sorted chunks and adds their sums in order. Memory and work
// depend on the rows, not on the vocabulary, except for this search: log₂ 1024 steps per token for each 32
// chunks.
struct SortedChunks {
  int32_t* rows;    // (chunks,CHUNK)    the chunk's rows by token, then by row; the last chunk has fewer
  int32_t* tokens;  // (chunks,CHUNK)    its distinct tokens, ascending
  int32_t* begins;  // (chunks,CHUNK+1)  where each token begins in `rows`, and the end
  int32_t* counts;  // (chunks)          number of distinct tokens

  static int64_t size(int64_t chunks) { return chunks * (3 * CHUNK + 2); }
  SortedChunks(int32_t* memory, int64_t chunks)
      : rows(memory),
        tokens(rows + chunks * CHUNK),
        begins(tokens + chunks * CHUNK),
        counts(begins + chunks * (CHUNK + 1)) {}
};

// One block sorts one chunk. The position of a row is the number of rows that precede it in sorted order.
__global__ void __launch_bounds__(CHUNK)
    sort_chunk(SortedChunks sorted, const int32_t* tokens, int64_t row, int64_t rows) {
  SHARED_ARRAY(int32_t, token_of, [CHUNK]);
  SHARED_ARRAY(int32_t, in_order, [CHUNK]);
  SHARED_ARRAY(int, heads, [CHUNK / WARP]);
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t chunk = blockIdx.x, first = chunk * CHUNK;
  const int size = static_cast<int>(min(static_cast<int64_t>(CHUNK), rows - first));
  const int32_t token = thread < size ? tokens[row + first + thread] : 0;
  token_of[thread] = token;
  __syncthreads();
  int place = 0;
  for (int i = 0; i < size; ++i) place += token_of[i] < token || (token_of[i] == token && i < thread);
  if (thread < size) {
    in_order[place] = token;
    sorted.rows[first + place] = static_cast<int32_t>(first) + thread;
  }
  __syncthreads();
  const bool head = thread < size && (thread == 0 || in_order[thread] != in_order[thread - 1]);
  const unsigned heads_of_warp = __ballot_sync(ALL_LANES, head);
  if (lane_index() == 0) heads[warp_index()] = __popc(heads_of_warp);
  __syncthreads();
  int slot = __popc(heads_of_warp & ((1u << lane_index()) - 1)), count = 0;
  for (int w = 0; w < CHUNK / WARP; ++w) {
    if (w < warp_index()) slot += heads[w];
    count += heads[w];
  }
  int32_t* begins = sorted.begins + chunk * (CHUNK + 1);
  if (head) {
    sorted.tokens[first + slot] = in_order[thread];
    begins[slot] = thread;
  }
  if (thread == 0) {
    begins[count] = size;
    sorted.counts[chunk] = count;
  }
}

constexpr int SLOT_WARPS = 8, SLOT_COLUMNS = 32;

// sums (chunks,CHUNK,D): for each distinct token of a chunk, the sum of its rows of dx. One block per chunk and 32
// columns.
__global__ void __launch_bounds__(SLOT_WARPS* WARP)
    sum_tokens(float* sums, const float* dx, SortedChunks sorted, int D) {
  const int strips = (D + SLOT_COLUMNS - 1) / SLOT_COLUMNS;
  const int64_t chunk = blockIdx.x / strips;
  const int column = static_cast<int>(blockIdx.x % strips) * SLOT_COLUMNS + lane_index();
  const int32_t* rows = sorted.rows + chunk * CHUNK;
  const int32_t* begins = sorted.begins + chunk * (CHUNK + 1);
  if (column >= D) return;
  for (int slot = warp_index(); slot < sorted.counts[chunk]; slot += SLOT_WARPS) {
    float sum = 0;
    const int end = begins[slot + 1];
#pragma unroll 8
    for (int i = begins[slot]; i < end; ++i) sum += dx[static_cast<int64_t>(rows[i]) * D + column];
    sums[(chunk * CHUNK + slot) * D + column] = sum;
  }
}

// The index of `token` among the n ascending `tokens`, or −1.
__device__ int find_token(const int32_t* tokens, int n, int32_t token) {
  int begin = 0, end = n;
  while (begin < end) {
    const int middle = (begin + end) / 2;
    if (tokens[middle] < token)
      begin = middle + 1;
    else
      end = middle;
  }
  return begin < n && tokens[begin] == token ? begin : -1;
}

// A table with one row per token: column c of row v is at data[v·row + c·column].
struct Table {
  float* data;
  int64_t row, column;
};

// table[v] += the chunks' sums for v. One warp per token; each lane searches one of 32 chunks for the token.
__global__ void add_tokens(Table table, const float* sums, SortedChunks sorted, int chunks, int D, int V) {
  const int64_t token = row_of_warp();
  if (token >= V) return;
  float* row = table.data + token * table.row;
  for (int first = 0; first < chunks; first += WARP) {
    const int64_t chunk = first + lane_index();
    const int slot = chunk < chunks
                         ? find_token(sorted.tokens + chunk * CHUNK, sorted.counts[chunk], static_cast<int32_t>(token))
                         : -1;
    const unsigned found = __ballot_sync(ALL_LANES, slot >= 0);
    for (int begin = 0; found != 0 && begin < D; begin += WARP) {
      const int column = begin + lane_index();
      float sum = column < D ? row[column * table.column] : 0;
      for (unsigned left = found; left != 0; left &= left - 1) {
        const int lane = __ffs(static_cast<int>(left)) - 1;
        const int64_t at = static_cast<int64_t>(first + lane) * CHUNK + __shfl_sync(ALL_LANES, slot, lane);
        if (column < D) sum += sums[at * D + column];
      }
      if (column < D) row[column * table.column] = sum;
    }
  }
}

constexpr int POSITION_THREADS = 64;

// dtable_t += Σ_b dx_bt, in chunks over b. For the last t, dcls (or null) gets the same sum. One thread per element.
__global__ void sum_positions(float* dtable, float* dcls, const float* dx, int B, int64_t elements, int D) {
  const int64_t i = element_of_thread<POSITION_THREADS>();
  if (i >= elements) return;
  const int64_t c = i - (elements - D);
  const bool also = dcls && c >= 0;
  float total = dtable[i], cls = also ? dcls[c] : 0;
  for (int chunk = 0; chunk < B; chunk += CHUNK) {
    const int end = min(chunk + CHUNK, B);
    float sum = 0;
#pragma unroll 16
    for (int b = chunk; b < end; ++b) sum += dx[b * elements + i];
    total += sum;
    cls += sum;
  }
  dtable[i] = total;
  if (also) dcls[c] = cls;
}

__global__ void add_table(float* x, const float* position_table, int first, int64_t rows, int T, int D) {
  const int64_t n = row_of_warp();
  if (n >= rows) return;
  const float* position = position_table + (first + n % T) * D;
  for (int c = lane_index(); c < D; c += WARP) x[n * D + c] += position[c];
}

__global__ void place_patches(float* x, const float* patches, const float* cls, const float* position_table,
                              int64_t rows, int T, int D) {
  const int64_t n = row_of_warp();
  if (n >= rows) return;
  const int64_t b = n / T, t = n % T;
  const float *row = t == T - 1 ? cls : patches + (n - b) * D, *position = position_table + t * D;
  for (int c = lane_index(); c < D; c += WARP) x[n * D + c] = row[c] + position[c];
}

}  // namespace

void Gpu::embedding(real* x, const real* token_table, const real* position_table, const int32_t* tokens, int first,
                    int B, int T, int D) {
  const int64_t rows = static_cast<int64_t>(B) * T;
  LAUNCH_ROWS(embed, rows, stream_, x, token_table, position_table, tokens, first, rows, T, D);
}

namespace {

// How many rows' gradients are scattered at once, and the scratch needed.
struct Scatter {
  int64_t at_once, sums_size;

  Scatter(const ScratchLimits& limits, int64_t rows, int D)
      : at_once(chunks_at_once(limits, rows, static_cast<int64_t>(CHUNK) * D)), sums_size(at_once * CHUNK * D) {}
  int64_t size() const { return sums_size + SortedChunks::size(at_once); }
};

// table[v] += Σ over the rows n with tokens_n = v
void scatter(Table table, float* scratch, const Scatter& plan, const float* dx, const int32_t* tokens, int64_t rows,
             int D, int V, cudaStream_t stream) {
  static_assert(sizeof(int32_t) == sizeof(float), "the scratch holds both");
  const SortedChunks sorted(reinterpret_cast<int32_t*>(scratch + plan.sums_size), plan.at_once);
  for (int64_t row = 0; row < rows; row += plan.at_once * CHUNK) {
    const int64_t some = std::min(plan.at_once * CHUNK, rows - row), chunks = chunks_of(some);
    LAUNCH(sort_chunk, grid_blocks(chunks), CHUNK, 0, stream, sorted, tokens, row, some);
    LAUNCH(sum_tokens, grid_blocks(chunks * blocks_for(D, SLOT_COLUMNS)), SLOT_WARPS * WARP, 0, stream, scratch,
           dx + row * D, sorted, D);
    LAUNCH_ROWS(add_tokens, V, stream, table, scratch, sorted, static_cast<int>(chunks), D, V);
  }
}

}  // namespace

void Gpu::embedding_backward(real* dtoken_table, real* dposition_table, const real* dx, const int32_t* tokens, int B,
                             int T, int D, int V) {
  const int64_t rows = static_cast<int64_t>(B) * T;
  const Scatter plan(limits_, rows, D);
  scatter({dtoken_table, D, 1}, scratch(plan.size()), plan, dx, tokens, rows, D, V, stream_);
  if (dposition_table) add_positions_backward(dposition_table, dx, B, T, D);
}

void Gpu::add_positions(real* x, const real* position_table, int first, int B, int T, int D) {
  const int64_t rows = static_cast<int64_t>(B) * T;
  LAUNCH_ROWS(add_table, rows, stream_, x, position_table, first, rows, T, D);
}

void Gpu::add_positions_backward(real* dposition_table, const real* dx, int B, int T, int D) {
  const int64_t elements = static_cast<int64_t>(T) * D;
  LAUNCH(sum_positions, blocks_for(elements, POSITION_THREADS), POSITION_THREADS, 0, stream_, dposition_table, nullptr,
         dx, B, elements, D);
}

void Gpu::append_class_token(real* x, const real* patches, const real* cls, const real* position_table, int B, int T,
                             int D) {
  const int64_t rows = static_cast<int64_t>(B) * T;
  LAUNCH_ROWS(place_patches, rows, stream_, x, patches, cls, position_table, rows, T, D);
}

void Gpu::append_class_token_backward(real* dpatches, real* dcls, real* dposition_table, const real* dx, int B, int T,
                                      int D) {
  const size_t row = static_cast<size_t>(D) * sizeof(real), patches = static_cast<size_t>(T) - 1;
  copy(dpatches, patches * row, dx, (patches + 1) * row, patches * row, static_cast<size_t>(B));
  const int64_t elements = static_cast<int64_t>(T) * D;
  LAUNCH(sum_positions, blocks_for(elements, POSITION_THREADS), POSITION_THREADS, 0, stream_, dposition_table, dcls, dx,
         B, elements, D);
}

// ---- One-hot inputs -----------------------------------------------------------------------------------------------

namespace {

constexpr int LOOK_UP_THREADS = 128;

// One thread per output. Neighbouring threads read weights V apart, but every row with the same token reads the same
// weights again, so they stay in the cache.
__global__ void look_up(float* y, const float* weight, const float* bias, const int32_t* tokens, int64_t N, int V,
                        int out) {
  const int64_t i = element_of_thread<LOOK_UP_THREADS>();
  if (i >= N * out) return;
  const int64_t c = i % out;
  y[i] = weight[c * V + tokens[i / out]] + bias[c];
}

}  // namespace

void Gpu::linear_one_hot(real* y, const real* weight, const real* bias, const int32_t* tokens, int64_t N, int V,
                         int out) {
  LAUNCH(look_up, blocks_for(N * out, LOOK_UP_THREADS), LOOK_UP_THREADS, 0, stream_, y, weight, bias, tokens, N, V,
         out);
}

void Gpu::linear_one_hot_backward(real* dweight, real* dbias, const real* dy, const int32_t* tokens, int64_t N, int V,
                                  int out) {
  const Scatter plan(limits_, N, out);
  scatter({dweight, 1, V}, scratch(plan.size()), plan, dy, tokens, N, out, V, stream_);
  add_row_backward(dbias, dy, N, out);
}

}  // namespace petroglyph
