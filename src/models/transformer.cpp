// The Transformer: softmax attention between blocks' MLPs, with every way of telling positions that its history has tried.
// Vaswani et al. 2017; its form without positions and why that works: Irie, "Why Are Positional Encodings Nonessential for
// Deep Autoregressive Transformers?" (equation numbers). The block around it: models/transformer_body.h.
//
//   q, k, v = W_qkv r + b_qkv, of the block's normalized x, r = norm_1(x)      eq. 1
//   score_ts = q_t·k_s / √d for each head of d channels, and what the position scheme says
//   a_ts = exp(score_ts) / Σ_s' exp(score_ts') over s' ≤ t, or over all s' where causal is false
//   y_t = Σ_s a_ts v_s                                                         eq. 4
//
// Position schemes:
//   none         with two causal layers or more the mask alone tells orders apart
//   learned, sinusoidal        a vector added to the embedding
//   alibi        score − slope_h (t−s), slope_h = 2^(−8(h+1)/heads), or as published   Press et al. 2022
//   t5           score + table[bucket(t−s)][h]                                 Raffel et al. 2020, theirs without 1/√d
//   kerple       score − r1_h log(1 + r2_h (t−s))                              Chi et al. 2022
//   xl           score = ((q_t + u)·k_s + (q_t + v)·W_R R_{t−s}) / √d          Dai et al. 2019
//                u, v: two vectors of each head, v not the values; R_n: the sinusoids of distance n
// alibi, t5 and kerple are one number bias_n for each head and distance n = t−s, so that attention reads a table (T,heads), and
// for t5 and kerple gives its gradient, which they pass on to their parameters; one table serves all blocks.
//
// The backward pass. Of (T,T) nothing is kept: from the largest score of a row and Σ exp, both kept, a_ts is formed again as
// exactly the number it was. With da_ts = dy_t·v_s the derivative of softmax, ∂a_s/∂score_s' = a_s (δ_ss' − a_s'), makes of it
// the gradient of score_ts,
//   ds_ts = a_ts (da_ts − Σ_s' a_ts' da_ts')      and Σ_s' a_ts' (dy_t·v_s') = dy_t·y_t      ← a number a row, from what is kept
//   dv_s = Σ_t a_ts dy_t     dq_t = Σ_s ds_ts k_s / √d     dk_s = Σ_t ds_ts q_t / √d     dbias_n = Σ_{t−s=n} ds_ts
// Of what the table was made of: t5, dtable[b][h] = Σ dbias_n over the n of bucket b;
//   kerple, dr1 = −Σ_n dbias_n log(1 + r2 n),   dr2 = −Σ_n dbias_n r1 n / (1 + r2 n)
// For xl the scores are linear in q_t + u, q_t + v, k and P_n = W_R R_n:
//   d(q_t+u) = Σ_s ds_ts k_s / √d     d(q_t+v) = Σ_s ds_ts P_{t−s} / √d     dP_n = Σ_{t−s=n} ds_ts (q_t+v) / √d
//   dq = d(q+u) + d(q+v)     of the two vectors du = Σ d(q+u), dv = Σ d(q+v)     dW_R = Σ_n dP_n R_nᵀ

#include "models/models.h"
#include "models/transformer_body.h"

namespace petroglyph {

namespace {

class SoftmaxAttention {
 public:
  static constexpr bool FIXED_STATE = false;
  struct Saved {
    Tensor top, inv_sum;  // (B,heads,T) each
    Tensor positions;     // (distances,D): P, xl only
  };
  struct Cache {
    Tensor keys;       // (B,2,heads,capacity,head_width): k and v of all positions so far
    Tensor positions;  // (capacity,D): xl only
  };

  static TransformerConfig config(ConfigReader& reader) { return {reader, {"alibi", "t5", "kerple", "xl"}}; }

  SoftmaxAttention(ConfigReader&, const TransformerConfig& config, Parameters& parameters, Ops& ops)
      : config_(config), parameters_(parameters), ops_(ops) {
    const int heads = config.heads;
    // T5 draws its table with 1/√width. KERPLE's two numbers are positive and of the order of 1 at the start; nothing keeps them
    // so, and with r2 at −1/(T − 1) or below the bias of the farthest key is infinite or NaN, which stops training.
    if (config.position == "t5")
      t5_ = &parameters.add("relative_bias.weight", {T5_BUCKETS, heads},
                            Init::normal(1 / numerics::sqrt(static_cast<real>(config.width))));
    if (config.position == "kerple") {
      r1_ = &parameters.add("kerple.r1", {heads}, Init::ones());
      r2_ = &parameters.add("kerple.r2", {heads}, Init::ones());
    }
  }

  void add_block(const std::string& prefix) {
    if (!xl()) return;
    const int D = config_.width;
    const Init init = Init::normal(WEIGHT_DEVIATION);
    const Shape heads = {config_.heads, D / config_.heads};
    relative_.push_back({&parameters_.add(prefix + "relative.weight", {D, D}, init),
                         &parameters_.add(prefix + "u", heads, init), &parameters_.add(prefix + "v", heads, init)});
  }

