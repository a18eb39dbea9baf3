#include "train/text_source.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/program.h"
#include "base/text.h"
#include "math/random.h"
#include "tasks/stories.h"

namespace petroglyph {

void TextSource::declare(Options& options) {
  options.add("data", &data, "FILE", "text, or llm.c's .bin shards; default: small stories from a grammar of our own")
      .always();
  options.add("val", &validation, "FILE", "the same for evaluations; default: the end of --data").always();
  options.add("val-part", &validation_part, 0.0001, 0.9, "how much of --data that is, where there is no --val");
  options.add("format", &format, token_format_names(),
              "of the files: auto takes *.bin for llm.c's shards, anything else for text; uint16: nanoGPT's *.bin");
  options.add("tokenizer", &tokenizer, "NAME",
              "auto: ascii where the text is ASCII, else bytes; ascii, bytes, a file of " + called("tokenize") +
                  ", of Hugging Face, a folder with such, or a checkpoint");
  options.only_with("val-part", "val", {""});
  options.add("replace", &replace, "ascii: puts '?' in place of every character outside, instead of refusing it");
}

namespace {

// The tokenizer of --tokenizer auto: characters where the text is ASCII, else bytes. A line names the first byte that
// decides.
std::string suitable_tokenizer(const TextSource& source) {
  if (source.replace) return "ascii";
  for (const std::string& path : {source.data, source.validation}) {
    const bool is_text =
        source.format == "text" || (source.format == "auto" && std::filesystem::path(path).extension() != ".bin");
    if (path.empty() || !is_text || !std::filesystem::is_regular_file(path)) continue;
    const MappedFile file(path);
    const unsigned char* const end = file.data() + file.size();
    const unsigned char* const found = std::find_if(file.data(), end, [](unsigned char c) { return c >= 128; });
    if (found == end) continue;
    std::fprintf(stderr, "%s is not ASCII (its byte %s): tokens are bytes; --tokenizer chooses others\n",
                 in_one_line(path).c_str(), with_commas(found - file.data() + 1).c_str());
    return "bytes";
  }
  return "ascii";
}

}  // namespace

OpenText open_text_source(const TextSource& source, size_t story_bytes, std::unique_ptr<Tokenizer> tokenizer) {
  OpenText text;
  const std::string name = source.tokenizer == "auto" && !tokenizer ? suitable_tokenizer(source) : source.tokenizer;
  text.tokenizer = tokenizer ? std::move(tokenizer) : open_tokenizer(name, source.replace);
  std::shared_ptr<const Corpus> all =
      source.data.empty()
          ? encode_corpus(tell_stories(1, stream_of("stories"), story_bytes), source.name(), *text.tokenizer)
          : open_corpus(source.data, *text.tokenizer, source.format);
  if (!source.validation.empty()) {
    text.training = all;
    text.validation = open_corpus(source.validation, *text.tokenizer, source.format);
    return text;
  }
  const int64_t size = all->size(), kept = static_cast<int64_t>(source.validation_part * static_cast<double>(size));
  text.training = std::make_shared<CorpusPart>(all, 0, size - kept);
  text.validation = std::make_shared<CorpusPart>(all, size - kept, size);
  return text;
}

}  // namespace petroglyph
