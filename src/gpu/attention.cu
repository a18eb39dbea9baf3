// Softmax attention: the GPU version of cpu/attention.cpp. product.cuh multiplies tiles in shared memory. The threads
// that hold a tile's sums turn them into scores, weights and gradients.
//
//   forward   rows = scores of q·k; along each, top, e and inv_sum; y = rows·v times inv_sum
//   backward  rows = a of q·k; dv = rowsᵀ·dy; gradients = ds of dy·v; dq = gradients·k; dk = gradientsᵀ·q
//
// (B,heads,T,T) is never stored. A group is some heads with at most 1024 of their queries, as many as fit the scratch;
// groups run one after the other. A large GPU's L2 cache holds a group's rows. One fused kernel with its rows in shared
// memory (Dao et al. 2022) would need more products: the largest score precedes the sums (catalogue.h), so scores are
// computed twice forward, and scores and dy·v twice backward: ten products instead of seven. Without matrix units, a
// product of 64 channels occupies a multiprocessor for half a cycle per score. Moving 16 bytes to L2 and back takes
// less, and other tiles are multiplied meanwhile.
//
// Fully masked tiles are skipped. A partly masked tile holds zeros for masked pairs: a zero term changes no chain.

#include <algorithm>

#include "gpu/gpu.h"
#include "gpu/product.cuh"

namespace petroglyph {

using product::Along;
using product::Sums;
using product::Tile;
using product::Tiling;

namespace {

// Distance from one scratch row to the next: a multiple of four numbers, because rows are copied 16 bytes at a time.
HOST_DEVICE int64_t row_step(int64_t columns) { return (columns + 3) / 4 * 4; }

// Layout in memory of the rows of a unit (one head of one sample). QUERIES: like q. OUTPUT: like y. KEYS: like k and v.
// POSITIONS: distances, shared by all samples. PARTIAL: distances, separate for each sample.
enum class Layout { QUERIES, OUTPUT, KEYS, POSITIONS, PARTIAL };

struct Input {
  const float* data;
  Layout layout;
};

struct Output {
  float* data;
  Layout layout;
};

// A group: some units and a range of their queries.
struct Group {
  AttentionShape shape;
  int64_t first_unit;
  int units;
  int begin, end;  // queries

  HOST_DEVICE int rows() const { return end - begin; }
  // Length of a row in the scratch: one number per key or, with positions, per distance.
  HOST_DEVICE int columns(Layout layout) const {
    return layout == Layout::POSITIONS || layout == Layout::PARTIAL ? shape.distances() : shape.keys;
  }
  __device__ int step(Layout layout) const {
    return layout == Layout::QUERIES ? shape.query_step : layout == Layout::KEYS ? shape.key_step : shape.width();
  }
  __device__ int64_t offset(Layout layout, int64_t unit) const {
    const int64_t sample = unit / shape.heads;
    if (layout == Layout::KEYS) return shape.key_offset(sample, unit % shape.heads);
    const int64_t row = layout == Layout::POSITIONS ? 0
                        : layout == Layout::PARTIAL ? sample * shape.distances()
                                                    : sample * shape.queries;
    return row * step(layout) + unit % shape.heads * shape.head_width;
  }
  __device__ product::Factor factor(const Input& x, int64_t unit) const {
    return {x.data + offset(x.layout, unit), step(x.layout)};
  }
  // Number of keys visible to a query; with positions, number of distances up to that of the query's first key.
  __device__ int seen(Layout layout, int query) const {
    return layout == Layout::POSITIONS ? shape.position(query) + shape.nearest() + 1 : shape.visible(query);
  }
};

// ---- Conversion of dot products ------------------------------------------------------------------------------------

// A row of scores: its number in the group, its unit and its query.
struct Row {
  int64_t number, unit;
  int query;

