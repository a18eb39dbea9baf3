// Recurrent networks: one state vector reads the sequence, a token at a time.
// Elman, "Finding Structure in Time", 1990; Hochreiter and Schmidhuber, "Long Short-Term Memory", 1997; its
// forget gate: Gers, Schmidhuber and Cummins, "Learning to Forget", 2000.
//
//   z_t = W_x x_t + b_x + W_h h_{t−1} + b_h       (B,R)   x_t one-hot: W_x x_t is a column of W_x
//   Elman, R = H:   h_t = tanh(z_t)               (B,H)   from h = 0
//   LSTM, R = 4H:   i, f, g, o = the quarters of z_t
//                   c_t = σ(f)∘c_{t−1} + σ(i)∘tanh(g)     from c = 0
//                   h_t = σ(o)∘tanh(c_t)
//   logits = W_head h_t + b_head                          at every position ("all") or after the last token ("last")
//
// Nothing of step t can begin before step t − 1 has ended; all that does not depend on h, which is the look-up of W_x,
// the readout, and the gradients of all weights, is done for the whole sequence at once. For that the rows stand
// position by position, (T,B,·): a step is a product with B rows, h_{t−1} of all steps is the array of h one step
// earlier, and the gradient of W_h is one product over all T·B rows.
//
// Back-propagation through time. dh_t, the gradient with respect to h_t, comes from the readout and from z_{t+1}:
//   dh_t = W_headᵀ dlogits_t (where h_t is read out) + W_hᵀ dz_{t+1}
//   Elman:   dz_t = dh_t ∘ (1 − h_t²)
//   LSTM:    with τ = tanh(c_t), and dc_t from c_{t+1} to begin with: dc_t += dh_t∘σ(o)∘(1−τ²),
//            dz_t = [dc_t∘tanh(g)∘σ'(i), dc_t∘c_{t−1}∘σ'(f), dc_t∘σ(i)∘tanh'(g), dh_t∘τ∘σ'(o)],  dc_{t−1} = dc_t∘σ(f)
// with σ' = σ(1−σ) and tanh' = 1 − tanh². The path from c_t to c_{t−1} has no weights and no squashing on it, only the
// forget gate: where that is open, gradients neither vanish nor explode, which is what the LSTM was made for.
//   dW_h = Σ_t dz_t ⊗ h_{t−1},  dW_x[:,v] = Σ of the dz_t whose token is v,  db_x = db_h = Σ_t dz_t

#include "base/error.h"
#include "base/text.h"
#include "models/config.h"
#include "models/model.h"
#include "models/parts.h"

namespace petroglyph::rnn {

struct Config {
  ConfigReader reader;
  int vocab = reader.size("vocab");
  int classes = reader.size("classes");         // V, of the readout
  int hidden = reader.size("hidden", 1 << 16);  // H
  bool lstm = reader.choice("cell", {"elman", "lstm"}) == "lstm";
  bool last = reader.choice("readout", {"last", "all"}) == "last";  // read out after the last token only

  explicit Config(const Json& json) : reader("rnn", json) { reader.finish(); }
  int gates_width() const { return lstm ? 4 * hidden : hidden; }  // R
};

// A pass's activations, position by position: T of them, in decoding the new ones.
struct Saved {
  Tokens tokens;  // (T,B)
  Tensor z;       // (T,B,R): the backward pass writes dz over it
  Tensor h, c;    // (T+1,B,H): before the first token and after each; c: LSTM only
  Tensor read;    // (B,T,H): what is read out, of all positions only
  Tensor logits;  // (B,T,V) or (B,V), with V = classes

  void resize(Ops& ops, const Config& c, const Pass& pass, bool last) {
    const int B = pass.batch, T = pass.count;
    tokens.resize(ops, {T, B});
    z.resize(ops, {T, B, c.gates_width()});
    h.resize(ops, {T + 1, B, c.hidden});
    if (c.lstm) this->c.resize(ops, {T + 1, B, c.hidden});
    if (!last) read.resize(ops, {B, T, c.hidden});
    if (pass.need_logits) logits.resize(ops, {last ? B : pass.rows(), c.classes});
  }
};

// What decoding stores: h and c after the last token.
struct State {
  Tensor h, c;  // (B,H) each; c: LSTM only
};

// Gradients of activations.
struct Gradients {
  Tensor dread;  // (B,T,H): where all positions are read out
  Tensor dh;     // (T,B,H)
  Tensor dc;     // (B,H): LSTM only, of the step at work

