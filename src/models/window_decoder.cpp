#include "models/window_decoder.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"

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
        recent_(ops, {batch, window - 1}) {}

 private:
  static constexpr size_t TOKEN = sizeof(int32_t);

  const real* advance(const int32_t* tokens, int n, bool need_logits) override {
    const int early = std::clamp(window_ - 1 - length(), 0, n);  // positions before the first whole window
    join(tokens, n);
    if (!need_logits) return nullptr;
    logits_.resize(ops_, {batch_, n, model_.classes()});
    if (early > 0)
      logits_.upload(std::vector<real>(static_cast<size_t>(logits_.size()), std::numeric_limits<real>::quiet_NaN()));
    if (early < n) read_windows(early, n);
    return logits_.data();
  }

  // joined_ (B,W−1+n) = the last W − 1 tokens, then the new ones. At the start, fewer than W − 1 are valid: the last of
  // these places.
  void join(const int32_t* tokens, int n) {
    const size_t before = static_cast<size_t>(window_) - 1, row = (before + static_cast<size_t>(n)) * TOKEN;
    joined_.resize(ops_, {batch_, window_ - 1 + n});
    ops_.copy(joined_.data(), row, recent_.data(), before * TOKEN, before * TOKEN, static_cast<size_t>(batch_));
    ops_.copy(joined_.data() + before, row, tokens, static_cast<size_t>(n) * TOKEN, static_cast<size_t>(n) * TOKEN,
              static_cast<size_t>(batch_));
    ops_.copy(recent_.data(), before * TOKEN, joined_.data() + n, row, before * TOKEN, static_cast<size_t>(batch_));
  }

  // The logits of the new positions begin … n−1: a batch of one window for each.
  void read_windows(int begin, int n) {
    const int count = n - begin;
    const size_t row = static_cast<size_t>(window_) * TOKEN;
    windows_.resize(ops_, {batch_, count, window_});
    for (int i = 0; i < count; ++i)
      ops_.copy(windows_.data() + static_cast<int64_t>(i) * window_, row * static_cast<size_t>(count),
                joined_.data() + begin + i, (static_cast<size_t>(window_) - 1 + static_cast<size_t>(n)) * TOKEN, row,
                static_cast<size_t>(batch_));
    const real* logits = model_.forward({windows_.data(), batch_ * count, window_});
    const size_t logits_row = static_cast<size_t>(model_.classes()) * sizeof(real);
    ops_.copy(logits_.data() + static_cast<int64_t>(begin) * model_.classes(), logits_row * static_cast<size_t>(n),
              logits, logits_row * static_cast<size_t>(count), logits_row * static_cast<size_t>(count),
              static_cast<size_t>(batch_));
  }

  Model& model_;
  Ops& ops_;
  int window_, batch_;
  Tokens recent_, joined_, windows_;  // (B,W−1), (B,W−1+n), (B,windows,W)
  Tensor logits_;                     // (B,n,V)
};

}  // namespace

std::unique_ptr<Decoder> make_window_decoder(Model& model, Ops& ops, const std::string& name, int window, int batch,
                                             int capacity) {
  return std::make_unique<WindowDecoder>(model, ops, name, window, batch, capacity);
}

}  // namespace petroglyph