  __device__ Row(const Group& g, int64_t number)
      : number(number), unit(g.first_unit + number / g.rows()), query(g.begin + static_cast<int>(number % g.rows())) {}
  __device__ int64_t of_queries(const AttentionShape& s) const { return unit * s.queries + query; }  // in (B,heads,Q)
};

// For a row, of_row returns a function of (dot product, key) that computes the value to store.

struct Unchanged {
  __device__ auto of_row(const Row&, const AttentionShape&) const {
    return [](float dot, int) { return dot; };
  }
};

// score · log₂e of q·k
struct Score {
  const float *by_distance, *bias;  // (rows,distances) of q_position·positions, (T,heads); or null
  float scale;

  __device__ auto of_row(const Row& row, const AttentionShape& s) const {
    const int position = s.position(row.query), heads = s.heads;
    const float* other =
        by_distance ? by_distance + row.number * row_step(s.distances()) + s.nearest() + position : nullptr;
    const float* own_bias = bias ? bias + static_cast<int64_t>(position) * heads + row.unit % heads : nullptr;
    return [=, scale = scale](float dot, int key) {
      if (other) dot += other[-key];
      return own_bias ? numerics::fma(dot, scale, LOG2_E * own_bias[-static_cast<int64_t>(key) * heads]) : dot * scale;
    };
  }
};

__device__ float weight(float x) { return numerics::exp2_in_range(numerics::max(-126.0f, x)); }

// a of q·k
struct Weight {
  Score score;
  const float *top, *inv_sum;

  __device__ auto of_row(const Row& row, const AttentionShape& s) const {
    const float largest = top[row.of_queries(s)], factor = inv_sum[row.of_queries(s)];
    return
        [=, of_key = score.of_row(row, s)](float dot, int key) { return weight(of_key(dot, key) - largest) * factor; };
  }
};

// ds of dy·v
struct ScoreGradient {
  const float *a, *along;  // (rows,keys), (rows)

  __device__ auto of_row(const Row& row, const AttentionShape& s) const {
    const float own = along[row.number], *weights = a + row.number * row_step(s.keys);
    return [=](float da, int key) { return weights[key] * (da - own); };
  }
};

// ---- Products -------------------------------------------------------------------------------------------------------

// rows (units,rows,columns) = Finish applied to a·b; columns are keys or, if b holds positions, distances
template <class Finish>
struct Dots {
  static constexpr Along A = Along::K, B = Along::K;
  float* rows;
  Input a, b;
  Finish finish;
  Group group;
  Tiling tiling;  // (rows,columns)

  int64_t blocks() const { return group.units * tiling.tiles(); }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    tile.batch = blockIdx.x / tiling.tiles();
    const int64_t unit = group.first_unit + tile.batch;
    product::Factor from = group.factor(a, unit);
    from.data += static_cast<int64_t>(group.begin) * from.stride;
    tiling.locate(tile, blockIdx.x % tiling.tiles(), from, A, group.factor(b, unit), B);
    const int seen = group.seen(b.layout, group.begin + static_cast<int>(tile.row) + tile.rows - 1);
    // Write zeros as far as a tile of Gathered reads at once in a row.
    if (tile.column >= seen + product::TILE_ROWS) return false;
    const bool any = tile.cut(0, group.shape.head_width, chunk);
    if (tile.column >= seen) tile.k_end = tile.k_begin;
    return any;
  }

  __device__ void store(const Tile& tile, const Sums& sum) const {
    const int64_t step = row_step(group.columns(b.layout));
    float* corner = rows + (tile.batch * group.rows() + tile.row) * step + tile.column;
    product::store_tile(corner, step, nullptr, !tile.first, tile, sum);
    if (!tile.last) return;
    product::finish_tile(tile, [&](int r) {
      const Row row(group, tile.batch * group.rows() + tile.row + r);
      float* to = corner + r * step;
      const int left = static_cast<int>(tile.column), seen = group.seen(b.layout, row.query) - left;
      return [=, of_key = finish.of_row(row, group.shape)](int column) {
        to[column] = column < seen ? of_key(to[column], left + column) : 0;
      };
    });
  }
};

// out_t = Σ over ascending columns of rows_t · b, times a factor: y, dq, dq_position
struct Weighted {
  static constexpr Along A = Along::K, B = Along::OUTPUT;
  Output out;
  const float* rows;
  Input b;
  float factor;
  const float* of_row;  // (B,heads,Q): one factor per query instead of `factor`; or null
  Group group;
  Tiling tiling;  // (rows,head_width)

