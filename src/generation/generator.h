// Continues a prompt with a sequence model, one token at a time.
#pragma once

#include <memory>
#include <vector>

#include "generation/sampling.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace petroglyph {

// The tokens of a prompt.
// window: the model's at the beginning of a text, else 0. New lines are put before a prompt that does not fill it: a model that reads
// only whole windows was never trained on the beginning of a text, and a new line is the most likely character before one.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt, int window,
                                   Reading reading = Reading::PROMPT);

// The capacity of a decoder for `wanted` tokens: at most what the model can read; for a model that deepens with length always the
// context that it was trained with (`learned`, 0: not known), so that its text does not depend on the requested length.
int64_t decoder_capacity(const Model& model, int64_t wanted, int learned);

// What a model reads again when its positions are used up: the later half, which is cheap, or all but one
// token before each new one, so that it always sees as far back as it can.
enum class Window { HALF, SLIDE };

// One continuation.
class Generator {
 public:
  // tokenizer: its tokens can be sampled; a model may have more, whose logits are ignored.
  // capacity: tokens that prompt and continuation will have, at most what the model can read.
  Generator(Model& model, Ops& ops, const Tokenizer& tokenizer, const Sampling& sampling, uint64_t seed,
            uint32_t sample, int64_t capacity, Window window = Window::HALF);

  // At least one token before the first next(), and at least a window if the model reads windows. Of more than the capacity only the
  // last ones are read. Ends early on Ctrl-C.
  void read(const std::vector<int32_t>& tokens);
  // Draws a token and reads it.
  int32_t next();

 private:
  // Starts another decoder with the last tokens, once all positions are used.
  void refill();
  // need_logits: there is one token
  void feed(const int32_t* tokens, int count, bool need_logits);

  Model& model_;
  Ops& ops_;
  Sampler sampler_;
  uint64_t seed_;
  uint32_t sample_;
  int capacity_;
  Window window_;
  uint64_t drawn_ = 0;
  std::vector<int32_t> tokens_;  // all so far
  std::unique_ptr<Decoder> decoder_;
  Tokens chunk_;
  std::vector<real> logits_;  // (V'), after the last token: of the tokens that can be sampled
};

}  // namespace petroglyph
