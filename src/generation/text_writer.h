// Writes a model's text to the standard output: the continuation of a prompt, or of each line that a user types.
#pragma once

#include <string>
#include <vector>

#include "generation/character_writer.h"
#include "generation/generator.h"
#include "generation/sampling.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace petroglyph {

struct TextWriting {
  int length = 200, samples = 1;  // tokens to write, and how often
  Sampling sampling;
  uint64_t seed = 1;
  Window window = Window::HALF;
  bool special = false;  // each special token in a prompt is one token
  int context = 0;       // training context of the model; 0: unknown
  bool quiet = false;    // print only the text
};

class TextWriter {
 public:
  // model, ops and tokenizer must outlive the writer.
  TextWriter(Model& model, Ops& ops, const Tokenizer& tokenizer, const TextWriting& how)
      : model_(model), ops_(ops), tokenizer_(tokenizer), how_(how) {}

  // origin: the source of the prompt. The Error for a character that the tokenizer does not have begins with it.
  void continue_prompt(const std::string& prompt, const std::string& origin);
  // Reads lines from the standard input. After each line, continues the whole text so far, as far back as the model
  // can read.
  void converse();

  int64_t written() const { return written_; }  // tokens
  double seconds() const { return seconds_; }   // for reading prompts and writing, without waiting for input

 private:
  std::vector<int32_t> tokens_of(const std::string& prompt, const std::string& origin, bool first);
  void note_long_prompt(int64_t tokens, int64_t longest) const;
  Generator generator(int sample, int64_t capacity);
  void write(Generator& generator, CharacterWriter& out);

  Model& model_;
  Ops& ops_;
  const Tokenizer& tokenizer_;
  const TextWriting how_;
  int64_t written_ = 0;
  double seconds_ = 0;
  bool noted_special_ = false;
};

}  // namespace petroglyph
