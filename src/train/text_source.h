// The text that a program learns from, on the command line: which files, which tokens, and which part is for evaluations.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/options.h"
#include "tasks/corpus.h"
#include "tokenizers/tokenizer.h"

namespace petroglyph {

struct TextSource {
  std::string data, validation, tokenizer = "auto", format = "auto";
  bool replace = false;
  double validation_part = 0.05;

  // may_move: --resume may name the files anew, for the run holds what is in them against what it has learned from (run.h).
  void declare(Options& options, bool may_move = false);
  // Throws UsageError for what was given and does nothing beside the rest.
  void check(const Options& options) const;
  // What messages and titles call the two texts.
  std::string name() const { return data.empty() ? "the stories" : data; }
  std::string validation_name() const { return validation.empty() ? "the end of " + name() : validation; }
};

struct OpenText {
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const Corpus> training, validation;
};

// Of all tokens of both, in 16 digits: the same wherever the files lie, another one where they were changed.
std::string checksum_of(const OpenText& text);

constexpr size_t STORY_BYTES = 4 << 20;  // more than a default run of ./train_text reads

// story_bytes: how much is told where there are no files. tokenizer: in place of the source's own.
OpenText open_text_source(const TextSource& source, size_t story_bytes, std::unique_ptr<Tokenizer> tokenizer = nullptr);

}  // namespace petroglyph
