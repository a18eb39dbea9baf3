#include "models/model.h"

#include "base/checksum.h"
#include "base/error.h"
#include "base/text.h"
#include "math/random.h"

namespace petroglyph {

namespace {
// Each parameter starts on a cache line, so that devices may read four or sixteen numbers at a time.
constexpr int64_t ALIGNMENT = 16;
}  // namespace

const int32_t* Input::tokens_for(const std::string& model) const {
  if (!tokens) throw Error(model + ": reads tokens, not patches of images");
  return tokens;
}

const real* Decoder::add(const int32_t* tokens, int n, bool need_logits) {
  if (n < 1) throw Error(text("%s: %d tokens to decode, expected at least 1", name_.c_str(), n));
  if (n > capacity_ - length_)
    throw Error(
        text("%s: %d tokens are more than the decoder's capacity of %d", name_.c_str(), length_ + n, capacity_));
  const real* const logits = advance(tokens, n, need_logits);
  length_ += n;
  return logits;
}

Parameter& Parameters::add(std::string name, Shape shape, Init init) {
  list_.push_back({std::move(name), std::move(shape), std::move(init), padded_size_});
  size_ += list_.back().size();
  padded_size_ += (list_.back().size() + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  return list_.back();
}

void Parameters::allocate(Ops& ops) {
  ops_ = &ops;
  values_ = Tensor(ops, {padded_size_});
  values_.zero();
  for (Parameter& p : list_) p.value = values_.data() + p.begin;
}

void Parameters::zero_gradients() {
  if (gradients_.size() < padded_size_) {
    gradients_ = Tensor(*ops_, {padded_size_});
    for (Parameter& p : list_) p.gradient = gradients_.data() + p.begin;
  }
  gradients_.zero();
}

void Parameters::initialize(uint64_t seed) {
  std::vector<real> host(static_cast<size_t>(padded_size_));
  for (const Parameter& p : list_) {
    const uint32_t stream = stream_of(p.name);
    for (int64_t i = 0; i < p.size(); ++i)
      host[static_cast<size_t>(p.begin + i)] = p.init.value(seed, stream, static_cast<uint64_t>(i));
  }
  values_.upload(host);
}

uint64_t Parameters::fingerprint() const {
  const std::vector<real> host = values_.download();
  Checksum checksum;
  for (const Parameter& p : list_) checksum.update(host.data() + p.begin, static_cast<size_t>(p.size()) * sizeof(real));
  return checksum.value();
}

Parameter* Parameters::find(const std::string& name) {
  for (Parameter& p : list_)
    if (p.name == name) return &p;
  return nullptr;
}

int64_t Parameters::size_of_layers() const {
  int64_t size = size_;
  for (const Parameter& p : list_)
    if (p.name.find("_embedding.") != std::string::npos || p.name == "cls_token" || p.name == "padding" ||
        p.name.rfind("head.", 0) == 0)
      size -= p.size();
  return size;
}

void Parameters::upload(const Parameter& parameter, const std::vector<real>& values) {
  ops_->upload(parameter.value, values.data(), values.size() * sizeof(real));
}

std::unique_ptr<Decoder> Model::decoder(int batch, int capacity) {
  std::unique_ptr<Decoder> decoder = make_decoder(batch, capacity);
  decoder->weights_ = parameters.hold();
  return decoder;
}

void Model::check_tokens(const std::vector<int32_t>& tokens) const {
  const int most = vocab();
  for (const int32_t token : tokens)
    if (token < 0 || token >= most)
      throw Error(text("token %d: expected one of the model's, 0 to %d", token, most - 1));
}

std::vector<real> Model::attention_map(size_t, int) { throw Error("this model has no attention maps"); }

}  // namespace petroglyph