  int64_t blocks() const { return group.units * tiling.tiles(); }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    tile.batch = blockIdx.x / tiling.tiles();
    const int step = static_cast<int>(row_step(group.columns(b.layout)));
    tiling.locate(tile, blockIdx.x % tiling.tiles(), {rows + tile.batch * group.rows() * step, step}, A,
                  group.factor(b, group.first_unit + tile.batch), B);
    const int last = group.begin + static_cast<int>(tile.row) + tile.rows - 1;
    return tile.cut(0, group.seen(b.layout, last), chunk);
  }

  __device__ void store(const Tile& tile, const Sums& sum) const {
    const int64_t unit = group.first_unit + tile.batch, query = group.begin + tile.row, step = group.step(out.layout);
    float* to = out.data + group.offset(out.layout, unit) + query * step + tile.column;
    const float* factors = of_row ? of_row + unit * group.shape.queries + query : nullptr;
    product::store_tile(to, step, nullptr, !tile.first, tile, sum);
    if (tile.last)
      product::finish_tile(tile, [&](int row) {
        return [=, factor = factors ? factors[row] : factor](int column) { to[row * step + column] *= factor; };
      });
  }
};

// out (+)= Σ over this group's ascending queries of rows_t · x_t for each column. After the last query the sum is
// multiplied by a factor. out: dk, dv, dpositions of each sample
struct Gathered {
  static constexpr Along A = Along::OUTPUT, B = Along::OUTPUT;
  Output out;
  const float* rows;
  Input x;
  float factor;
  Group group;
  Tiling tiling;  // (columns,head_width)

  int64_t blocks() const { return group.units * tiling.tiles(); }

  __device__ bool locate(Tile& tile, int64_t chunk) const {
    tile.batch = blockIdx.x / tiling.tiles();
    const int step = static_cast<int>(row_step(group.columns(out.layout)));
    // Count terms from query 0, so that the chain is cut at multiples of CHUNK.
    const float* weights = rows + (tile.batch * group.rows() - group.begin) * step;
    tiling.locate(tile, blockIdx.x % tiling.tiles(), {weights, step}, A, group.factor(x, group.first_unit + tile.batch),
                  B);
    const bool all = out.layout == Layout::PARTIAL || !group.shape.causal;
    return tile.cut(all ? 0 : tile.row, group.shape.queries, chunk);
  }

  __device__ void store(const Tile& tile, const Sums& sum) const {
    const int step = group.step(out.layout);
    float* to = out.data + group.offset(out.layout, group.first_unit + tile.batch) + tile.row * step + tile.column;
    product::store_tile(to, step, nullptr, !tile.first, tile, sum);
    if (tile.last && factor != 1)
      product::finish_tile(
          tile, [&](int row) { return [=, factor = factor](int column) { to[row * step + column] *= factor; }; });
  }
};

// ---- Kernels with one warp per row ---------------------------------------------------------------------------------

// Replaces the scores by e.
__global__ void softmax_rows(float* rows, float* top, float* inv_sum, Group g) {
  const int64_t n = row_of_warp();
  if (n >= static_cast<int64_t>(g.units) * g.rows()) return;
  const Row place(g, n);
  const int visible = g.shape.visible(place.query);
  float* row = rows + n * row_step(g.shape.keys);
  float largest =
      row[0];  // start of every lane, as on the CPU: a NaN in row[0] makes all of the row NaN, other NaNs are ignored
#pragma unroll 8
  for (int s = lane_index(); s < visible; s += WARP) largest = numerics::max(row[s], largest);
#pragma unroll
  for (int width = WARP / 2; width > 0; width /= 2)
    largest = numerics::max(__shfl_xor_sync(ALL_LANES, largest, width), largest);
  __syncwarp();  // all lanes have read row[0]
  const float sum = sum_lanes(visible, [&](float sum, int s) {
    const float e = weight(row[s] - largest);
    row[s] = e;
    return sum + e;
  });
  if (lane_index() != 0) return;
  top[place.of_queries(g.shape)] = largest;
  inv_sum[place.of_queries(g.shape)] = 1 / sum;
}

