// Softmax attention: y (B,Q,H) from q (B,Q,H), k and v (B,T,H), in heads of d channels; ROWS queries at a time. The
// catalogue has the formulas and the order of every sum, reference/attention.cpp the loops that define them.
//
// Forward. The scores (ROWS, keys) of ROWS queries are in the thread's scratch. Causal attention skips the tiles of
// scores that no query of the ROWS sees. In a tile that only some of them see, the weights of the others are zero; a
// zero term does not change a chain. Keys and values are packed once for all queries of a task; decoding, with few
// queries, reads them in place.
//
// Backward. A task is one head of one sample. It processes the queries in chunks of CHUNK, because the chains over
// queries are cut there. The weights of one chunk with all keys are the largest buffer, 4 MB at T = 1024. The gradients
// of the scores overwrite them.

#include <algorithm>

#include "cpu/cpu.h"
#include "cpu/lanes.h"
#include "cpu/loops.h"
#include "cpu/product.h"
#include "cpu/scratch.h"

namespace petroglyph {

namespace {

using numerics::fma;

constexpr int64_t ROWS = FEW_ROWS;  // queries, or in the backward pass keys, of one product

// One sample and head, as offsets into the arrays.
struct Head {
  const AttentionShape& shape;
  int64_t sample, index, query, key, out, row;

  Head(const AttentionShape& s, int64_t number)
      : shape(s),
        sample(number / s.heads),
        index(number % s.heads),
        query(sample * s.queries * s.query_step + index * s.head_width),
        key(s.key_offset(sample, index)),
        out(sample * s.queries * s.width() + index * s.head_width),
        row(number * s.queries) {}
};

// Calls f(s) for all s < n and on to the next multiple of LANES; rows in the scratch are padded to that length.
template <class F>
void for_blocks(int n, F f) {
  for (int begin = 0; begin < n; begin += LANES)
#pragma omp simd
    for (int l = 0; l < LANES; ++l) f(begin + l);
}

// Computes the scores of one head, for the forward and the backward pass.
class Scores {
 public:
  // queries, keys: the number of queries of the task, and of the keys that they see
  Scores(const AttentionInput& in, const Head& head, int64_t queries, int64_t keys, Parts& parts)
      : in_(in),
        head_(head),
        shape_(head.shape),
        few_(queries <= MOST_FEW),
        scale_(LOG2_E / numerics::sqrt(static_cast<real>(shape_.head_width))) {
    const int width = shape_.head_width;
    if (!few_) keys_ = pack(parts.take(packed_size(width, keys)), keys_view(), width, keys);
    if (in.bias) {
      bias_ = parts.take(shape_.keys + LANES);
      for (int64_t n = 0; n < shape_.keys; ++n)
        bias_[shape_.keys - 1 - n] = LOG2_E * in.bias[n * shape_.heads + head.index];
    }
    if (in.positions) {
      const int64_t distances = shape_.distances();
      if (!few_) positions_ = pack(parts.take(packed_size(width, distances)), positions_view(), width, distances);
      by_distance_step_ = row_step(distances);
      by_distance_ = parts.take(ROWS * by_distance_step_);
    }
  }

  // rows (last − first + 1, step) = score · log₂e of the queries first … last, at most ROWS, with the keys that each
  // sees. The values behind those keys are not scores.
  void form(real* rows, int64_t step, int first, int last) {
    const int count = last - first + 1, width = shape_.head_width;
    const real* q = in_.q + head_.query + static_cast<int64_t>(first) * shape_.query_step;
    multiply_with({rows, step, {q, shape_.query_step, 1}, keys_view(), count, shape_.visible(last), width, Into::WRITE},
                  keys_);
    if (in_.positions) {
      const View own{in_.q_position + head_.query + static_cast<int64_t>(first) * shape_.query_step, shape_.query_step,
                     1};
      const int64_t distances = shape_.position(last) + shape_.nearest() + 1;
      multiply_with({by_distance_, by_distance_step_, own, positions_view(), count, distances, width, Into::WRITE},
                    positions_);
    }
    for (int i = 0; i < count; ++i) finish(rows + i * step, first + i, by_distance_ + i * by_distance_step_);
  }

