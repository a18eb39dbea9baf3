// The Bidirectional Relation Network as a classifier of images: every patch looks at every other.
// Cui, Yan, Muhawenayo and Kerner, "An All-MLP Sequence Modeling Architecture That Excels at Copying", appendix C; its
// experiments with images: "Linear-Time Sequence Modeling with MLPs", sections 4.3 and 4.4.
//
// B images of N patches of P numbers each; T = N + 1 positions, D channels, H hidden ones. norm: zero mean and unit
// variance over the channels, without epsilon, gain and bias.
//
//   x_n = W_patch patch_n + position_n   for the N patches                            (B,T,D)
//   x_N = cls + position_N               the class token, from which the class is read
//   in each block, as in causal_rn with ψ = exp, but every position sees all T (eq. 6):
//     r   = norm(x)                                                                   (B,T,D)
//     p_i = W_left r_i,  q_j = W_right r_j + b_right                                  (B,T,H)
//     z_j = 1/T Σ_i exp(μ(p_i + q_j))                                                 (B,T,H)
//     x  += W_out norm(z) + b_out                                                     (B,T,D)   post_reduction_norm
//   logits = W_head norm(x_N)                                                         (B,classes)
//
// μ, the key pre_activation_norm, normalizes each p_i + q_j ("exact"), or p_i and q_j by themselves ("approximate"), or
// nothing ("none"). "exact" is the relation of causal_rn.cpp, whose time is quadratic in T. In the others the sum over
// i is the same for all j up to the factor exp(q_j): the relation of linear_causal_rn.cpp, in linear time. The
// derivations of both backward passes are there.
//
// The backward pass begins at x_N alone: the gradient of every other position is zero until the last block adds to it.
//
// Maps of where the model looks. The weight of position i for position j in a block is the length of the vector
// exp(μ(p_i + q_j)), divided by the sum of these lengths over all i. The papers show such maps ("Linear-Time Sequence
// Modeling with MLPs", 4.4) but give no formula; this one is not theirs.

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"

namespace petroglyph::birn_image {

struct Config {
  ConfigReader reader;
  int patches = reader.size("patches", 1 << 20);        // N
  int patch_size = reader.size("patch_size", 1 << 20);  // P
  int classes = reader.size("classes");
  int width = reader.size("width", 1 << 16);    // D
  int hidden = reader.size("hidden", 1 << 16);  // H
  int layers = reader.size("layers", 1 << 10);
  int heads = reader.heads("hidden", hidden);  // groups of H/heads channels, each with an exact norm of its own
  PreNorm pre_norm = read_pre_norm(reader);
  bool post_norm = reader.boolean("post_reduction_norm");

  explicit Config(const Json& json) : reader("birn_image", json) {
    reader.finish();
    if (!is_exact()) heads = 1;  // the other norms have no heads
  }
  bool is_exact() const { return pre_norm == PreNorm::EXACT; }
  int positions() const { return patches + 1; }  // T
};

struct Block {
  Linear left, right;  // (H,D) each; right has a bias
  Linear out;          // (D,H), with a bias
};

// The shapes of the relation: of pre_norm EXACT, and of the others.
RelationShape exact_shape(const Config& c, int B) {
  const int T = c.positions();
  return {B, T, T, T, c.hidden, c.heads, false, Activation::EXP};
}
LinearRelationShape linear_shape(const Config& c, int B) { return {B, c.positions(), c.hidden, false, 0}; }

// The activations of a forward pass over B images. Each block has its own, for the backward pass.
struct Saved {
  struct Block {
    Tensor r, r_inv_std;          // (B,T,D), (B,T)
    Tensor p, q;                  // (B,T,H) each, as exp reads them: centered ("exact") or normalized ("approximate")
    Tensor p_inv_std, q_inv_std;  // (B,T) each: "approximate" only
    Tensor s;                     // (B,heads,T,T): s_ij of causal_rn.cpp, a row for each j, "exact" only
    Tensor sums, shift;           // (B,chunks,2,H), (B,T): of the linear relation
    Tensor y, y_inv_std;          // (B,T,H), (B,T): norm(z), or z without that norm
  };
  std::vector<Block> blocks;
  Tensor x;                   // (B,T,D): the residual stream
  Tensor last, last_inv_std;  // (B,D), (B): norm(x_N)
  Tensor logits;              // (B,classes)