// along_t = dy_t·y_t
__global__ void output_products(float* along, const float* dy, const float* y, Group g) {
  const int64_t n = row_of_warp();
  if (n >= static_cast<int64_t>(g.units) * g.rows()) return;
  const Row place(g, n);
  const int64_t at = g.offset(Layout::OUTPUT, place.unit) + place.query * static_cast<int64_t>(g.shape.width());
  const float sum =
      sum_lanes(g.shape.head_width, [&](float sum, int c) { return numerics::fma(dy[at + c], y[at + c], sum); });
  if (lane_index() == 0) along[n] = sum;
}

// by_distance (units,rows,distances) = ds, indexed by distance instead of key; zero elsewhere
__global__ void place_by_distance(float* by_distance, const float* rows, Group g) {
  const int64_t n = row_of_warp();
  if (n >= static_cast<int64_t>(g.units) * g.rows()) return;
  const AttentionShape& s = g.shape;
  const int query = Row(g, n).query, of_key_0 = s.position(query) + s.nearest(), visible = s.visible(query);
#pragma unroll 4
  for (int distance = lane_index(); distance < s.distances(); distance += WARP) {
    const int key = of_key_0 - distance;
    by_distance[n * row_step(s.distances()) + distance] =
        key >= 0 && key < visible ? rows[n * row_step(s.keys) + key] : 0;
  }
}

// ---- Sums of biases and positions -----------------------------------------------------------------------------------

constexpr int THREADS = 128;

// partial (B,T,heads) (+)= the sum of ds over this group's queries; one thread per distance and unit
__global__ void sum_distances(float* partial, const float* rows, Group g) {
  const AttentionShape& s = g.shape;
  const int strips = (s.keys + THREADS - 1) / THREADS;
  const int64_t number = blockIdx.x / strips, unit = g.first_unit + number;
  const int distance = static_cast<int>(blockIdx.x % strips) * THREADS + static_cast<int>(threadIdx.x);
  if (distance >= g.end) return;
  float& to = partial[(unit / s.heads * s.keys + distance) * s.heads + unit % s.heads];
  float sum = distance < g.begin ? to : 0;
#pragma unroll 8
  for (int t = max(g.begin, distance); t < g.end; ++t)
    sum += rows[(number * g.rows() + t - g.begin) * row_step(s.keys) + t - distance];
  to = sum;
}

// sum = Σ_b parts_b if `write`, else sum += Σ_b parts_b
__global__ void add_parts(float* sum, const float* parts, int64_t size, int batch, bool write) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= size) return;
  float total = 0;
#pragma unroll 8
  for (int b = 0; b < batch; ++b) total += parts[b * size + i];
  sum[i] = write ? total : sum[i] + total;
}

// ---- Loop over the groups ------------------------------------------------------------------------------------------

// A group's scratch: rows: a; gradients: ds; by_distance: numbers by distance, or null; along: dy·y
struct Scratch {
  float *rows, *gradients, *by_distance, *along;
};

// Chooses how many units form a group.
class Plan {
 public:
  Plan(const ScratchLimits& limits, const AttentionInput& in, const AttentionShape& s, bool backward)
      : shape_(s),
        queries_(std::min(s.queries, CHUNK)),
        row_size_(int64_t{1} * queries_ * row_step(s.keys)),
        gradient_size_(backward ? row_size_ : 0),
        distance_size_(in.positions ? int64_t{1} * queries_ * row_step(s.distances()) : 0) {
    units_ = std::clamp<int64_t>(limits.pairs / (row_size_ + gradient_size_ + distance_size_), 1, all());
  }

