// The MLP language model: one fully connected network from the embeddings of the last tokens to the next one.
// Bengio et al. 2003, as "MLPs for NLP: Towards Discovering Inductive Bias from Scratch", section 2 and figure 2,
// trains it.
//
//   e      = [embedding of token 0, …, of token T−1]              (B,T·d)   exactly T tokens, the oldest first
//   x      = relu(norm(W_first e + b))                            (B,d)
//   in each block:
//     x   += relu(norm(W_down u + b)),  u = relu(norm(W_up x + b))          u (B,w)
//   logits = W_head x                                             (B,V)
//
// The first layer and two blocks are what the paper calls three hidden layers: 38 million parameters with w = 16,384,
// d = 512 and T = 15, without embedding and readout.
//
// Nothing in the network marks e as a sequence: any use of the order of tokens is learned. Row n of W_first is the
// first layer's neuron n: read as a (T,d) picture, it shows which embeddings the neuron responds to, and how long ago
// (./inspect neurons). The size of W_first grows with T; dct_mlp.cpp avoids that.
//
// Every layer is y = relu(n), n = norm(z), z = W x + b with an affine layer norm, so one derivation serves all:
//   dn = dy ∘ [n > 0]       dz = norm'(dn)       dW = Σ dz ⊗ x       db = Σ dz       dx = Wᵀ dz
// A block's dx is dy itself, by the residual connection, and what comes back through both of its layers. Saved are e,
// each block's x and the last one, and of a layer the normalized z and 1/std of each row; n and y are computed again.
//
// Decoding slides the window: the logits at token t are those of the window that ends there (window_decoder.cpp).

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"

namespace petroglyph::mlp_lm {

struct Config {
  ConfigReader reader;
  int vocab = reader.size("vocab");                   // V
  int context = reader.size("context", 1 << 16);      // T
  int embedding = reader.size("embedding", 1 << 14);  // d
  int width = reader.size("width", 1 << 20);          // w
  int blocks = static_cast<int>(reader.integer("blocks", 0, 1 << 10, 2));

  explicit Config(const Json& json) : reader("mlp_lm", json) {
    reader.finish();
    if (int64_t{1} * context * embedding > 1 << 24)
      reader.fail(text("context %d times embedding %d is more than the first layer can read", context, embedding));
  }
  int read() const { return context * embedding; }
};

// y = relu(norm(W x + b))
class Layer {
 public:
  Layer(Parameters& parameters, const std::string& name, int in, int out)
      : linear_(parameters, name, in, out, Init::normal(WEIGHT_DEVIATION), true),
        norm_(parameters, name + "_norm", out, true) {}

  void forward(Ops& ops, Norm::Saved& saved, real* y, const real* x, int64_t N) const {
    linear_.forward(ops, y, x, N);
    norm_.in_place(ops, saved, y, N);
    ops.pointwise(y, y, Pointwise::RELU, N * linear_.out);
  }
  // y (N,out) once more, in scratch
  const real* output(Ops& ops, const Norm::Saved& saved, Tensor& scratch, int64_t N) const {
    norm_.output(ops, saved, scratch, N);
    ops.pointwise(scratch, scratch, Pointwise::RELU, N * linear_.out);
    return scratch.data();
  }
  // dx (N,in) from dy (N,out), or dx += that; dx may be dy. scratch, dz: (N,out) each
  void backward(Ops& ops, real* dx, Into into, const real* dy, const Norm::Saved& saved, const real* x, Tensor& scratch,
                Tensor& dz, int64_t N) const {
    const real* n = norm_.output(ops, saved, scratch, N);
    dz.resize(ops, {N, linear_.out});
    ops.pointwise_backward(dz, nullptr, dy, n, Pointwise::RELU, N * linear_.out);
    norm_.backward(ops, dz, dz, saved, N, Into::WRITE);
    linear_.backward(ops, dx, dz, x, N, into);
  }

 private:
  Linear linear_;  // (out,in), with a bias
  Norm norm_;
};

struct Block {
  Layer up, down;
};

// The activations of a forward pass over B windows. Each block has its own, for the backward pass; norms size what is
// theirs.
struct Saved {
  struct Block {
    Tensor x;  // (B,d): the block's input
    Norm::Saved up, down;
  };
  std::vector<Block> blocks;
  Norm::Saved first;
  Tensor e, x, logits;  // (B,T·d), (B,d), (B,V)
  Tensor u, y;          // (B,w), (B,d): of the block at work

  void resize(Ops& ops, const Config& c, int64_t B) {
    blocks.resize(static_cast<size_t>(c.blocks));
    for (Block& b : blocks) b.x.resize(ops, {B, c.embedding});
    e.resize(ops, {B, c.read()});
    for (Tensor* t : {&x, &y}) t->resize(ops, {B, c.embedding});
    u.resize(ops, {B, c.width});
    logits.resize(ops, {B, c.vocab});
  }
};

// Gradients of activations, shared by all blocks.
struct Gradients {
  Tensor dx, du, de;   // (B,d), (B,w), (B,T·d)
  Tensor scratch, dz;  // of the layer at work, which sizes them