  void resize(Ops& ops, const Config& c, int B) {
    const int T = c.positions();
    blocks.resize(static_cast<size_t>(c.layers));
    for (Block& b : blocks) {
      b.r.resize(ops, {B, T, c.width});
      for (Tensor* t : {&b.p, &b.q, &b.y}) t->resize(ops, {B, T, c.hidden});
      for (Tensor* t : {&b.r_inv_std, &b.p_inv_std, &b.q_inv_std, &b.y_inv_std}) t->resize(ops, {B, T});
      if (c.is_exact()) b.s.resize(ops, {B, c.heads, T, T});
      if (!c.is_exact()) b.sums.resize(ops, {B, linear_shape(c, B).chunks(), 2, c.hidden});
      if (!c.is_exact() && c.post_norm) b.shift.resize(ops, {B, T});
    }
    x.resize(ops, {B, T, c.width});
    last.resize(ops, {B, c.width});
    last_inv_std.resize(ops, {B});
    logits.resize(ops, {B, c.classes});
  }
};

// Gradients of activations; those of the block at work, shared by all blocks.
struct Gradients {
  Tensor dlast;       // (B,D)
  Tensor dx, dr;      // (B,T,D) each
  Tensor dz, dp, dq;  // (B,T,H) each
  Tensor w;           // (B,heads,T,T): w_ij of causal_rn.cpp, "exact" only
  Tensor later;       // (B,chunks,H): A of linear_causal_rn.cpp beyond each chunk

  void resize(Ops& ops, const Config& c, int B) {
    const int T = c.positions();
    dlast.resize(ops, {B, c.width});
    for (Tensor* t : {&dx, &dr}) t->resize(ops, {B, T, c.width});
    for (Tensor* t : {&dz, &dp, &dq}) t->resize(ops, {B, T, c.hidden});
    if (c.is_exact()) w.resize(ops, {B, c.heads, T, T});
    if (!c.is_exact()) later.resize(ops, {B, linear_shape(c, B).chunks(), c.hidden});
  }
};

class BirnImage final : public Model {
  Config config_;
  Ops& ops_;
  PatchEmbedding patch_embedding_;
  std::vector<Block> blocks_;
  Linear head_;  // (classes,D)
  Saved saved_;  // the last forward()
  Gradients gradients_;

 public:
  int classes() const override { return config_.classes; }
  int64_t logit_rows(const Input& input) const override { return input.batch; }
  std::unique_ptr<Decoder> make_decoder(int, int) override {
    throw Error("birn_image: a model of images cannot decode token by token");
  }

  // ---- Parameters ---------------------------------------------------------------------------------------------------

  // Initial values as in causal_rn.cpp.
  BirnImage(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    const int D = c.width, H = c.hidden;
    const Init weight = Init::normal(WEIGHT_DEVIATION);
    patch_embedding_ = PatchEmbedding(parameters, "birn_image", c.patches, c.patch_size, D);
    for (int l = 0; l < c.layers; ++l) {
      const std::string name = "blocks." + std::to_string(l) + ".";
      Block& w = blocks_.emplace_back();
      w.left = Linear(parameters, name + "left", D, H, weight);
      w.right = Linear(parameters, name + "right", D, H, weight, true);
      w.out = Linear(parameters, name + "out", H, D, Init::normal(output_deviation(c.layers)), true);
    }
    head_ = Linear(parameters, "head", D, c.classes, weight);
    parameters.allocate(ops);
  }

