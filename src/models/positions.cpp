#include "models/positions.h"

#include "math/positions.h"
#include "models/parts.h"

namespace petroglyph {

const real* Sinusoids::table(Ops& ops, int T, int width, bool both_signs) {
  if (T > longest_) {
    const int first = both_signs ? 1 - T : 0, count = T - first;
    rows_.resize(ops, {count, width});
    rows_.upload(sinusoids(first, count, width));
    longest_ = T;
  }
  return rows_.data() + (both_signs ? static_cast<int64_t>(longest_ - T) * width : 0);
}

// ---- Numbers added to the scores: alibi, t5, kerple -----------------------------------------------------------------

// T5 draws its table with 1/√width. KERPLE's two numbers are positive and of the order of 1 at the start; nothing keeps
// them so, and with r2 at −1/(T − 1) or below the bias of the farthest key is infinite or NaN, which stops training.
DistanceBias::DistanceBias(Parameters& parameters, int width, int heads, const std::string& scheme,
                           bool published_slopes)
    : heads_(heads), alibi_(scheme == "alibi"), published_slopes_(published_slopes) {
  if (scheme == "t5")
    table_ = &parameters.add("relative_bias.weight", {T5_BUCKETS, heads},
                             Init::normal(1 / numerics::sqrt(static_cast<real>(width))));
  if (scheme == "kerple") {
    r1_ = &parameters.add("kerple.r1", {heads}, Init::ones());
    r2_ = &parameters.add("kerple.r2", {heads}, Init::ones());
  }
}

void DistanceBias::forward(Ops& ops, int T) {
  if (!alibi_ && !learned()) return;
  const bool longer = bias_.size() < static_cast<int64_t>(T) * heads_;
  if (longer) bias_.resize(ops, {T, heads_});
  if (alibi_ && longer) bias_.upload(alibi_bias(T, heads_, published_slopes_));
  if (r1_) ops.kerple_bias(bias_, r1_->value, r2_->value, T, heads_);
  if (table_) {
    if (longer) buckets_.resize(ops, {T});
    if (longer) buckets_.upload(t5_buckets(T));
    ops.embedding(bias_, table_->value, nullptr, buckets_, 0, 1, T, heads_);
  }
}

real* DistanceBias::zero_gradient(Ops& ops, int T) {
  if (!learned()) return nullptr;
  dbias_.resize(ops, {T, heads_});
  dbias_.zero();
  return dbias_.data();
}

void DistanceBias::backward(Ops& ops, int T) {
  if (table_) ops.embedding_backward(table_->gradient, nullptr, dbias_, buckets_, 1, T, heads_, T5_BUCKETS);
  if (r1_) ops.kerple_bias_backward(r1_->gradient, r2_->gradient, dbias_, r1_->value, r2_->value, T, heads_);
}

// ---- Products added to the scores: xl -------------------------------------------------------------------------------

RelativeScores::RelativeScores(Parameters& parameters, const std::string& prefix, int width, int heads, bool causal)
    : width_(width), causal_(causal) {
  const Init init = Init::normal(WEIGHT_DEVIATION);
  weight_ = &parameters.add(prefix + "relative.weight", {width, width}, init);
  u_ = &parameters.add(prefix + "u", {heads, width / heads}, init);
  v_ = &parameters.add(prefix + "v", {heads, width / heads}, init);
}

void RelativeScores::project(Ops& ops, Tensor& projected, Scratch& scratch, int T) const {
  projected.resize(ops, {distances(T), width_});
  ops.linear(projected, scratch.waves.table(ops, T, width_, !causal_), weight_->value, nullptr, distances(T), width_,
             width_, Into::WRITE);
}

void RelativeScores::forward(Ops& ops, AttentionInput& in, const Tensor& projected, Scratch& scratch, int64_t N) const {
  scratch.content.resize(ops, {N, width_});
  scratch.position.resize(ops, {N, width_});
  ops.add_row(scratch.content, in.q, 3 * width_, u_->value, N, width_);
  ops.add_row(scratch.position, in.q, 3 * width_, v_->value, N, width_);
  in.q = scratch.content.data();
  in.q_position = scratch.position.data();
  in.positions = projected.data();
}

void RelativeScores::attach(Ops& ops, AttentionGradient& out, Scratch& scratch, int64_t N, int T) const {
  scratch.dcontent.resize(ops, {N, width_});
  scratch.dposition.resize(ops, {N, width_});
  scratch.dprojected.resize(ops, {distances(T), width_});
  out.dq = scratch.dcontent.data();
  out.dq_position = scratch.dposition.data();
  out.dpositions = scratch.dprojected.data();
}

void RelativeScores::backward(Ops& ops, real* dq, Scratch& scratch, int64_t N, int T) const {
  const real *dcontent = scratch.dcontent, *dposition = scratch.dposition.data();
  ops.add_row_backward(u_->gradient, dcontent, N, width_);
  ops.add_row_backward(v_->gradient, dposition, N, width_);
  ops.add(dq, 3 * width_, dcontent, dposition, N, width_);
  ops.linear_backward_weight(weight_->gradient, nullptr, scratch.dprojected,
                             scratch.waves.table(ops, T, width_, !causal_), distances(T), width_, width_);
}

}  // namespace petroglyph
