#include "train/text_source.h"

#include <algorithm>
#include <vector>

#include "base/checksum.h"
#include "base/error.h"
#include "base/program.h"
#include "math/random.h"
#include "tasks/stories.h"

namespace petroglyph {

void TextSource::declare(Options& options, bool may_move) {
  Option& training =
      options.add("data", &data, "text, or llm.c's .bin shards; default: small stories from a grammar of our own")
          .placeholder("FILE");
  Option& evaluation =
      options.add("val", &validation, "the same for evaluations; default: the end of --data").placeholder("FILE");
  if (may_move) training.always();
  if (may_move) evaluation.always();
  options.add("val-part", &validation_part, 0.0001, 0.9, "how much of --data that is, where there is no --val");
  options
      .add("format", &format, token_format_names(),
           "of the files: auto takes *.bin for llm.c's shards, anything else for text; uint16, uint32: nanoGPT's *.bin");
  options
      .add("tokenizer", &tokenizer,
           "ascii, bytes, a file of " + called("tokenize") +
               ", of Hugging Face or tiktoken, a folder with such, or a checkpoint")
      .placeholder("NAME");
  options.add("replace", &replace, "ascii: puts '?' in place of every character outside, instead of refusing it");
}

void TextSource::check(const Options& options) const {
  if (options.given("val-part") && !validation.empty())
    throw UsageError("--val-part " + options.value("val-part") + ": does nothing with --val " + validation);
  if (options.given("format") && data.empty() && validation.empty())
    throw UsageError("--format " + options.value("format") + ": does nothing without --data or --val");
}

OpenText open_text_source(const TextSource& source, size_t story_bytes, std::unique_ptr<Tokenizer> tokenizer) {
  OpenText text;
  text.tokenizer = tokenizer ? std::move(tokenizer) : open_tokenizer(source.tokenizer, source.replace);
  std::shared_ptr<const Corpus> all =
      source.data.empty()
          ? encode_corpus(tell_stories(1, stream_of("stories"), story_bytes), source.name(), *text.tokenizer)
          : open_corpus(source.data, *text.tokenizer, token_format(source.format));
  if (!source.validation.empty()) {
    text.training = all;
    text.validation = open_corpus(source.validation, *text.tokenizer, token_format(source.format));
    return text;
  }
  const int64_t size = all->size(), kept = static_cast<int64_t>(source.validation_part * static_cast<double>(size));
  text.training = std::make_shared<CorpusPart>(all, 0, size - kept);
  text.validation = std::make_shared<CorpusPart>(all, size - kept, size);
  return text;
}

std::string checksum_of(const OpenText& text) {
  constexpr int64_t PIECE = 1 << 12;
  std::vector<int32_t> tokens(PIECE);
  Checksum sum;
  for (const auto& corpus : {text.training, text.validation}) {
    const int64_t size = corpus->size();
    sum.update(&size, sizeof size);
    for (int64_t at = 0; at < size; at += PIECE) {
      const int64_t count = std::min(PIECE, size - at);
      corpus->read(at, count, tokens.data());
      sum.update(tokens.data(), static_cast<size_t>(count) * sizeof(int32_t));
    }
  }
  return sum.hex();
}

}  // namespace petroglyph