  size_t layers(int) const { return static_cast<size_t>(config_.blocks); }

  void prepare(const Piece& p);
  void forward(real* y, real* qkv, Saved& kept, Cache* cache, size_t block, const Piece& p);
  void begin_backward(const Piece& p);
  void backward(real* dqkv, real* dy, const real* y, const real* qkv, Saved& kept, size_t block, const Piece& p);
  void end_backward(const Piece& p);
  std::vector<real> map(const real* qkv, Saved& kept, size_t block, const Piece& p, int sample);

 private:
  struct Relative {
    Parameter *weight, *u, *v;  // (D,D) the rows grouped by head, (heads,d), (heads,d)
  };

  bool xl() const { return config_.position == "xl"; }
  bool biased() const { return config_.position == "alibi" || learns_bias(); }
  bool learns_bias() const { return t5_ || r1_; }
  // Distances that a sequence of T positions has, and their rows R: 0 … T−1, or 1−T … T−1.
  int64_t distances(int T) const { return config_.causal ? T : 2 * T - 1; }
  const real* waves(int T) const {
    return waves_.data() + (config_.causal ? 0 : int64_t(longest_ - T) * config_.width);
  }

  void relative_forward(Tensor& positions, const Relative& r, const Piece& p);
  void relative_backward(real* dqkv, const AttentionGradient& gradient, const Relative& r, const Piece& p);
  void append(Tensor& cache, const real* qkv, const Piece& p);
  AttentionShape shape(const Piece& p, bool cached) const;
  AttentionInput input(const real* qkv, const real* positions, const Relative* r, const Piece& p);