  // ---- Forward ------------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    const int B = input.batch, T = config_.positions(), D = config_.width;
    saved_.resize(ops_, config_, B);

    patch_embedding_.forward(ops_, saved_.x, input);
    for (size_t l = 0; l < blocks_.size(); ++l) block_forward(blocks_[l], saved_.blocks[l], B);
    take_last(ops_, saved_.last, saved_.x, B, T, D);                      // last = x_N            (B,D)
    ops_.normalize(saved_.last, saved_.last_inv_std, saved_.last, B, D);  // last = norm(last)     (B,D)
    head_.forward(ops_, saved_.logits, saved_.last, B);                   // logits = W_head last  (B,classes)
    return saved_.logits;
  }

  void block_forward(const Block& w, Saved::Block& s, int B) {
    const int D = config_.width, H = config_.hidden;
    const int64_t N = static_cast<int64_t>(B) * config_.positions();

    ops_.normalize(s.r, s.r_inv_std, saved_.x, N, D);                    // r = norm(x)              (N,D)
    w.left.forward(ops_, s.p, s.r, N);                                   // p = W_left r             (N,H)
    w.right.forward(ops_, s.q, s.r, N);                                  // q = W_right r + b_right  (N,H)
    relation_forward(s, B);                                              // y = z                    (N,H)
    if (config_.post_norm) ops_.normalize(s.y, s.y_inv_std, s.y, N, H);  // y = norm(z)              (N,H)
    w.out.forward(ops_, saved_.x, s.y, N, Into::ADD);                    // x += W_out y + b_out     (N,D)
  }

  // z_j = 1/T Σ_i exp(μ(p_i + q_j))
  void relation_forward(Saved::Block& s, int B) {
    const int H = config_.hidden, heads = config_.heads;
    const int64_t N = static_cast<int64_t>(B) * config_.positions();
    if (config_.is_exact()) {
      ops_.center(s.p, s.p, N * heads, H / heads);
      ops_.center(s.q, s.q, N * heads, H / heads);
      ops_.relation_inv_std(s.s, s.p, s.q, exact_shape(config_, B));
      ops_.relation(s.y, s.s, nullptr, s.p, s.q, exact_shape(config_, B));
      return;
    }
    if (config_.pre_norm == PreNorm::APPROXIMATE) {
      ops_.normalize(s.p, s.p_inv_std, s.p, N, H);
      ops_.normalize(s.q, s.q_inv_std, s.q, N, H);
    }
    ops_.linear_relation(s.y, s.shift, s.sums, nullptr, s.p, s.q, linear_shape(config_, B));
  }

  // ---- Backward -----------------------------------------------------------------------------------------------------

  void backward(const Input& input, const real* dlogits) override {
    const int B = input.batch, D = config_.width;
    gradients_.resize(ops_, config_, B);
    Gradients& g = gradients_;
    Saved& s = saved_;

    head_.backward(ops_, g.dlast, dlogits, s.last, B);                                     // logits = W_head last
    ops_.normalize_backward(g.dlast, g.dlast, s.last, s.last_inv_std, B, D, Into::WRITE);  // last = norm(last)
    put_last(ops_, g.dx, g.dlast, B, config_.positions(), D);                              // last = x_N
    for (size_t l = blocks_.size(); l-- > 0;) block_backward(blocks_[l], saved_.blocks[l], B);
    patch_embedding_.backward(ops_, gradients_.dx, input);
  }