 private:
  View keys_view() const { return {in_.k + head_.key, 1, shape_.key_step}; }
  View positions_view() const { return {in_.positions + head_.index * shape_.head_width, 1, shape_.width()}; }
  void multiply_with(const Product& p, const Packed& b) const { return few_ ? multiply_few(p) : multiply(p, b); }
  void finish(real* row, int query, const real* by_distance) const {
    const int visible = shape_.visible(query), position = shape_.position(query);
    if (in_.positions) {
      const real* own = by_distance + position + shape_.nearest();  // at key 0; the distance decreases with the key
      for (int s = 0; s < visible; ++s) row[s] += own[-s];
    }
    if (in_.bias) {
      const real* own = bias_ + shape_.keys - 1 - position;
      for_blocks(visible, [&](int s) { row[s] = fma(row[s], scale_, own[s]); });
    } else {
      for_blocks(visible, [&](int s) { row[s] *= scale_; });
    }
  }

  const AttentionInput& in_;
  const Head& head_;
  const AttentionShape& shape_;
  bool few_;  // few queries: nothing is packed
  real scale_;
  Packed keys_{}, positions_{};
  real* bias_ = nullptr;  // LOG2_E · bias by descending distance, so a query's biases are in the order of its keys
  real* by_distance_ = nullptr;  // (ROWS, distances) q_position · positions
  int64_t by_distance_step_ = 0;
};

// An upper bound of the scratch that Scores uses.
int64_t scores_size(const AttentionInput& in, const AttentionShape& shape) {
  int64_t size = packed_size(shape.head_width, shape.keys) + 16;
  if (in.bias) size += shape.keys + LANES + 16;
  if (in.positions) size += packed_size(shape.head_width, shape.distances()) + ROWS * row_step(shape.distances()) + 32;
  return size;
}

// 2^x for x ≤ 0, but at least 2^−126, which is negligible beside the largest weight, 1. A NaN remains a NaN.
inline real weight(real x) { return numerics::exp2_in_range(numerics::max(real(-126), x)); }

// Replaces the scores by e = 2^(score − top), and the values up to the next multiple of LANES by zeros; returns 1 / Σ
// e.
real exponentials(real* row, int visible, real top) {
  alignas(64) real lane[LANES] = {};
  for (int begin = 0; begin < visible; begin += LANES)
#pragma omp simd
    for (int l = 0; l < LANES; ++l) {
      const real e = begin + l < visible ? weight(row[begin + l] - top) : 0;
      row[begin + l] = e;
      lane[l] += e;
    }
  return 1 / fold_lanes(lane);
}

real largest(const real* row, int visible) {
  alignas(64) real lane[LANES];
  std::fill_n(lane, LANES, row[0]);
  for (int begin = 0; begin < visible; begin += LANES)
#pragma omp simd
    for (int l = 0; l < LANES; ++l) {
      const real score = begin + l < visible ? row[begin + l] : row[0];
      lane[l] = numerics::max(score, lane[l]);
    }
  return fold_largest(lane);
}

int64_t work_of(const AttentionShape& shape) {
  return int64_t{2} * shape.batch * shape.queries * shape.keys * shape.width();
}

}  // namespace

// ---- Forward --------------------------------------------------------------------------------------------------------

void Cpu::attention(real* y, real* top, real* inv_sum, const AttentionInput& in, const AttentionShape& shape) {
  const int width = shape.head_width;
  const int64_t heads = static_cast<int64_t>(shape.batch) * shape.heads;
  // A task is all queries of a head, so its keys and values are packed once; if there are too few heads for all
  // threads, 2·ROWS queries.
  const int64_t queries = heads >= 2 * threads_.count ? shape.queries : std::min<int64_t>(shape.queries, 2 * ROWS);
  const int64_t tasks = (shape.queries + queries - 1) / queries;
  const int64_t step = row_step(shape.keys);
  AttentionShape longest = shape;  // of the KV cache's capacity, so that decoding does not reallocate at every token
  longest.keys = shape.capacity;
  reserve_scratch(scores_size(in, longest) + packed_size(longest.keys, width) + ROWS * row_step(longest.keys) + 32);
  const auto one = [&](int64_t task, int64_t, int thread) {
    const Head head(shape, task / tasks);
    const int begin = static_cast<int>(task % tasks * queries);
    const int end = static_cast<int>(std::min<int64_t>(begin + queries, shape.queries));
    const int keys = shape.visible(end - 1);
    Parts parts(scratch(thread));
    Scores scores(in, head, end - begin, keys, parts);
    const Packed values =
        pack(parts.take(packed_size(keys, width)), {in.v + head.key, shape.key_step, 1}, keys, width, end - begin);
    real* rows = parts.take(ROWS * step);
    for (int first = begin; first < end; first += ROWS) {
      const int last = std::min<int>(first + ROWS, end) - 1, seen = shape.visible(last);
      scores.form(rows, step, first, last);
      for (int t = first; t <= last; ++t) {
        real* row = rows + (t - first) * step;
        const int visible = shape.visible(t);
        top[head.row + t] = largest(row, visible);
        inv_sum[head.row + t] = exponentials(row, visible, top[head.row + t]);
        if (visible < seen) std::fill(row + visible, row + seen, real(0));
      }
      real* out = y + head.out + static_cast<int64_t>(first) * shape.width();
      multiply({out, shape.width(), {rows, step, 1}, {}, last - first + 1, width, seen, Into::WRITE}, values);
      for (int t = first; t <= last; ++t, out += shape.width())
        for (int c = 0; c < width; ++c) out[c] *= inv_sum[head.row + t];
    }
  };
  parallel(threads_, heads * tasks, 1, work_of(shape), one, "attention");
}

// ---- Backward -------------------------------------------------------------------------------------------------------

namespace {

// The backward pass of one head. There are as many queries as keys: row t of every array belongs to position t.
class HeadBackward {
 public:
  HeadBackward(const AttentionGradient& out, const real* dy, const real* y, const real* top, const real* inv_sum,
               const AttentionInput& in, const Head& head, real* scratch)
      : out_(out),
        dy_(dy + head.out),
        y_(y + head.out),
        top_(top + head.row),
        inv_sum_(inv_sum + head.row),
        in_(in),
        head_(head),
        shape_(head.shape),
        T_(shape_.keys),
        width_(shape_.head_width),
        step_(row_step(T_)),
        scale_(1 / numerics::sqrt(static_cast<real>(width_))),
        parts_(scratch),
        scores_(in, head, T_, T_, parts_) {
    const int64_t chunk = std::min<int64_t>(T_, CHUNK);
    values_ = pack(parts_.take(packed_size(width_, T_)), {in.v + head.key, 1, shape_.key_step}, width_, T_);
    keys_ = pack(parts_.take(packed_size(T_, width_)), {in.k + head.key, shape_.key_step, 1}, T_, width_);
    weights_ = parts_.take(chunk * step_);
    gradients_ = parts_.take(ROWS * step_);
    chunk_packed_ = parts_.take(packed_size(chunk, width_));
    if (out.dbias) std::fill_n(bias_sums_ = parts_.take(T_ + LANES), T_ + LANES, real(0));
    if (!in.positions) return;
    distances_ = shape_.distances();
    positions_ = pack(parts_.take(packed_size(distances_, width_)),
                      {in.positions + head.index * width_, shape_.width(), 1}, distances_, width_);
    by_distance_step_ = row_step(distances_);
    by_distance_ = parts_.take(chunk * by_distance_step_);
  }

