// Continues a prompt with a sequence model, one token at a time.
#pragma once

#include <memory>
#include <vector>

#include "generation/sampling.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace petroglyph {

// The tokens of a prompt. window: the model's window at the beginning of a text, otherwise 0. A prompt shorter than
// the window is padded with new lines at the front. A model that reads only full windows was never trained on the
// beginning of a text, and a new line is the most likely character before one.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt, int window,
                                   Reading reading = Reading::PROMPT);

// The capacity of a decoder for `wanted` tokens, limited by the model's maximal length. A model whose depth depends
// on the length always gets its training context (`learned`, 0: unknown), so that its text does not depend on the
// requested length.
int64_t decoder_capacity(const Model& model, int64_t wanted, int learned);

// What a model reads again when all positions are used. HALF: the later half, which is fast. SLIDE: before each new
// token, all but one token, so that the model always has the longest possible context.
enum class Window { HALF, SLIDE };

// Generates one continuation.
class Generator {
 public:
  // tokenizer: only its tokens are sampled; a model may have more tokens, whose logits are ignored.
  // capacity: the number of tokens of prompt and continuation, limited by the model's maximal length.
  Generator(Model& model, Ops& ops, const Tokenizer& tokenizer, const Sampling& sampling, uint64_t seed,
            uint32_t sample, int64_t capacity, Window window = Window::HALF);

  // Must read at least one token before the first next(), and at least a window if the model reads windows. If there
  // are more tokens than the capacity, only the last ones are read. Ends early on Ctrl-C.
  void read(const std::vector<int32_t>& tokens);
  // Samples a token and reads it as the next input.
  int32_t next();

 private:
  // Starts a new decoder with the last tokens when all positions are used.
  void refill();
  // need_logits: requires count == 1
  void feed(const int32_t* tokens, int count, bool need_logits);

  Model& model_;
  Ops& ops_;
  const Sampling sampling_;
  uint64_t seed_;
  uint32_t sample_;
  int capacity_;
  Window window_;
  uint64_t drawn_ = 0;
  std::vector<int32_t> tokens_;  // prompt and continuation so far
  std::unique_ptr<Decoder> decoder_;
  Tokens chunk_;
  std::vector<real> logits_;  // (V'), after the last token; only for tokens that can be sampled
};

}  // namespace petroglyph