  void resize(Ops& ops, const Config& c, const Pass& pass) {
    const int B = pass.batch, T = pass.count;
    if (!c.last) dread.resize(ops, {B, T, c.hidden});
    dh.resize(ops, {T, B, c.hidden});
    if (c.lstm) dc.resize(ops, {B, c.hidden});
  }
};

class Rnn final : public Model {
  Config config_;
  Ops& ops_;
  Parameter *input_, *input_bias_;  // (R,vocab), (R): W_x, b_x
  Linear hidden_;                   // (R,H), with a bias: W_h, b_h
  Linear head_;                     // (V,H), with a bias
  Pass pass_{};                     // the last forward()
  Saved saved_;                     // its activations
  Gradients gradients_;

 public:
  Rnn(const Json& json, Ops& ops) : config_(json), ops_(ops) {
    const Config& c = config_;
    const int R = c.gates_width();
    // The field's default: all weights and biases evenly within ±1/√H.
    const Init init = Init::uniform(1 / numerics::sqrt(static_cast<real>(c.hidden)));
    input_ = &parameters.add("cell.input.weight", {R, c.vocab}, init);
    input_bias_ = &parameters.add("cell.input.bias", {R}, init);
    hidden_ = Linear(parameters, "cell.hidden", c.hidden, R, init);
    hidden_.bias = &parameters.add("cell.hidden.bias", {R}, init);
    head_ = Linear(parameters, "head", c.hidden, c.classes, init);
    head_.bias = &parameters.add("head.bias", {c.classes}, init);
    parameters.allocate(ops);
  }

  int classes() const override { return config_.classes; }
  bool has_fixed_state() const override { return true; }
  int vocab() const override { return config_.vocab; }
  int64_t logit_rows(const Input& input) const override { return config_.last ? input.batch : input.rows(); }

  // The activations of step t in an array (T,B,width).
  static real* step(const Tensor& x, int64_t t, int batch, int width) { return x.data() + t * batch * width; }

  // ---- Forward ------------------------------------------------------------------------------------------------------

  const real* forward(const Input& input) override {
    pass_ = {Mode::TRAINING, input.batch, 0, input.length, input.length, true};
    return run(input, saved_, nullptr, pass_);
  }

  // The tokens of a pass through the model; state: in decoding. The logits, or null without need_logits: of the last
  // position with readout "last"; in decoding of all, because each token may turn out to be the last.
  const real* run(const Input& input, Saved& s, State* state, const Pass& pass) {
    const Config& c = config_;
    const int B = pass.batch, T = pass.count, H = c.hidden, R = c.gates_width();
    const int64_t N = pass.rows();
    const bool last = c.last && pass.is_training();
    const int32_t* const tokens = input.tokens_for("rnn");
    const auto weights = parameters.hold();  // every position is multiplied with the same ones
    s.resize(ops_, c, pass, last);

    const size_t id = sizeof(int32_t);
    for (int b = 0; b < B; ++b)
      ops_.copy(s.tokens.data() + b, B * id, tokens + static_cast<int64_t>(b) * T, id, id, static_cast<size_t>(T));
    ops_.linear_one_hot(s.z, input_->value, input_bias_->value, s.tokens, N, c.vocab, R);
    begin(s.h, state ? &state->h : nullptr);
    if (c.lstm) begin(s.c, state ? &state->c : nullptr);
    for (int t = 0; t < T; ++t) {
      real *z = step(s.z, t, B, R), *h_before = step(s.h, t, B, H), *h = step(s.h, t + 1, B, H);
      // z_t = W_x x_t + b_x + W_h h_{t−1} + b_h, then h_t and c_t
      hidden_.forward(ops_, z, h_before, B, Into::ADD);
      if (c.lstm)
        ops_.lstm_cell(h, step(s.c, t + 1, B, H), z, step(s.c, t, B, H), B, H);
      else
        ops_.tanh(h, z, static_cast<int64_t>(B) * H);
    }
    if (state) end(state->h, s.h);
    if (state && c.lstm) end(state->c, s.c);
    if (!pass.need_logits) return nullptr;

    const real* const read = last ? step(s.h, T, B, H) : s.read.data();
    if (!last) swap_order(s.read, step(s.h, 1, B, H), false, B, T);
    head_.forward(ops_, s.logits, read, last ? B : N);
    return s.logits;
  }