  void resize(Ops& ops, const Config& c, int64_t B) {
    dx.resize(ops, {B, c.embedding});
    du.resize(ops, {B, c.width});
    de.resize(ops, {B, c.read()});
  }
};

class MlpLm final : public Model {
  Config config_;
  Ops& ops_;
  Parameter* embedding_;  // (V,d)
  Layer first_;
  std::vector<Block> blocks_;
  Linear head_;  // (V,d)
  Saved saved_;  // the last forward()
  Gradients gradients_;

 public:
  // The paper does not give initial values. All have GPT-2's deviation of 0.02, also the embedding: the norms undo the
  // scale, but from small initial values the learned part soon dominates, and the shape of a neuron becomes visible
  // (figure 5).
  MlpLm(const Json& json, Ops& ops)
      : config_(json),
        ops_(ops),
        embedding_(&parameters.add("token_embedding.weight", {config_.vocab, config_.embedding},
                                   Init::normal(WEIGHT_DEVIATION))),
        first_(parameters, "first", config_.read(), config_.embedding) {
    const Config& c = config_;
    for (int i = 0; i < c.blocks; ++i) {
      const std::string prefix = "blocks." + std::to_string(i) + ".";
      Layer up(parameters, prefix + "up", c.embedding, c.width);
      blocks_.push_back({up, Layer(parameters, prefix + "down", c.width, c.embedding)});
    }
    head_ = Linear(parameters, "head", c.embedding, c.vocab, Init::normal(WEIGHT_DEVIATION));
    parameters.allocate(ops);
  }

  int classes() const override { return config_.vocab; }
  int window() const override { return config_.context; }
  int64_t logit_rows(const Input& input) const override { return input.batch; }
  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    return make_window_decoder(*this, ops_, "mlp_lm", config_.context, batch, capacity);
  }

  // ---- Forward ------------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    const Config& c = config_;
    const int64_t B = input.batch;
    const int32_t* tokens = input.tokens_for("mlp_lm");
    if (input.length != c.context)
      throw Error(text("mlp_lm: %d tokens, this model reads exactly its context of %d", input.length, c.context));
    saved_.resize(ops_, c, B);

    ops_.embedding(saved_.e, embedding_->value, nullptr, tokens, 0, input.batch, c.context, c.embedding);
    first_.forward(ops_, saved_.first, saved_.x, saved_.e, B);  // x = relu(norm(W_first e + b))    (B,d)
    for (size_t i = 0; i < blocks_.size(); ++i) {
      Saved::Block& s = saved_.blocks[i];
      ops_.copy(s.x, 0, saved_.x, 0, s.x.bytes(), 1);
      blocks_[i].up.forward(ops_, s.up, saved_.u, saved_.x, B);             // u = relu(norm(W_up x + b))    (B,w)
      blocks_[i].down.forward(ops_, s.down, saved_.y, saved_.u, B);         // y = relu(norm(W_down u + b))  (B,d)
      ops_.add(saved_.x, c.embedding, saved_.x, saved_.y, B, c.embedding);  // x += y                        (B,d)
    }
    head_.forward(ops_, saved_.logits, saved_.x, B);  // logits = W_head x              (B,V)
    return saved_.logits;
  }

  // ---- Backward -----------------------------------------------------------------------------------------------------

  void backward(const Input& input, const real* dlogits) override {
    const Config& c = config_;
    const int64_t B = input.batch;
    Gradients& g = gradients_;
    g.resize(ops_, c, B);

    head_.backward(ops_, g.dx, dlogits, saved_.x, B);
    for (size_t i = blocks_.size(); i-- > 0;) {
      const Saved::Block& s = saved_.blocks[i];
      const real* const u = blocks_[i].up.output(ops_, s.up, saved_.u, B);
      blocks_[i].down.backward(ops_, g.du, Into::WRITE, g.dx, s.down, u, g.scratch, g.dz, B);
      blocks_[i].up.backward(ops_, g.dx, Into::ADD, g.du, s.up, s.x, g.scratch, g.dz, B);
    }
    first_.backward(ops_, g.de, Into::WRITE, g.dx, saved_.first, saved_.e, g.scratch, g.dz, B);
    ops_.embedding_backward(embedding_->gradient, nullptr, g.de, input.tokens, input.batch, c.context, c.embedding,
                            c.vocab);
  }
};

}  // namespace petroglyph::mlp_lm

std::unique_ptr<petroglyph::Model> petroglyph::make_mlp_lm(const Json& config, Ops& ops) {
  return std::make_unique<mlp_lm::MlpLm>(config, ops);
}
