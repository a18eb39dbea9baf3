#include "generation/generator.h"

#include <algorithm>

#include "base/interrupt.h"
#include "math/random.h"

namespace petroglyph {

namespace {
constexpr int CHUNK = 32;  // tokens of a prompt that are decoded at a time: Ctrl-C takes effect between two chunks
}

std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt, int window, Reading reading) {
  std::vector<int32_t> tokens, line;
  tokenizer.encode(prompt, tokens, reading);
  tokenizer.encode("\n", line);
  const auto least = static_cast<size_t>(window);
  if (tokens.size() < least) tokens.insert(tokens.begin(), least - tokens.size(), line.front());
  return tokens;
}

int64_t decoder_capacity(const Model& model, int64_t wanted, int learned) {
  if (model.deepens() && learned > 0) return learned;
  return std::min<int64_t>(wanted, model.longest());
}

Generator::Generator(Model& model, Ops& ops, const Tokenizer& tokenizer, const Sampling& sampling, uint64_t seed,
                     uint32_t sample, int64_t capacity, Window window)
    : model_(model),
      ops_(ops),
      sampling_(sampling),
      seed_(seed),
      sample_(sample),
      capacity_(static_cast<int>(std::min<int64_t>(capacity, model.longest()))),
      window_(window),
      decoder_(model.decoder(1, capacity_)),
      logits_(static_cast<size_t>(std::min(model.classes(), tokenizer.vocab()))) {}

void Generator::read(const std::vector<int32_t>& tokens) {
  model_.check_tokens(tokens);
  const auto most = static_cast<size_t>(capacity_);
  if (tokens.size() > most && decoder_->length() > 0) decoder_ = model_.decoder(1, capacity_);
  for (size_t at = tokens.size() - std::min(tokens.size(), most); at < tokens.size() && !interrupted();) {
    if (decoder_->length() == capacity_) refill();
    const size_t space = static_cast<size_t>(capacity_ - decoder_->length()), before_last = tokens.size() - 1 - at;
    const size_t count = std::max<size_t>(1, std::min({before_last, space, static_cast<size_t>(CHUNK)}));
    tokens_.insert(tokens_.end(), &tokens[at], &tokens[at] + count);
    feed(&tokens[at], static_cast<int>(count), before_last == 0);
    at += count;
  }
}

int32_t Generator::next() {
  const real u = uniform(philox(seed_, stream_of("generate"), sample_, drawn_++).word[0]);
  const int32_t token = draw_token(logits_, sampling_, u);
  read({token});
  return token;
}

void Generator::refill() {
  decoder_ = model_.decoder(1, capacity_);
  const int kept = window_ == Window::SLIDE ? capacity_ - 1 : capacity_ / 2;
  for (int at = 0; at < kept && !interrupted(); at += CHUNK)
    feed(&tokens_[tokens_.size() - static_cast<size_t>(kept - at)], std::min(CHUNK, kept - at), false);
}

void Generator::feed(const int32_t* tokens, int count, bool need_logits) {
  chunk_.resize(ops_, {count});
  chunk_.upload({tokens, tokens + count});
  if (!need_logits) return decoder_->prefill(chunk_.data(), count);
  ops_.download(logits_.data(), decoder_->decode(chunk_.data(), count), logits_.size() * sizeof(real));
}

}  // namespace petroglyph