  static int64_t scratch_size(const AttentionInput& in, const AttentionShape& s) {
    const int64_t chunk = std::min<int64_t>(s.keys, CHUNK);
    int64_t size = scores_size(in, s) + packed_size(s.head_width, s.keys) + packed_size(s.keys, s.head_width) +
                   (chunk + ROWS) * row_step(s.keys) + packed_size(chunk, s.head_width) + 7 * 16;
    if (in.bias) size += s.keys + LANES + 16;
    if (in.positions) size += packed_size(s.distances(), s.head_width) + chunk * row_step(s.distances());
    return size;
  }

  void run() {
    for (int begin = 0; begin < T_; begin += static_cast<int>(CHUNK)) {
      const int end = std::min<int>(begin + CHUNK, T_);
      form_weights(begin, end);
      over_queries(out_.dv + head_.key, shape_.key_step, dy_, shape_.width(), begin, end);
      weights_to_gradients(begin, end);
      if (out_.dbias) add_bias_gradient(begin, end);
      query_gradients(begin, end);
      over_queries(out_.dk + head_.key, shape_.key_step, in_.q + head_.query, shape_.query_step, begin, end);
      if (in_.positions) position_gradients(begin, end);
    }
    scale_rows(out_.dk + head_.key, shape_.key_step, T_);
    if (out_.dbias) write_bias_gradient();
    if (in_.positions) scale_rows(dpositions(), shape_.width(), distances_);
  }