  // dx, the gradient of the block's output, becomes that of its input: the residual connection passes it on, and the
  // block adds its part.
  void block_backward(const Block& w, const Saved::Block& s, int B) {
    const int D = config_.width, H = config_.hidden;
    const int64_t N = static_cast<int64_t>(B) * config_.positions();
    Gradients& g = gradients_;

    w.out.backward(ops_, g.dz, g.dx, s.y, N);  // x += W_out y + b_out
    if (config_.post_norm) ops_.normalize_backward(g.dz, g.dz, s.y, s.y_inv_std, N, H, Into::WRITE);  // y = norm(z)
    relation_backward(s, B);                                                                          // y = z
    w.left.backward(ops_, g.dr, g.dp, s.r, N);                                                        // p = W_left r
    w.right.backward(ops_, g.dr, g.dq, s.r, N, Into::ADD);                   // q = W_right r + b_right
    ops_.normalize_backward(g.dx, g.dr, s.r, s.r_inv_std, N, D, Into::ADD);  // r = norm(x)
  }

  // dp and dq from dz
  void relation_backward(const Saved::Block& s, int B) {
    const int H = config_.hidden;
    const int64_t N = static_cast<int64_t>(B) * config_.positions();
    Gradients& g = gradients_;
    if (config_.is_exact()) {  // centering is its own transpose, and dp and dq come out centered
      ops_.relation_backward(g.dp, g.dq, g.w, g.dz, s.s, nullptr, s.p, s.q, exact_shape(config_, B));
      return;
    }
    ops_.linear_relation_backward(g.dp, g.dq, g.later, g.dz, s.shift, s.sums, s.p, s.q, linear_shape(config_, B));
    if (config_.pre_norm == PreNorm::APPROXIMATE) {
      ops_.normalize_backward(g.dp, g.dp, s.p, s.p_inv_std, N, H, Into::WRITE);
      ops_.normalize_backward(g.dq, g.dq, s.q, s.q_inv_std, N, H, Into::WRITE);
    }
  }

  // ---- Maps ---------------------------------------------------------------------------------------------------------

  // A row for each j. p and q are here as exp reads them: normalized ("approximate") or centered ("exact"). No exponent
  // is above 0: the largest channel of each pair, top_i, is subtracted and comes back as exp(top_i − highest); highest,
  // the same for all i, cancels in the division by their sum. The order of sums is plain: a map reaches no weight.
  std::vector<real> attention_map(size_t block, int sample) override {
    const int T = config_.positions(), H = config_.hidden, width = H / config_.heads;
    const Saved::Block& s = saved_.blocks.at(block);
    const std::vector<real> all_p = s.p.download(), all_q = s.q.download();
    const real* const p = &all_p[static_cast<size_t>(sample) * T * H];
    const real* const q = &all_q[static_cast<size_t>(sample) * T * H];
    std::vector<real> map(static_cast<size_t>(T) * T), h(H), top(T);
    for (int j = 0; j < T; ++j) {
      real* const strength = &map[static_cast<size_t>(j) * T];
      for (int i = 0; i < T; ++i) {
        for (int c = 0; c < H; ++c) h[c] = p[i * H + c] + q[j * H + c];
        for (int first = 0; config_.is_exact() && first < H; first += width) {  // the norm of a head
          real square = 0;
          for (int c = first; c < first + width; ++c) square += h[c] * h[c];
          const real inv_std = square > 0 ? 1 / numerics::sqrt(square / static_cast<real>(width)) : 0;
          for (int c = first; c < first + width; ++c) h[c] *= inv_std;
        }
        top[i] = *std::max_element(h.begin(), h.end());
        real square = 0;
        for (const real x : h) square += numerics::exp(2 * (x - top[i]));
        strength[i] = numerics::sqrt(square);
      }
      const real highest = *std::max_element(top.begin(), top.end());
      real total = 0;
      for (int i = 0; i < T; ++i) total += strength[i] *= numerics::exp(top[i] - highest);
      for (int i = 0; i < T; ++i) strength[i] /= total;
    }
    return map;
  }
};

}  // namespace petroglyph::birn_image

std::unique_ptr<petroglyph::Model> petroglyph::make_birn_image(const Json& config, Ops& ops) {
  return std::make_unique<birn_image::BirnImage>(config, ops);
}
