// The training text on the command line: which files, which tokens, and which part is for evaluations.
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

  // On --resume the files may have other paths; the run compares their samples with those it was trained on (run.h).
  void declare(Options& options);
  // The names of the two texts in messages and titles.
  std::string name() const { return data.empty() ? "the stories" : data; }
  std::string validation_name() const { return validation.empty() ? "the end of " + name() : validation; }
};

struct OpenText {
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const Corpus> training, validation;
};

constexpr size_t STORY_BYTES = 4 << 20;  // more than a default run of ./train_text reads

// story_bytes: length of the generated stories if there are no files. tokenizer: used instead of the source's own.
OpenText open_text_source(const TextSource& source, size_t story_bytes, std::unique_ptr<Tokenizer> tokenizer = nullptr);

}  // namespace petroglyph
