// The linear Transformer: attention without its softmax, whose past is a matrix instead of a list.
// Katharopoulos, Vyas, Pappas and Fleuret 2020; fast weight programmers, Schmidhuber 1992; how the two are one: Irie, "Why Are
// Positional Encodings Nonessential for Deep Autoregressive Transformers?", section 4 and appendix A (equation numbers).
// The block around it: models/transformer_body.h.
//
//   q, k, v = W_qkv r + b_qkv, of the block's normalized x, r = norm_1(x)      eq. 1
//   φ(x) = elu(x) + 1, or x with feature_map "identity"
//   y_t = Σ_s (φ(q_t)·φ(k_s)) v_s / Σ_s φ(q_t)·φ(k_s), over s ≤ t, or over all s where causal is false     attention form
// for each head of d channels; the division only where `normalized`, and with no ε: where the sum of φ(q_t)·φ(k_s) over s is
// below 2⁻¹²⁸ the divisor's inverse is infinite, and training stops. Positions: learned, sinusoidal, none.
//
// Because nothing stands between q·k and v, the sum can be taken before q is known (eqs. 9 to 12), with φ(q), φ(k) written q, k:
//   Σ_s (q_t·k_s) v_s = (Σ_s v_s ⊗ k_s) q_t = W_t q_t,   W_t = W_{t−1} + v_t ⊗ k_t     recurrent form, eqs. 7 and 8
// and the divisor likewise, with 1 in the place of v: z_t·q_t, z_t = z_{t−1} + k_t. W is a memory of d² numbers, written
// by outer products and read by products, whatever the number of positions. It never forgets; it only overlays.
//
// Which form to compute. A position of the attention form costs 2 d multiplications for each position before it, one of the
// recurrent form 2 d² and a state that passes from position to position. So positions are cut into chunks of
// LinearAttentionShape::CHUNK: within a chunk, the attention form; from chunk to chunk, S = Wᵀ and z, one large product each.
// All of these are products of matrices, linear in T, and all chunks can be computed at the same time but for adding up S.
// A stream keeps S, z, and k and v of its unfinished chunk, a fixed size, and makes the same sums in the same order.
//
// The backward pass. Let sum_t be the divisor and u_t = sum_t y_t what it divides. The gradients of u_t and of sum_t are
//   g_t = dy_t / sum_t   and   c_t = −dy_t·u_t / sum_t² = −g_t·y_t
// (not normalized: g = dy, c = 0). u and sum are both linear in the weights a_ts = q_t·k_s, with v_s and 1: so
//   da_ts = g_t·v_s + c_t     dv_s = Σ_{t≥s} a_ts g_t     dq_t = Σ_{s≤t} da_ts k_s     dk_s = Σ_{t≥s} da_ts q_t
// the attention form again, with the roles exchanged, and each has its recurrent form. Of the chunks before, dq_t needs
//   Σ_s (g_t·v_s + c_t) k_s = S g_t + c_t z
// and from the chunks after, with L = Σ_t q_t ⊗ g_t and h = Σ_t c_t q_t added up from the last chunk to the first,
//   dk_s = L v_s + h,    dv_s = Lᵀ k_s
// Saved are q, k, v, y, the divisors, and S and z before each chunk; a and da are formed again chunk by chunk.
// φ'(x) = min(φ(x), 1), so that φ(q) and φ(k) can take the place of q and k.

#include "models/models.h"
#include "models/transformer_body.h"

namespace petroglyph {

namespace {

class LinearAttention {
 public:
  static constexpr bool FIXED_STATE = true;
  struct Saved {
    Tensor inv_sum;  // (B,heads,T): 1/sum
    Tensor states;   // (B,heads,states,state): S and z before each chunk but the first; not causal: of all
  };
  struct Cache {
    Tensor state;  // (B,heads,stream state): the same size after any number of positions
  };

  static TransformerConfig config(ConfigReader& reader) { return {reader, {}}; }

  LinearAttention(ConfigReader& reader, const TransformerConfig& config, Parameters&, Ops& ops)
      : config_(config),
        ops_(ops),
        feature_map_(reader.choice("feature_map", {"elu1", "identity"}) == "elu1" ? FeatureMap::ELU_PLUS_ONE
                                                                                  : FeatureMap::IDENTITY),
        normalized_(reader.boolean("normalized")) {
    if (normalized_ && feature_map_ == FeatureMap::IDENTITY)
      reader.fail("normalized is true with feature_map \"identity\", whose sums may be zero");
  }

  void add_block(const std::string&) {}
  size_t layers(int) const { return static_cast<size_t>(config_.blocks); }
  void prepare(const Piece&) {}
  void begin_backward(const Piece&) {}
  void end_backward(const Piece&) {}

  void forward(real* y, real* qkv, Saved& kept, Cache* cache, size_t, const Piece& p) {
    const LinearAttentionShape s = shape(p);
    if (normalized_) kept.inv_sum.resize(ops_, {p.batch, s.heads, p.count});
    if (cache)
      cache->state.resize(ops_, {p.batch, s.heads, s.decoder_state_size()});
    else
      kept.states.resize(ops_, {p.batch, s.heads, s.states(), s.state_size()});
    ops_.linear_attention(y, kept.inv_sum.data(), kept.states.data(), cache ? cache->state.data() : nullptr, qkv, s);
  }

  std::vector<real> map(const real* qkv, Saved&, size_t, const Piece& p, int sample) {
    LinearAttentionShape s = shape(p);
    s.feature_map = FeatureMap::IDENTITY;  // qkv has been through it
    Tensor inv_sum, states(ops_, {s.states_size()});
    if (normalized_) inv_sum.resize(ops_, {p.batch, s.heads, p.count});
    return map_over_identity(ops_, config_, qkv, p, sample, [&](real* y, real* changed) {
      ops_.linear_attention(y, inv_sum.data(), states.data(), nullptr, changed, s);
    });
  }

  void backward(real* dqkv, real* dy, const real* y, const real* qkv, Saved& kept, size_t, const Piece& p) {
    later_.resize(ops_, kept.states.shape());
    ops_.linear_attention_backward(dqkv, later_.data(), dy, y, kept.inv_sum.data(), kept.states.data(), qkv, shape(p));
  }

 private:
  LinearAttentionShape shape(const Piece& p) const {
    return {p.batch,        p.count,     config_.heads, config_.width / config_.heads,
            config_.causal, normalized_, feature_map_,  p.first};
  }

  const TransformerConfig& config_;
  Ops& ops_;
  FeatureMap feature_map_;
  bool normalized_;
  Tensor later_;  // L and h, as states: of the backward pass, shared by all blocks
};

}  // namespace

std::unique_ptr<Model> make_linear_transformer(const Json& config, Ops& ops) {
  return std::make_unique<TransformerModel<LinearAttention>>(ConfigReader("linear_transformer", config), ops);
}

}  // namespace petroglyph