  int64_t size() const { return units_ * (row_size_ + gradient_size_ + distance_size_ + queries_); }
  Scratch cut(float* memory) const {
    float* gradients = memory + units_ * row_size_;
    float* distances = gradients + units_ * gradient_size_;
    return {memory, gradients, distance_size_ > 0 ? distances : nullptr, distances + units_ * distance_size_};
  }
  template <class F>
  void for_groups(F f) const {
    for (int64_t unit = 0; unit < all(); unit += units_)
      for (int begin = 0; begin < shape_.queries; begin += queries_)
        f(Group{shape_, unit, static_cast<int>(std::min(units_, all() - unit)), begin,
                std::min(begin + queries_, shape_.queries)});
  }

 private:
  int64_t all() const { return static_cast<int64_t>(shape_.batch) * shape_.heads; }

  AttentionShape shape_;
  int queries_;  // at most, per group
  int64_t row_size_, gradient_size_, distance_size_, units_;
};

Input queries_of(const float* x) { return {x, Layout::QUERIES}; }
Input keys_of(const float* x) { return {x, Layout::KEYS}; }
Input output_of(const float* x) { return {x, Layout::OUTPUT}; }

template <class Finish>
void form_dots(float* rows, const Input& a, const Input& b, const Finish& finish, const Group& g, cudaStream_t stream) {
  product::run(Dots<Finish>{rows, a, b, finish, g, {g.rows(), g.columns(b.layout)}}, g.shape.head_width, stream);
}

// Returns the function from q·k to scores. First computes in the scratch what the distances add to the scores.
Score form_score(const Scratch& memory, const AttentionInput& in, const Group& g, cudaStream_t stream) {
  if (in.positions)
    form_dots(memory.by_distance, queries_of(in.q_position), {in.positions, Layout::POSITIONS}, Unchanged(), g, stream);
  return {memory.by_distance, in.bias, LOG2_E / numerics::sqrt(static_cast<float>(g.shape.head_width))};
}

void weigh(Output out, const float* rows, const Input& b, float factor, const float* of_row, const Group& g,
           cudaStream_t stream) {
  product::run(Weighted{out, rows, b, factor, of_row, g, {g.rows(), g.shape.head_width}}, g.columns(b.layout), stream);
}

void gather(Output out, const float* rows, const Input& x, float factor, const Group& g, cudaStream_t stream) {
  const Tiling tiling{g.columns(out.layout), g.shape.head_width};
  product::run_chunk(Gathered{out, rows, x, factor, g, tiling}, g.begin / CHUNK, stream);
}

}  // namespace

void Gpu::attention(real* y, real* top, real* inv_sum, const AttentionInput& in, const AttentionShape& shape) {
  const Plan plan(limits_, in, shape, false);
  AttentionShape last = shape;  // one decoded token: reserve its scratch now, so that it does not grow while decoding
  last.queries = 1;
  last.keys = shape.capacity;
  const Scratch memory = plan.cut(scratch(std::max(plan.size(), Plan(limits_, in, last, false).size())));
  plan.for_groups([&](const Group& g) {
    const int64_t rows = static_cast<int64_t>(g.units) * g.rows();
    form_dots(memory.rows, queries_of(in.q), keys_of(in.k), form_score(memory, in, g, stream_), g, stream_);
    LAUNCH_ROWS(softmax_rows, rows, stream_, memory.rows, top, inv_sum, g);
    weigh({y, Layout::OUTPUT}, memory.rows, keys_of(in.v), 1, inv_sum, g, stream_);
  });
}

