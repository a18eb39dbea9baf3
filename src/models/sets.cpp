// One vector for a set: Deep Sets (Zaheer et al. 2017) and the Relation Network (Santoro et al. 2017), from which the
// relation networks of this project descend. "Linear-Time Sequence Modeling with MLPs", sections 2 and 3.2 (equation
// numbers; the workshop paper has the second as its eq. 2). Here they classify images, whose patches are the set:
//   x_n = W_patch patch_n + position_n                                                            (B,N,D)
//
// Deep Sets, a sum over the elements:
//   y = 1/N Σ_n f(x_n),                   f(x) = W_out ψ(W_in x + b_in) + b_out                  eqs. 1, 2
// The Relation Network, a sum over the pairs:
//   y = 1/N² Σ_i Σ_j f([x_i; x_j])                                                               eq. 3
//
//   logits = W_head norm(y)                                                                      (B,classes)
//
// f is applied to N² pairs, but its two matrices need not be. With W_in = (W_left W_right), p_i = W_left x_i and
// q_j = W_right x_j + b_in,
//   y = b_out + W_out z,     z = 1/N Σ_j z_j,     z_j = 1/N Σ_i ψ(p_i + q_j)                     as eqs. 7, 8
// and z_j is the sum of causal_rn.cpp without its norms and its mask. For ψ = exp it comes apart, exactly:
//   z_j = 1/N exp(q_j) ∘ Σ_i exp(p_i),     z = (1/N Σ_j exp(q_j)) ∘ (1/N Σ_i exp(p_i))           as eq. 9
// so that the network of quadratic time and that of linear time are the same function (proposition 3.2, for each z_j;
// the mean over j follows). The form "quadratic" computes the first, "linear" the second.
//
// A mean over the elements is a product with a column c whose N entries are 1/N: mean = cᵀ z, and dz = c dmean. The
// backward passes are those of linear layers and of the sum over pairs.

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"

namespace petroglyph::sets {

// How z comes from the elements x: Deep Sets' function of each element; the sums over pairs; the same in linear time.
enum class Form { DEEP_SETS, QUADRATIC, LINEAR };

struct Config {
  ConfigReader reader;
  std::string name = reader.owner();                    // the model's
  int width = reader.size("width", 1 << 16);            // D
  int hidden = reader.size("hidden", 1 << 16);          // H
  int patches = reader.size("patches", 1 << 20);        // N
  int patch_size = reader.size("patch_size", 1 << 20);  // P
  int classes = reader.size("classes");
  Form form = Form::DEEP_SETS;
  Activation pairs{};    // ψ of the Relation Network
  Pointwise elements{};  // ψ of Deep Sets

  explicit Config(ConfigReader json) : reader(std::move(json)) {
    if (name == "deep_sets") {
      elements = reader.choice("activation", {"relu", "gelu"}) == "relu" ? Pointwise::RELU : Pointwise::GELU;
    } else {
      pairs = read_activation(reader);
      form = reader.choice("form", {"quadratic", "linear"}) == "linear" ? Form::LINEAR : Form::QUADRATIC;
      if (form == Form::LINEAR && pairs != Activation::EXP) reader.fail("only the activation exp has a linear form");
    }
    reader.finish();
  }
};

RelationShape quadratic_shape(const Config& c, int B) {
  return {B, c.patches, c.patches, c.patches, c.hidden, 1, false, c.pairs};
}
LinearRelationShape linear_shape(const Config& c, int B) { return {B, c.patches, c.hidden, false, 0}; }

// The activations of a forward pass over B images.
struct Saved {
  Tensor x;                   // (B,N,D)
  Tensor h;                   // (B,N,H): W_in x + b_in, of Deep Sets
  Tensor p, q, sums;          // (B,N,H) each, (B,chunks,2,H): of the Relation Network; sums: see linear_causal_rn.cpp
  Tensor z;                   // (B,N,H)
  Tensor column;              // (N): c
  Tensor mean, y, y_inv_std;  // (B,H), (B,D), (B)
  Tensor logits;              // (B,classes)

