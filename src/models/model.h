// What a model offers: named parameters, a forward and a backward pass over a batch, and a decoder for generating token
// by token.
#pragma once

#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "math/random.h"
#include "ops/ops.h"

namespace petroglyph {

// Initial values of a parameter, for each element's index.
struct Init {
  std::function<real(uint64_t seed, uint32_t stream, uint64_t index)> value;

  static Init constant(real value) {
    return {[=](uint64_t, uint32_t, uint64_t) { return value; }};
  }
  static Init zeros() { return constant(0); }
  static Init ones() { return constant(1); }
  // N(0, deviation²)
  static Init normal(real deviation) {
    return {
        [=](uint64_t seed, uint32_t stream, uint64_t i) { return deviation * petroglyph::normal(seed, stream, 0, i); }};
  }
  // A function of the index and of four random words.
  static Init function(const std::function<real(int64_t index, const Random4& random)>& f) {
    return {[=](uint64_t seed, uint32_t stream, uint64_t i) {
      return f(static_cast<int64_t>(i), philox(seed, stream, 0, i));
    }};
  }
  // Uniform between −bound and bound.
  static Init uniform(real bound) {
    return function(
        [=](int64_t, const Random4& random) { return bound * (2 * petroglyph::uniform(random.word[0]) - 1); });
  }
};

struct Parameter {
  std::string name;
  Shape shape;
  Init init;
  int64_t begin = 0;  // index of its first element in Parameters::values()
  real* value = nullptr;
  real* gradient = nullptr;

  int64_t size() const { return elements(shape); }
};

// All parameters of a model in one array, and their gradients in another. So clearing, the global norm and the
// fingerprint are one operation each, and AdamW is one for each group of neighbours with or without weight decay
// (train/optimizer.cpp).
class Parameters {
 public:
  // Declares a parameter, before allocate(). The reference stays valid.
  Parameter& add(std::string name, Shape shape, Init init);
  void allocate(Ops& ops);

  // Initial values depend only on the seed and the parameter's name (random.h).
  void initialize(uint64_t seed);
  // The first call allocates the gradients: a model that only generates needs none.
  void zero_gradients();
  // While the result lives, products may use packed copies of the values, which must not change (Ops::hold). For passes
  // that multiply by the same values many times.
  std::shared_ptr<const real> hold() const { return ops_->hold(values_.data(), padded_size_); }
  // A 64-bit checksum of all values in order.
  uint64_t fingerprint() const;

  const std::deque<Parameter>& list() const { return list_; }
  Parameter* find(const std::string& name);
  int64_t size() const { return size_; }
  int64_t padded_size() const { return padded_size_; }  // of values() and gradients()
  // The number of parameters without embeddings and readout.
  int64_t size_of_layers() const;
  const Tensor& values() const { return values_; }
  const Tensor& gradients() const { return gradients_; }
  // All values, in the layout of values(): each parameter from parameter.begin on, zeros between them.
  void upload_all(const std::vector<real>& values) { values_.upload(values); }
  void upload(const Parameter& parameter, const std::vector<real>& values);

 private:
  std::deque<Parameter> list_;
  Ops* ops_ = nullptr;
  int64_t size_ = 0, padded_size_ = 0;  // padded_size_ includes the gaps between parameters, which stay zero
  Tensor values_, gradients_;
};

// A model's input, on the device: token ids, or the patches of images.
struct Input {
  const int32_t* tokens;          // (B,T); null where the model reads patches
  int batch, length;              // B, T
  const real* patches = nullptr;  // (B,T,P)

  int64_t rows() const { return static_cast<int64_t>(batch) * length; }
  // The tokens. Throws Error, with the model's name, if there are only patches.
  const int32_t* tokens_for(const std::string& model) const;
};

// What a forward pass is for.
enum class Mode {
  TRAINING,  // whole sequences; every block's activations are saved for the backward pass
  DECODING,  // the newest positions of sequences, after those in a KV cache or state; nothing is saved
};

// What one forward pass computes.
struct Pass {
  Mode mode;
  int batch;         // B sequences
  int first, count;  // n = count positions of each, after `first` earlier ones; in training 0 and T
  int capacity;      // the largest number of positions of a sequence; in training T
  bool need_logits;

  int64_t rows() const { return static_cast<int64_t>(batch) * count; }  // N = B·n
  bool is_training() const { return mode == Mode::TRAINING; }
};

// Incremental decoding of a batch of sequences. Stores what later tokens need of the earlier ones: a KV cache
// (attention) or a state (recurrent models). The logits are bit-identical to those of one forward pass over the whole
// sequences.
class Decoder {
 public:
  // name: the model's, for error messages. capacity: the largest number of positions.
  Decoder(std::string name, int capacity) : name_(std::move(name)), capacity_(capacity) {}
  virtual ~Decoder() = default;
  // Adds the (B,n) tokens, n ≥ 1, and returns their logits (B,n,V), on the device, valid until the next call.
  // Throws Error beyond the capacity, and is then unchanged; after any other Error the decoder cannot be used any more.
  const real* decode(const int32_t* tokens, int n) { return add(tokens, n, true); }
  // Adds the tokens without computing their logits, which take memory and time where the vocabulary is large.
  void prefill(const int32_t* tokens, int n) { add(tokens, n, false); }
  int length() const { return length_; }