  const TransformerConfig& config_;
  Parameters& parameters_;
  Ops& ops_;
  Parameter* t5_ = nullptr;                  // (buckets,heads)
  Parameter *r1_ = nullptr, *r2_ = nullptr;  // (heads) each
  std::vector<Relative> relative_;           // of each block
  Tensor bias_, dbias_;                      // (T,heads), or more rows; no dbias_ where the bias is not learned
  Tokens buckets_;                           // (T): t5's
  Tensor waves_;                             // (distances,D): R for sequences up to the longest so far, xl only
  int longest_ = 0;
  Tensor content_, position_;                 // (N,D): q + u and q + v
  Tensor dcontent_, dposition_, dpositions_;  // (N,D), (N,D), (distances,D)
  Tensor partial_;                            // (B,distances,D) of xl, (B,T,heads) of a learned bias
};

// The tables for p.capacity positions.
void SoftmaxAttention::prepare(const Piece& p) {
  const int T = p.capacity, heads = config_.heads;
  if (xl() && T > longest_) {
    waves_.resize(ops_, {distances(T), config_.width});
    waves_.upload(sinusoids(config_.causal ? 0 : 1 - T, static_cast<int>(distances(T)), config_.width));
    longest_ = T;
  }
  if (!biased()) return;
  const bool longer = bias_.size() < static_cast<int64_t>(T) * heads;
  if (longer) bias_.resize(ops_, {T, heads});
  if (r1_) {
    ops_.kerple_bias(bias_.data(), r1_->value, r2_->value, T, heads);
  } else if (t5_) {
    if (longer) {
      buckets_.resize(ops_, {T});
      buckets_.upload(t5_buckets(T));
    }
    ops_.embedding(bias_.data(), t5_->value, nullptr, buckets_.data(), 0, 1, T, heads);
  } else if (longer) {
    bias_.upload(alibi_bias(T, heads, config_.published_slopes));
  }
}

AttentionShape SoftmaxAttention::shape(const Piece& p, bool cached) const {
  const int D = config_.width, width = D / config_.heads;
  return {p.batch,        p.count,          p.first + p.count,      p.capacity, config_.heads, width,
          config_.causal, xl() ? D : 3 * D, cached ? width : 3 * D, cached};
}

// Keys and values as they lie in qkv.
AttentionInput SoftmaxAttention::input(const real* qkv, const real* positions, const Relative* r, const Piece& p) {
  const int D = config_.width;
  AttentionInput in{qkv, qkv + D, qkv + 2 * D, biased() ? bias_.data() : nullptr, nullptr, nullptr};
  if (!r) return in;
  content_.resize(ops_, {p.rows(), D});
  position_.resize(ops_, {p.rows(), D});
  ops_.add_row(content_.data(), qkv, 3 * D, r->u->value, p.rows(), D);
  ops_.add_row(position_.data(), qkv, 3 * D, r->v->value, p.rows(), D);
  in.q = content_.data();
  in.q_position = position_.data();
  in.positions = positions;
  return in;
}

void SoftmaxAttention::relative_forward(Tensor& positions, const Relative& r, const Piece& p) {
  const int D = config_.width;
  const int64_t rows = distances(p.capacity);
  if (p.stream && positions.size() > 0) return;  // the same for all pieces
  positions.resize(ops_, {rows, D});
  ops_.linear(positions.data(), waves(p.capacity), r.weight->value, nullptr, rows, D, D, Into::WRITE);
}

// Of qkv (B,count,3,heads,head_width) the k and v to the cache, a position or a head at a time. There those of a head lie side by
// side, because a token reads one head after the other.
void SoftmaxAttention::append(Tensor& cache, const real* qkv, const Piece& p) {
  const int D = config_.width, heads = 2 * config_.heads, width = D / config_.heads;
  cache.resize(ops_, {p.batch, heads, p.capacity, width});
  const size_t piece = width * sizeof(real), position = 3 * D * sizeof(real), head = piece * p.capacity;
  for (int b = 0; b < p.batch; ++b) {
    real* to = cache.data() + (static_cast<int64_t>(b) * heads * p.capacity + p.first) * width;
    const real* from = qkv + static_cast<int64_t>(b) * p.count * 3 * D + D;
    if (p.count < heads)
      for (int64_t t = 0; t < p.count; ++t) ops_.copy(to + t * width, head, from + t * 3 * D, piece, piece, heads);
    else
      for (int64_t h = 0; h < heads; ++h)
        ops_.copy(to + h * p.capacity * width, piece, from + h * width, position, piece, p.count);
  }
}

void SoftmaxAttention::forward(real* y, real* qkv, Saved& kept, Cache* cache, size_t block, const Piece& p) {
  const int D = config_.width;
  kept.top.resize(ops_, {p.batch, config_.heads, p.count});
  kept.inv_sum.resize(ops_, {p.batch, config_.heads, p.count});
  const Relative* r = xl() ? &relative_[block] : nullptr;
  Tensor& positions = cache ? cache->positions : kept.positions;
  if (r) relative_forward(positions, *r, p);
  AttentionInput in = input(qkv, positions.data(), r, p);
  if (cache) {
    append(cache->keys, qkv, p);
    in.k = cache->keys.data();
    in.v = cache->keys.data() + static_cast<int64_t>(p.capacity) * D;
  }
  ops_.attention(y, kept.top.data(), kept.inv_sum.data(), in, shape(p, cache != nullptr));
}

std::vector<real> SoftmaxAttention::map(const real* qkv, Saved& kept, size_t block, const Piece& p, int sample) {
  return map_over_identity(ops_, config_, qkv, p, sample, [&](real* y, real* changed) {
    const AttentionInput in = input(changed, kept.positions.data(), xl() ? &relative_[block] : nullptr, p);
    ops_.attention(y, kept.top.data(), kept.inv_sum.data(), in, shape(p, false));
  });
}

void SoftmaxAttention::begin_backward(const Piece& p) {
  if (!learns_bias()) return;
  dbias_.resize(ops_, {p.count, config_.heads});
  dbias_.zero();
}

void SoftmaxAttention::backward(real* dqkv, real* dy, const real* y, const real* qkv, Saved& kept, size_t block,
                                const Piece& p) {
  const int D = config_.width;
  const Relative* r = xl() ? &relative_[block] : nullptr;
  AttentionGradient gradient{dqkv, dqkv + D, dqkv + 2 * D, dbias_.data(), nullptr, nullptr, nullptr};
  if (r) {
    dcontent_.resize(ops_, {p.rows(), D});
    dposition_.resize(ops_, {p.rows(), D});
    dpositions_.resize(ops_, {distances(p.count), D});
    gradient.dq = dcontent_.data();
    gradient.dq_position = dposition_.data();
    gradient.dpositions = dpositions_.data();
  }
  if (r)
    partial_.resize(ops_, {p.batch, distances(p.count), D});
  else if (learns_bias())
    partial_.resize(ops_, {p.batch, p.count, config_.heads});
  gradient.partial = partial_.data();
  ops_.attention_backward(gradient, dy, y, kept.top.data(), kept.inv_sum.data(),
                          input(qkv, kept.positions.data(), r, p), shape(p, false));
  if (r) relative_backward(dqkv, gradient, *r, p);
}

void SoftmaxAttention::relative_backward(real* dqkv, const AttentionGradient& gradient, const Relative& r,
                                         const Piece& p) {
  const int D = config_.width;
  ops_.add_row_backward(r.u->gradient, gradient.dq, p.rows(), D);
  ops_.add_row_backward(r.v->gradient, gradient.dq_position, p.rows(), D);
  ops_.add(dqkv, 3 * D, gradient.dq, gradient.dq_position, p.rows(), D);
  ops_.linear_backward_weight(r.weight->gradient, nullptr, gradient.dpositions, waves(p.count), distances(p.count), D,
                              D);
}

void SoftmaxAttention::end_backward(const Piece& p) {
  const int T = p.count, heads = config_.heads;
  if (t5_) ops_.embedding_backward(t5_->gradient, nullptr, dbias_.data(), buckets_.data(), 1, T, heads, T5_BUCKETS);
  if (r1_) ops_.kerple_bias_backward(r1_->gradient, r2_->gradient, dbias_.data(), r1_->value, r2_->value, T, heads);
}

}  // namespace

std::unique_ptr<Model> make_transformer(const Json& config, Ops& ops) {
  return std::make_unique<TransformerModel<SoftmaxAttention>>(ConfigReader("transformer", config), ops);
}

}  // namespace petroglyph
