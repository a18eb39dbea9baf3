// Trains a byte pair encoding on text, encodes text into shards of tokens, and decodes shards.

#include <cstdio>

#include "base/atomic_file.h"
#include "base/cadence.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "tasks/corpus.h"
#include "tasks/shard_writer.h"
#include "tokenizers/byte_pair_training.h"

namespace petroglyph {
namespace {

struct Settings {
  std::vector<std::string> files;
  int train = 0;
  std::string tokenizer = "bytes", save, out;
  int64_t shard_tokens = 100'000'000;
  bool replace = false, decode = false, force = false;

  void declare(Options& options) {
    options.positional("FILE", &files, "text files; with --decode, shards");
    options.section("A tokenizer");
    options.add("tokenizer", &tokenizer, "NAME",
                "ascii, bytes, a tokenizer's file, a folder with vocab.json and merges.txt, or a checkpoint");
    options.add("replace", &replace, "ascii: '?' in place of every other character");
    options.add(
        "train", &train, 257, 1 << 20,
        "instead, learns a byte pair encoding of so many tokens from the files: all bytes, pairs, and <|endoftext|>");
    options.add("save", &save, "FILE", "writes the tokenizer into this file");
    options.section("Shards");
    options.add("out", &out, "PREFIX", "writes the tokens into PREFIX_000000.bin, PREFIX_000001.bin, …");
    options.add("shard-tokens", &shard_tokens, 1, (int64_t(1) << 31) - 1, "tokens in a shard");
    options.add("force", &force, "replaces existing files");
    options.add("decode", &decode, "prints the text that the shards hold");
    for (const char* name : {"tokenizer", "replace"}) options.only_with(name, "train", {"0"});
    for (const char* name : {"replace", "train", "out"}) options.only_with(name, "decode", {"false"});
    options.only_with("shard-tokens", "out", {});
    options.only_with("train", "save", {});
  }
};

// Checks before the work that all outputs can be written and that none of them replaces an input.
void check_outputs(const Settings& settings) {
  std::vector<std::string> read;
  if (settings.train == 0) read = files_of_tokenizer(settings.tokenizer);
  for (const std::string& file : settings.files)
    for (const std::string& path : files_of_corpus(file)) read.push_back(path);
  if (!settings.save.empty()) check_output(settings.save, settings.force, read);
  if (!settings.out.empty()) check_shards(settings.out, settings.force, read);
}

std::unique_ptr<Tokenizer> learn(const Settings& settings) {
  std::vector<MappedFile> files;
  std::vector<std::string_view> texts;
  for (const std::string& file : settings.files) {
    texts.push_back(files.emplace_back(file).text());
    if (texts.back().empty()) throw Error(file + ": the file is empty");
  }
  const double start = steady_seconds();
  auto tokenizer = train_byte_pairs(texts, settings.train, true);
  std::printf("learnt %s in %.1f s%s\n", counted(tokenizer->vocab(), "token").c_str(), steady_seconds() - start,
              tokenizer->vocab() < settings.train ? "; no other pair occurs twice" : "");
  return tokenizer;
}

// Checks all inputs before the first output replaces an older file.
void check_files(const Settings& settings, const Tokenizer& tokenizer) {
  for (const std::string& path : settings.files) {
    if (settings.decode) {
      if (!is_shard(path)) throw Error(path + ": expected a shard of tokens, *.bin");
      open_corpus(path, tokenizer);
      continue;
    }
    const MappedFile file(path);
    if (file.text().empty()) throw Error(path + ": the file is empty");
    tokenizer.check(file.text(), path);
  }
}

void encode(const Settings& settings, const Tokenizer& tokenizer) {
  ShardWriter shards(settings.out, settings.shard_tokens, tokenizer, settings.force);
  for (const std::string& path : settings.files) {
    const MappedFile file(path);
    const std::string_view bytes = file.text();
    int64_t count = 0;
    const int64_t replaced = tokenizer.encode_parts(bytes, Reading::DOCUMENTS, [&](const std::vector<int32_t>& tokens) {
      count += static_cast<int64_t>(tokens.size());
      shards.add(tokens);
    });
    const auto size = static_cast<double>(bytes.size());
    std::printf("%s: %s, %s (%s), %.2f bytes each%s\n", in_one_line(path).c_str(),
                counted(static_cast<int64_t>(bytes.size()), "byte").c_str(), counted(count, "token").c_str(),
                tokenizer.name().c_str(), count > 0 ? size / static_cast<double>(count) : 0.0,
                replaced > 0 ? ("; " + counted(replaced, "character") + " replaced").c_str() : "");
  }
  shards.finish();
}

void decode(const Settings& settings, const Tokenizer& tokenizer) {
  constexpr int64_t PIECE = 1 << 20;
  for (const std::string& path : settings.files) {
    const auto corpus = open_corpus(path, tokenizer);
    for (int64_t at = 0; at < corpus->size(); at += PIECE) {
      std::vector<int32_t> tokens(static_cast<size_t>(std::min(PIECE, corpus->size() - at)));
      corpus->read(at, static_cast<int64_t>(tokens.size()), tokens.data());
      const std::string bytes = tokenizer.decode(tokens);
      if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) throw Error("cannot write the text");
    }
  }
}

int tokenize(const std::vector<std::string>& words) {
  Options options("tokenize", "Learns a byte pair encoding from text, and turns text into shards of tokens and back.");
  Settings settings;
  settings.declare(options);
  options.parse(words);
  options.refuse_without_effect();
  check_outputs(settings);
  const auto tokenizer = settings.train > 0 ? learn(settings) : open_tokenizer(settings.tokenizer, settings.replace);
  if (settings.replace) check_replaces(*tokenizer);
  check_files(settings, *tokenizer);
  if (!settings.save.empty()) {
    check_replaced(settings.save, settings.force);  // it may have been made in the meantime
    write_file_atomically(settings.save, tokenizer_file_text(*tokenizer));
  }
  settings.decode ? decode(settings, *tokenizer) : encode(settings, *tokenizer);
  return 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) { return petroglyph::run_program("tokenize", argc, argv, petroglyph::tokenize); }