 protected:
  // Adds n tokens after length() earlier ones. Returns their logits, or null without need_logits.
  virtual const real* advance(const int32_t* tokens, int n, bool need_logits) = 0;

 private:
  friend class Model;
  const real* add(const int32_t* tokens, int n, bool need_logits);

  std::string name_;
  int capacity_, length_ = 0;
  std::shared_ptr<const real> weights_;  // held as long as the decoder lives (Parameters::hold)
};

// The decoder of a model whose pass is run(input, saved, memory, pass), with its struct Saved. Memory: its KvCache or
// State, or a vector of one for each block.
template <class Saved, class M, class Memory>
class ModelDecoder final : public Decoder {
 public:
  ModelDecoder(const char* name, M& model, Memory memory, int batch, int capacity)
      : Decoder(name, capacity), model_(model), batch_(batch), capacity_(capacity), memory_(std::move(memory)) {}

 private:
  const real* advance(const int32_t* tokens, int n, bool need_logits) override {
    const Pass pass = {Mode::DECODING, batch_, length(), n, capacity_, need_logits};
    return model_.run({tokens, batch_, n}, saved_, &memory_, pass);
  }

  M& model_;
  int batch_, capacity_;
  Memory memory_;
  Saved saved_;
};

template <class Saved, class M, class Memory>
std::unique_ptr<Decoder> make_model_decoder(const char* name, M& model, Memory memory, int batch, int capacity) {
  return std::make_unique<ModelDecoder<Saved, M, Memory>>(name, model, std::move(memory), batch, capacity);
}

class Model {
 public:
  virtual ~Model() = default;

  // The logits of a batch, on the device: (B,T,V), or (B,V) of a model that reads out the last position only. They are
  // valid until the next forward(), as are the activations that backward() needs.
  virtual const real* forward(const Input& input) = 0;
  // Adds to every parameter's gradient, for dlogits = ∂loss/∂logits of the last forward().
  virtual void backward(const Input& input, const real* dlogits) = 0;
  // For `batch` sequences of up to `capacity` positions.
  std::unique_ptr<Decoder> decoder(int batch, int capacity);
  virtual int classes() const = 0;                                         // V, the columns of the logits
  virtual int vocab() const { return classes(); }                          // its tokens are 0 … vocab()−1
  virtual int longest() const { return std::numeric_limits<int>::max(); }  // largest T of its decoder
  // 0; or, of a model that reads exactly so many tokens and has logits for their end only, that number. Its decoder
  // slides this window: a position's logits are those of the window that ends there, NaN before the first whole one.
  virtual int window() const { return 0; }
  // Whether longer sequences pass through more layers. A decoder then has as many layers as its capacity requires.
  virtual bool deepens() const { return false; }
  // Whether the decoder's memory does not depend on its capacity, as that of a recurrent model.
  virtual bool has_fixed_state() const { return false; }
  virtual int64_t logit_rows(const Input& input) const { return input.rows(); }

  // Throws Error if one of these is not a token of the model. Call it before forward() and decode(), which do not
  // check.
  void check_tokens(const std::vector<int32_t>& tokens) const;

  // The attention weights of a block in the last forward(), of one sample: (maps,T,T), a row for each query. Throws
  // Error for a model without such weights.
  virtual std::vector<real> attention_map(size_t block, int sample);

  // If set, forward() calls it with the output of each layer, (B,T,D) on the device, T the positions of this layer.
  // Only transformer and regular_gpt do.
  std::function<void(size_t layer, const real* x, int positions, int width)> after_layer;

  Parameters parameters;

 private:
  virtual std::unique_ptr<Decoder> make_decoder(int batch, int capacity) = 0;
};

// The decoder of a model that reads a window of fixed length and has logits for its end only. Every position's logits
// are forward() of the `window` tokens up to it, so the decoder stores the tokens and nothing else. The
// logits of positions before the first whole window are NaN. Decoding runs forward passes of the model, which overwrite
// the activations that backward() needs. name: the model's, for error messages.
std::unique_ptr<Decoder> make_window_decoder(Model& model, Ops& ops, const std::string& name, int window, int batch,
                                             int capacity);

// The models by name (registry.cpp). `config` has the keys of the model's file; a bad one throws Error. origin: the file
// that the configuration comes from; its name opens error messages
std::unique_ptr<Model> make_model(const std::string& name, const Json& config, Ops& ops,
                                  const std::string& origin = "");

std::vector<std::string> model_names();
std::unique_ptr<Model> make_birn_image(const Json& config, Ops& ops);
std::unique_ptr<Model> make_causal_rn(const Json& config, Ops& ops);
std::unique_ptr<Model> make_dct_mlp(const Json& config, Ops& ops);
std::unique_ptr<Model> make_deep_sets(const Json& config, Ops& ops);
std::unique_ptr<Model> make_linear_causal_rn(const Json& config, Ops& ops);
std::unique_ptr<Model> make_linear_transformer(const Json& config, Ops& ops);
std::unique_ptr<Model> make_mamba(const Json& config, Ops& ops);
std::unique_ptr<Model> make_mlp_lm(const Json& config, Ops& ops);
std::unique_ptr<Model> make_regular_gpt(const Json& config, Ops& ops);
std::unique_ptr<Model> make_relation_network(const Json& config, Ops& ops);
std::unique_ptr<Model> make_rnn(const Json& config, Ops& ops);
std::unique_ptr<Model> make_transformer(const Json& config, Ops& ops);

}  // namespace petroglyph