 private:
  template <class F>
  void for_rows(int begin, int end, F f) {
    for (int first = begin; first < end; first += ROWS) f(first, std::min<int>(first + ROWS, end) - 1);
  }
  real* row(int begin, int t) { return weights_ + (t - begin) * step_; }

  // weights_ = a, the softmax, with zeros for keys that only other queries of the same ROWS see
  void form_weights(int begin, int end) {
    for_rows(begin, end, [&](int first, int last) {
      const int seen = shape_.visible(last);
      scores_.form(row(begin, first), step_, first, last);
      for (int t = first; t <= last; ++t) {
        real* a = row(begin, t);
        const int visible = shape_.visible(t);
        const real top = top_[t], inv_sum = inv_sum_[t];
        for_blocks(seen, [&](int s) { a[s] = s < visible ? weight(a[s] - top) * inv_sum : 0; });
      }
    });
  }

  // to_s (+)= Σ_t weights_ts x_t for all keys s, over the chunk's queries t
  void over_queries(real* to, int64_t to_step, const real* x, int64_t x_step, int begin, int end) {
    const Packed packed = pack(chunk_packed_, {x + begin * x_step, x_step, 1}, end - begin, width_);
    const auto some_keys = [&](int first, int last) {
      const int from = shape_.causal ? std::max(first, begin) : begin;  // the first query that sees these keys
      const View weights{row(begin, from) + first, 1, step_};
      const Into into = first < begin || (begin > 0 && !shape_.causal) ? Into::ADD : Into::WRITE;
      multiply({to + first * to_step, to_step, weights, {}, last - first + 1, width_, end - from, into}, packed,
               from - begin);
    };
    for_rows(0, begin, some_keys);  // all queries of the chunk see these keys
    for_rows(begin, shape_.visible(end - 1), some_keys);
  }

  // weights_ = ds, the gradient of the scores
  void weights_to_gradients(int begin, int end) {
    for_rows(begin, end, [&](int first, int last) {
      const int seen = shape_.visible(last);
      const View dy{dy_ + first * int64_t(shape_.width()), shape_.width(), 1};
      multiply({gradients_, step_, dy, {}, last - first + 1, seen, width_, Into::WRITE}, values_);
      for (int t = first; t <= last; ++t) {
        const real *own_dy = dy_ + t * int64_t(shape_.width()), *own_y = y_ + t * int64_t(shape_.width());
        const real along = dot(own_dy, own_y, width_);
        real* a = row(begin, t);
        const real* da = gradients_ + (t - first) * step_;
        const int visible = shape_.visible(t);
        for_blocks(seen, [&](int s) { a[s] = s < visible ? a[s] * (da[s] - along) : 0; });
      }
    });
  }

  void query_gradients(int begin, int end) {
    for_rows(begin, end, [&](int first, int last) {
      real* dq = out_.dq + head_.query + first * int64_t(shape_.query_step);
      const View ds{row(begin, first), step_, 1};
      const int rows = last - first + 1;
      multiply({dq, shape_.query_step, ds, {}, rows, width_, shape_.visible(last), Into::WRITE}, keys_);
      scale_rows(dq, shape_.query_step, rows);
    });
  }

  void add_bias_gradient(int begin, int end) {
    for (int t = begin; t < end; ++t) {
      const real* ds = row(begin, t);
      real* sums = bias_sums_ + T_ - 1 - t;  // at key 0; the distance decreases with the key
      for_blocks(t + 1, [&](int s) { sums[s] += ds[s]; });
    }
  }

  // Writes this sample's and head's part of partial (B,T,heads).
  void write_bias_gradient() {
    real* partial = out_.partial + head_.sample * T_ * shape_.heads + head_.index;
    for (int n = 0; n < T_; ++n) partial[n * int64_t(shape_.heads)] = bias_sums_[T_ - 1 - n];
  }

  real* dpositions() { return out_.partial + head_.sample * distances_ * shape_.width() + head_.index * width_; }

