// The decoder of a model that reads a window of fixed length: make_window_decoder() of model.h.

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "models/model.h"

namespace petroglyph {

namespace {

class WindowDecoder final : public Decoder {
 public:
  WindowDecoder(Model& model, Ops& ops, std::string name, int window, int batch, int capacity)
      : Decoder(std::move(name), capacity),
        model_(model),
        ops_(ops),
        window_(window),
        batch_(batch),
        capacity_(static_cast<size_t>(capacity)),
        tokens_(ops, {batch, capacity}) {}

 private:
  static constexpr size_t TOKEN = sizeof(int32_t);

  const real* advance(const int32_t* tokens, int n, bool need_logits) override {
    const size_t row = static_cast<size_t>(n) * TOKEN;
    ops_.copy(tokens_ + length(), capacity_ * TOKEN, tokens, row, row, batch_);
    if (!need_logits) return nullptr;
    logits_.resize(ops_, {batch_, n, model_.classes()});
    const int early = std::clamp(window_ - 1 - length(), 0, n);  // positions before the first whole window
    if (early > 0)
      logits_.upload(std::vector<real>(static_cast<size_t>(logits_.size()), std::numeric_limits<real>::quiet_NaN()));
    for (int i = early; i < n; ++i) read_window(i, n);
    return logits_;
  }

  // The logits of the i-th of n new positions.
  void read_window(int i, int n) {
    const int V = model_.classes();
    const size_t window = window_ * TOKEN, row = V * sizeof(real);
    windows_.resize(ops_, {batch_, window_});
    ops_.copy(windows_, window, tokens_ + length() + i + 1 - window_, capacity_ * TOKEN, window, batch_);
    const real* const logits = model_.forward({windows_, batch_, window_});
    ops_.copy(logits_ + static_cast<int64_t>(i) * V, row * n, logits, row, row, batch_);
  }

  Model& model_;
  Ops& ops_;
  int window_, batch_;
  size_t capacity_;
  Tokens tokens_, windows_;  // (B,capacity), (B,W)
  Tensor logits_;            // (B,n,V)
};

}  // namespace

std::unique_ptr<Decoder> make_window_decoder(Model& model, Ops& ops, const std::string& name, int window, int batch,
                                             int capacity) {
  return std::make_unique<WindowDecoder>(model, ops, name, window, batch, capacity);
}

}  // namespace petroglyph