void Gpu::attention_backward(const AttentionGradient& out, const real* dy, const real* y, const real* top,
                             const real* inv_sum, const AttentionInput& in, const AttentionShape& shape) {
  const Plan plan(limits_, in, shape, true);
  const Scratch memory = plan.cut(scratch(plan.size()));
  const float factor = 1 / numerics::sqrt(static_cast<float>(shape.head_width));
  const float* ds = memory.gradients;
  plan.for_groups([&](const Group& g) {
    const int64_t rows = static_cast<int64_t>(g.units) * g.rows();
    const Weight a{form_score(memory, in, g, stream_), top, inv_sum};
    form_dots(memory.rows, queries_of(in.q), keys_of(in.k), a, g, stream_);
    gather({out.dv, Layout::KEYS}, memory.rows, output_of(dy), 1, g, stream_);
    LAUNCH_ROWS(output_products, rows, stream_, memory.along, dy, y, g);
    form_dots(memory.gradients, output_of(dy), keys_of(in.v), ScoreGradient{memory.rows, memory.along}, g, stream_);
    weigh({out.dq, Layout::QUERIES}, ds, keys_of(in.k), factor, nullptr, g, stream_);
    gather({out.dk, Layout::KEYS}, ds, queries_of(in.q), factor, g, stream_);
    if (out.dbias)
      LAUNCH(sum_distances, grid_blocks(int64_t{1} * g.units * blocks_for(shape.keys, THREADS)), THREADS, 0, stream_,
             out.partial, ds, g);
    if (!in.positions) return;
    LAUNCH_ROWS(place_by_distance, rows, stream_, memory.by_distance, ds, g);
    weigh({out.dq_position, Layout::QUERIES}, memory.by_distance, {in.positions, Layout::POSITIONS}, factor, nullptr, g,
          stream_);
    gather({out.partial, Layout::PARTIAL}, memory.by_distance, queries_of(in.q_position), factor, g, stream_);
  });
  const auto add = [&](float* sum, int64_t size, bool write) {
    LAUNCH(add_parts, blocks_for(size, THREADS), THREADS, 0, stream_, sum, out.partial, size, shape.batch, write);
  };
  if (out.dbias) add(out.dbias, static_cast<int64_t>(shape.keys) * shape.heads, false);
  if (in.positions) add(out.dpositions, static_cast<int64_t>(shape.distances()) * shape.width(), true);
}

// ---- Position biases ------------------------------------------------------------------------------------------------

namespace {

__global__ void kerple_rows(float* bias, const float* r1, const float* r2, int64_t elements, int heads) {
  const int64_t i = element_of_thread<THREADS>();
  if (i >= elements) return;
  const int h = static_cast<int>(i % heads);
  bias[i] = -r1[h] * numerics::log1p(r2[h] * static_cast<float>(i / heads));
}

// One warp per head.
__global__ void kerple_backward(float* dr1, float* dr2, const float* dbias, const float* r1, const float* r2, int T,
                                int heads) {
  const int64_t h = row_of_warp();
  if (h >= heads) return;
  const float r = r2[h];
  const float logarithms = sum_lanes(T, [&](float sum, int n) {
    return numerics::fma(dbias[static_cast<int64_t>(n) * heads + h], numerics::log1p(r * static_cast<float>(n)), sum);
  });
  const float quotients = sum_lanes(T, [&](float sum, int n) {
    const float distance = static_cast<float>(n);
    return numerics::fma(dbias[static_cast<int64_t>(n) * heads + h], distance / numerics::fma(r, distance, 1.0f), sum);
  });
  if (lane_index() != 0) return;
  dr1[h] -= logarithms;
  dr2[h] -= r1[h] * quotients;
}

}  // namespace

void Gpu::kerple_bias(real* bias, const real* r1, const real* r2, int T, int heads) {
  const int64_t elements = static_cast<int64_t>(T) * heads;
  LAUNCH(kerple_rows, blocks_for(elements, THREADS), THREADS, 0, stream_, bias, r1, r2, elements, heads);
}

void Gpu::kerple_bias_backward(real* dr1, real* dr2, const real* dbias, const real* r1, const real* r2, int T,
                               int heads) {
  LAUNCH_ROWS(kerple_backward, heads, stream_, dr1, dr2, dbias, r1, r2, T, heads);
}

}  // namespace petroglyph
