// Lets a sequence model go on from a prompt, one token at a time.
#pragma once

#include <memory>
#include <vector>

#include "generation/sampling.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace petroglyph {

// The tokens of a prompt.
// window: the model's, where a text begins, else 0. The prompt has new lines before it until it fills one: a model
// that reads whole windows only has never seen the beginning of a text, and a new line is what most often stands
// before one.
std::vector<int32_t> prompt_tokens(const Tokenizer& tokenizer, const std::string& prompt, int window,
                                   Reading reading = Reading::PROMPT);

// The capacity of a decoder that shall take `wanted` tokens: as many as the model can read; of one that deepens with
// length always the context that it learned with, so that what it says does not depend on how much is asked for.
// learned: the context that the model learned with; 0: not known
int64_t decoder_capacity(const Model& model, int64_t wanted, int learned);

// Where a model's positions are used up, what it reads again to go on: the later half, which is cheap, or all but one
// token before each new one, so that it always sees as far back as it can.
enum class Window { HALF, SLIDE };

// One continuation.
class Generator {
 public:
  // tokenizer: its tokens are said; a model may have more, whose logits then count for nothing.
  // capacity: tokens that prompt and continuation will have, at most what the model can read.
  Generator(Model& model, Ops& ops, const Tokenizer& tokenizer, const Sampling& sampling, uint64_t seed,
            uint32_t sample, int64_t capacity, Window window = Window::HALF);

  // At least one token before the first next(), and at least a window where the model reads windows. Of more than the
  // model can see only the last ones are read. Ends early where the user interrupts.
  void read(const std::vector<int32_t>& tokens);
  // Draws a token and reads it.
  int32_t next();

 private:
  void make_room();
  // answer: there is one token, and its logits are wanted
  void feed(const int32_t* tokens, int count, bool answer);

  Model& model_;
  Ops& ops_;
  Sampler sampler_;
  uint64_t seed_;
  uint32_t sample_;
  int capacity_;
  Window window_;
  uint64_t drawn_ = 0;
  std::vector<int32_t> tokens_;  // all that were read
  std::unique_ptr<Decoder> decoder_;
  Tokens piece_;
  std::vector<real> logits_;  // (V'), after the last token: of the tokens that may be said
};

}  // namespace petroglyph
