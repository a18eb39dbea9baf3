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
    const int early = std::clamp(window_ - 1 - length(), 0, n);  // positions before the first whole window
    const size_t rows = static_cast<size_t>(batch_), count = static_cast<size_t>(n);
    ops_.copy(tokens_.data() + length(), capacity_ * TOKEN, tokens, count * TOKEN, count * TOKEN, rows);
    if (!need_logits) return nullptr;
    logits_.resize(ops_, {batch_, n, model_.classes()});
    if (early > 0)
      logits_.upload(std::vector<real>(static_cast<size_t>(logits_.size()), std::numeric_limits<real>::quiet_NaN()));
    if (early < n) read_windows(early, n);
    return logits_.data();
  }

  // The logits of the new positions begin … n−1: a batch of one window for each.
  void read_windows(int begin, int n) {
    const size_t rows = static_cast<size_t>(batch_), count = static_cast<size_t>(n - begin);
    const size_t row = static_cast<size_t>(window_) * TOKEN;
    windows_.resize(ops_, {batch_, n - begin, window_});
    for (int i = begin; i < n; ++i)
      ops_.copy(windows_.data() + static_cast<int64_t>(i - begin) * window_, row * count,
                tokens_.data() + length() + i + 1 - window_, capacity_ * TOKEN, row, rows);
    const real* logits = model_.forward({windows_.data(), batch_ * (n - begin), window_});
    const size_t logits_row = static_cast<size_t>(model_.classes()) * sizeof(real);
    ops_.copy(logits_.data() + static_cast<int64_t>(begin) * model_.classes(), logits_row * static_cast<size_t>(n),
              logits, logits_row * count, logits_row * count, rows);
  }

  Model& model_;
  Ops& ops_;
  int window_, batch_;
  size_t capacity_;
  Tokens tokens_, windows_;  // (B,capacity), (B,windows,W)
  Tensor logits_;            // (B,n,V)
};

}  // namespace

std::unique_ptr<Decoder> make_window_decoder(Model& model, Ops& ops, const std::string& name, int window, int batch,
                                             int capacity) {
  return std::make_unique<WindowDecoder>(model, ops, name, window, batch, capacity);
}

}  // namespace petroglyph