  // The state before the first token, all (T+1,B,H): zeros, or the decoder's (B,H).
  void begin(Tensor& all, const Tensor* before) const {
    const size_t bytes = static_cast<size_t>(all.shape()[1] * all.shape()[2]) * sizeof(real);
    if (before)
      ops_.copy(all, bytes, before->data(), bytes, bytes, 1);
    else
      ops_.zero(all, bytes);
  }

  // The state after the last token to the decoder.
  void end(Tensor& before, const Tensor& all) const {
    ops_.copy(before, 0, all.data() + all.size() - before.size(), 0, before.bytes(), 1);
  }

  // Vectors of H between the orders (B,T) and (T,B).
  void swap_order(real* by_sample, real* by_position, bool to_positions, int B, int T) {
    const int64_t H = config_.hidden;
    const size_t row = static_cast<size_t>(H) * sizeof(real);
    for (int b = 0; b < B; ++b) {
      real *sample = by_sample + b * T * H, *positions = by_position + b * H;
      if (to_positions)
        ops_.copy(positions, B * row, sample, row, row, static_cast<size_t>(T));
      else
        ops_.copy(sample, row, positions, B * row, row, static_cast<size_t>(T));
    }
  }

  // ---- Backward -----------------------------------------------------------------------------------------------------

  void backward(const Input& input, const real* dlogits) override {
    const Config& c = config_;
    const Saved& s = saved_;
    Gradients& g = gradients_;
    const int B = input.batch, T = input.length, H = c.hidden, R = c.gates_width();
    const int64_t N = input.rows();
    g.resize(ops_, c, pass_);
    const real* const read = c.last ? step(s.h, T, B, H) : s.read.data();
    real* const dread = c.last ? step(g.dh, T - 1, B, H) : g.dread.data();

    head_.backward(ops_, dread, dlogits, read, logit_rows(input));
    if (!c.last) swap_order(dread, g.dh, true, B, T);

    if (c.lstm) g.dc.zero();
    for (int t = T; t-- > 0;) {
      real *dz = step(s.z, t, B, R), *dh = step(g.dh, t, B, H);
      if (c.lstm)
        ops_.lstm_cell_backward(dz, g.dc, dh, dz, step(s.c, t + 1, B, H), step(s.c, t, B, H), B, H);
      else
        ops_.tanh_backward(dz, dh, step(s.h, t + 1, B, H), static_cast<int64_t>(B) * H);
      if (t > 0) hidden_.backward_input(ops_, step(g.dh, t - 1, B, H), dz, B, c.last ? Into::WRITE : Into::ADD);
    }
    const real *dz = s.z, *h_before = s.h.data();
    hidden_.backward_weight(ops_, dz, h_before, N);
    ops_.linear_one_hot_backward(input_->gradient, input_bias_->gradient, dz, s.tokens, N, c.vocab, R);
  }

  // ---- Decoding -----------------------------------------------------------------------------------------------------

  std::unique_ptr<Decoder> make_decoder(int batch, int capacity) override {
    State state;
    for (Tensor* t : {&state.h, &state.c}) {
      t->resize(ops_, {batch, config_.hidden});
      t->zero();
    }
    return make_model_decoder<Saved>("rnn", *this, std::move(state), batch, capacity);
  }
};

}  // namespace petroglyph::rnn

std::unique_ptr<petroglyph::Model> petroglyph::make_rnn(const Json& config, Ops& ops) {
  return std::make_unique<rnn::Rnn>(config, ops);
}