  void resize(Ops& ops, const Config& c, int B) {
    const int N = c.patches;
    x.resize(ops, {B, N, c.width});
    z.resize(ops, {B, N, c.hidden});
    if (c.form == Form::DEEP_SETS)
      h.resize(ops, {B, N, c.hidden});
    else
      for (Tensor* t : {&p, &q}) t->resize(ops, {B, N, c.hidden});
    if (c.form == Form::LINEAR) sums.resize(ops, {B, linear_shape(c, B).chunks(), 2, c.hidden});
    mean.resize(ops, {B, c.hidden});
    y.resize(ops, {B, c.width});
    y_inv_std.resize(ops, {B});
    logits.resize(ops, {B, c.classes});
  }
};

struct Gradients {
  Tensor dx, dz, dmean, dy;  // (B,N,D), (B,N,H), (B,H), (B,D)
  Tensor dp, dq, later;      // (B,N,H) each, (B,chunks,H): of the Relation Network

  void resize(Ops& ops, const Config& c, int B) {
    const int N = c.patches;
    dx.resize(ops, {B, N, c.width});
    dz.resize(ops, {B, N, c.hidden});
    dmean.resize(ops, {B, c.hidden});
    dy.resize(ops, {B, c.width});
    if (c.form != Form::DEEP_SETS)
      for (Tensor* t : {&dp, &dq}) t->resize(ops, {B, N, c.hidden});
    if (c.form == Form::LINEAR) later.resize(ops, {B, linear_shape(c, B).chunks(), c.hidden});
  }
};

class SetNetwork final : public Model {
  Config config_;
  Ops& ops_;
  Linear patch_embedding_;         // (D,P)
  Parameter* position_embedding_;  // (N,D)
  Linear in_;                      // (H,D), with a bias: Deep Sets
  Linear left_, right_;            // (H,D) each; right has a bias: the Relation Network
  Linear out_, head_;              // (D,H), with a bias; (classes,D)
  Saved saved_;                    // the last forward()
  Gradients gradients_;

 public:
  int classes() const override { return config_.classes; }
  int64_t logit_rows(const Input& input) const override { return input.batch; }
  std::unique_ptr<Decoder> make_decoder(int, int) override {
    throw Error(config_.name + ": a model of images cannot decode token by token");
  }

  SetNetwork(ConfigReader reader, Ops& ops) : config_(std::move(reader)), ops_(ops) {
    const Config& c = config_;
    const int D = c.width, H = c.hidden;
    const Init weight = Init::normal(WEIGHT_DEVIATION);
    patch_embedding_ = Linear(parameters, "patch_embedding", c.patch_size, D, weight);
    position_embedding_ = &parameters.add("position_embedding.weight", {c.patches, D}, Init::normal(1));
    if (c.form == Form::DEEP_SETS) {
      in_ = Linear(parameters, "in", D, H, weight, true);
    } else {
      left_ = Linear(parameters, "left", D, H, weight);
      right_ = Linear(parameters, "right", D, H, weight, true);
    }
    out_ = Linear(parameters, "out", H, D, weight, true);
    head_ = Linear(parameters, "head", D, c.classes, weight);
    parameters.allocate(ops_);
    saved_.column.resize(ops_, {c.patches});
    saved_.column.upload(std::vector<real>(static_cast<size_t>(c.patches), 1 / static_cast<real>(c.patches)));
  }

  // ---- Forward ------------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    const Config& c = config_;
    if (!input.patches) throw Error(c.name + ": reads the patches of images, not tokens");
    if (input.length != c.patches)
      throw Error(text("%s: %d patches an image, expected %d", c.name.c_str(), input.length, c.patches));
    const int B = input.batch, N = c.patches, D = c.width, H = c.hidden;
    Saved& s = saved_;
    s.resize(ops_, c, B);

    patch_embedding_.forward(ops_, s.x, input.patches, input.rows());
    ops_.add_positions(s.x, position_embedding_->value, 0, B, N, D);                 // x_n                     (B,N,D)
    c.form == Form::DEEP_SETS ? deep_sets_forward(input.rows()) : pairs_forward(B);  // z_n                     (B,N,H)
    s.mean.zero();
    for (int64_t b = 0; b < B; ++b)  // mean_b += cᵀ z_b: the product that a weight's gradient is              (B,H)
      ops_.linear_backward_weight(s.mean + b * H, nullptr, s.column, s.z + b * N * H, N, H, 1);
    out_.forward(ops_, s.y, s.mean, B);           // y = W_out mean + b_out  (B,D)
    ops_.normalize(s.y, s.y_inv_std, s.y, B, D);  // y = norm(y)             (B,D)
    head_.forward(ops_, s.logits, s.y, B);        // logits = W_head y       (B,classes)
    return s.logits;
  }