  void position_gradients(int begin, int end) {
    for (int t = begin; t < end; ++t) {
      real* by_distance = by_distance_ + (t - begin) * by_distance_step_;
      const real* ds = row(begin, t);
      const int nearest = t + shape_.nearest(), visible = shape_.visible(t);  // nearest: the index of key 0's distance
      std::fill_n(by_distance, distances_, real(0));
      for (int s = 0; s < visible; ++s) by_distance[nearest - s] = ds[s];
    }
    for_rows(begin, end, [&](int first, int last) {
      real* dq = out_.dq_position + head_.query + first * int64_t(shape_.query_step);
      const View ds{by_distance_ + (first - begin) * by_distance_step_, by_distance_step_, 1};
      const int rows = last - first + 1, distances = last + shape_.nearest() + 1;
      multiply({dq, shape_.query_step, ds, {}, rows, width_, distances, Into::WRITE}, positions_);
      scale_rows(dq, shape_.query_step, rows);
    });
    const real* q = in_.q_position + head_.query;
    const Packed packed =
        pack(chunk_packed_, {q + begin * int64_t(shape_.query_step), shape_.query_step, 1}, end - begin, width_);
    for_rows(0, distances_, [&](int first, int last) {
      real* to = dpositions() + first * int64_t(shape_.width());
      const View ds{by_distance_ + first, 1, by_distance_step_};
      const Into into = begin > 0 ? Into::ADD : Into::WRITE;
      multiply({to, shape_.width(), ds, {}, last - first + 1, width_, end - begin, into}, packed);
    });
  }

  void scale_rows(real* x, int64_t step, int64_t rows) const {
    for (int64_t n = 0; n < rows; ++n)
      for (int c = 0; c < width_; ++c) x[n * step + c] *= scale_;
  }

  const AttentionGradient& out_;
  const real *dy_, *y_, *top_, *inv_sum_;
  const AttentionInput& in_;
  const Head& head_;
  const AttentionShape& shape_;
  int T_, width_;
  int64_t step_;
  real scale_;
  Parts parts_;
  Scores scores_;
  Packed values_{}, keys_{}, positions_{};  // values_ (d,T) = vᵀ; keys_ (T,d); positions_ (distances,d)
  real *weights_, *gradients_, *chunk_packed_, *by_distance_ = nullptr;
  real* bias_sums_ = nullptr;  // Σ ds by descending distance
  int64_t by_distance_step_ = 0;
  int distances_ = 0;
};

// sum = Σ_b part_b or sum += Σ_b part_b, in ascending order of b
void add_parts(real* sum, const real* parts, int64_t size, int batch, const Threads& threads, bool write) {
  parallel(
      threads, size, 4096, size * batch * PASS,
      [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) {
          real total = 0;
          for (int b = 0; b < batch; ++b) total += parts[b * size + i];
          sum[i] = write ? total : sum[i] + total;
        }
      },
      "attention_backward");
}

}  // namespace

void Cpu::attention_backward(const AttentionGradient& out, const real* dy, const real* y, const real* top,
                             const real* inv_sum, const AttentionInput& in, const AttentionShape& shape) {
  reserve_scratch(HeadBackward::scratch_size(in, shape));
  const auto one = [&](int64_t number, int64_t, int thread) {
    const Head head(shape, number);
    HeadBackward(out, dy, y, top, inv_sum, in, head, scratch(thread)).run();
  };
  parallel(threads_, static_cast<int64_t>(shape.batch) * shape.heads, 1, 3 * work_of(shape), one, "attention_backward");
  const int64_t T = shape.keys;
  if (out.dbias) add_parts(out.dbias, out.partial, T * shape.heads, shape.batch, threads_, false);
  if (in.positions)
    add_parts(out.dpositions, out.partial, shape.distances() * int64_t(shape.width()), shape.batch, threads_, true);
}

// ---- Position biases ------------------------------------------------------------------------------------------------

void Cpu::kerple_bias(real* bias, const real* r1, const real* r2, int T, int heads) {
  parallel_rows(threads_, T, 64, int64_t{1} * T * heads * FUNCTION, [&](int64_t n, int) {
    for (int h = 0; h < heads; ++h) bias[n * heads + h] = -r1[h] * numerics::log1p(r2[h] * static_cast<real>(n));
  });
}

void Cpu::kerple_bias_backward(real* dr1, real* dr2, const real* dbias, const real* r1, const real* r2, int T,
                               int heads) {
  for (int h = 0; h < heads; ++h) {
    const real r = r2[h];
    dr1[h] -= sum_lanes(T, [&](real sum, int64_t n) {
      return fma(dbias[n * heads + h], numerics::log1p(r * static_cast<real>(n)), sum);
    });
    dr2[h] -= r1[h] * sum_lanes(T, [&](real sum, int64_t n) {
                const real distance = static_cast<real>(n);
                return fma(dbias[n * heads + h], distance / fma(r, distance, real(1)), sum);
              });
  }
}

}  // namespace petroglyph