  // z = ψ(W_in x + b_in)
  void deep_sets_forward(int64_t rows) {
    in_.forward(ops_, saved_.h, saved_.x, rows);
    ops_.pointwise(saved_.z, saved_.h, config_.elements, rows * in_.out);
  }

  // z_j = 1/N Σ_i ψ(p_i + q_j)
  void pairs_forward(int B) {
    const int64_t rows = static_cast<int64_t>(B) * config_.patches;
    left_.forward(ops_, saved_.p, saved_.x, rows);   // p = W_left x
    right_.forward(ops_, saved_.q, saved_.x, rows);  // q = W_right x + b_in
    if (config_.form == Form::LINEAR)
      ops_.linear_relation(saved_.z, nullptr, saved_.sums, nullptr, saved_.p, saved_.q, linear_shape(config_, B));
    else
      ops_.relation(saved_.z, nullptr, nullptr, saved_.p, saved_.q, quadratic_shape(config_, B));
  }

  // ---- Backward -----------------------------------------------------------------------------------------------------

  void backward(const Input& input, const real* dlogits) override {
    const Config& c = config_;
    const int B = input.batch, N = c.patches, D = c.width, H = c.hidden;
    const Saved& s = saved_;
    Gradients& g = gradients_;
    g.resize(ops_, c, B);

    head_.backward(ops_, g.dy, dlogits, s.y, B);                               // logits = W_head y
    ops_.normalize_backward(g.dy, g.dy, s.y, s.y_inv_std, B, D, Into::WRITE);  // y = norm(y)
    out_.backward(ops_, g.dmean, g.dy, s.mean, B);                             // y = W_out mean + b_out
    for (int64_t b = 0; b < B; ++b)                                            // mean = cᵀ z
      ops_.linear_backward_input(g.dz + b * N * H, s.column, g.dmean + b * H, N, H, 1, Into::WRITE);
    c.form == Form::DEEP_SETS ? deep_sets_backward(input.rows()) : pairs_backward(B);  // z
    ops_.add_positions_backward(position_embedding_->gradient, g.dx, B, N, D);
    patch_embedding_.backward_weight(ops_, g.dx, input.patches, input.rows());
  }

  // dx from dz, over which the gradient of h is written
  void deep_sets_backward(int64_t rows) {
    ops_.pointwise_backward(gradients_.dz, nullptr, gradients_.dz, saved_.h, config_.elements, rows * in_.out);
    in_.backward(ops_, gradients_.dx, gradients_.dz, saved_.x, rows);
  }

  void pairs_backward(int B) {
    const int64_t rows = static_cast<int64_t>(B) * config_.patches;
    Gradients& g = gradients_;
    if (config_.form == Form::LINEAR)
      ops_.linear_relation_backward(g.dp, g.dq, g.later, g.dz, nullptr, saved_.sums, saved_.p, saved_.q,
                                    linear_shape(config_, B));
    else
      ops_.relation_backward(g.dp, g.dq, nullptr, g.dz, nullptr, nullptr, saved_.p, saved_.q,
                             quadratic_shape(config_, B));
    left_.backward(ops_, g.dx, g.dp, saved_.x, rows);              // p = W_left x
    right_.backward(ops_, g.dx, g.dq, saved_.x, rows, Into::ADD);  // q = W_right x + b_in
  }
};

}  // namespace petroglyph::sets

std::unique_ptr<petroglyph::Model> petroglyph::make_deep_sets(const Json& config, Ops& ops) {
  return std::make_unique<sets::SetNetwork>(ConfigReader("deep_sets", config), ops);
}

std::unique_ptr<petroglyph::Model> petroglyph::make_relation_network(const Json& config, Ops& ops) {
  return std::make_unique<sets::SetNetwork>(ConfigReader("relation_network", config), ops);
}
