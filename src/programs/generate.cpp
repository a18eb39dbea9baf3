// Lets a model that train_text trained go on writing, token by token.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>

#include <unistd.h>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "generation/character_writer.h"
#include "generation/generator.h"
#include "tokenizers/tokenizer.h"
#include "train/device.h"
#include "train/text_checkpoint.h"

namespace petroglyph {
namespace {

struct GenerateSettings {
  std::string checkpoint, prompt, prompt_file;
  int length = 200, samples = 1, threads = 0;
  Sampling sampling;
  uint64_t seed = 1;
  std::string device = "auto";
  std::string window = "half";
  bool quiet = false, special = false, interactive = false;

  void declare(Options& options) {
    options.positional("CHECKPOINT", &checkpoint,
                       "a .safetensors file of train_text or convert, or a run's folder: its best one");
    options.section("Text");
    options.add("prompt", &prompt, "what the model goes on from; default a new line");
    options.add("prompt-file", &prompt_file, "the same from a file; -: from the standard input").placeholder("FILE");
    options.add("special", &special, "<|endoftext|> in a prompt is one token, where the tokenizer has it");
    options.add("interactive", &interactive, "reads prompts, one a line, and goes on from all that was said; also -i");
    options.add("length", &length, 0, 1 << 30, "tokens to write; ends before where the text does");
    options.add("window", &window, {"half", "slide"},
                "when the model's positions are used up: goes on from the later half, or reads all but one again for "
                "each token");
    options.add("samples", &samples, 1, 1 << 20, "continuations, one after another");
    options.section("Sampling");
    options.add("temperature", &sampling.temperature, 0, 100, "divides the logits; 0 takes the likeliest token");
    options.add("top-k", &sampling.top_k, 0, 1 << 30, "only the k likeliest tokens; 0: all");
    options.add("top-p", &sampling.top_p, 0, 1, "only the likeliest tokens that together reach this probability");
    options.add("seed", &seed, 0, std::numeric_limits<uint64_t>::max(), "the same seed writes the same text");
    options.section("Run");
    declare_device(options, &device, &threads);
    options.add("quiet", &quiet, "prints the text only");
  }
};

// What a prompt's file says; "-" is the standard input.
std::string read_prompt(const std::string& path) {
  if (path != "-") return read_file(path);
  return {std::istreambuf_iterator<char>(std::cin), {}};
}

// A model, its tokenizer and where they write.
class Writer {
 public:
  explicit Writer(const GenerateSettings& settings)
      : settings_(settings),
        file_(checkpoint_path(settings.checkpoint)),
        state_(read_run_state(file_)),
        tokenizer_(load_tokenizer(file_, state_)),
        ops_(make_device(settings.device, settings.threads)),
        end_(tokenizer_->end_of_text()) {
    state_.data = Json();  // a vocabulary's words take more memory in it than the rest
    model_ = load_model(file_, state_, *ops_);
  }

  void continue_prompt();
  void converse();
  void report() const;

 private:
  std::vector<int32_t> tokens_of(const std::string& prompt, const std::string& origin) const;
  Generator generator(int sample, int64_t capacity) {
    return Generator(*model_, *ops_, *tokenizer_, settings_.sampling, settings_.seed, static_cast<uint32_t>(sample),
                     capacity, settings_.window == "slide" ? Window::SLIDE : Window::HALF);
  }
  void write(Generator& generator, CharacterWriter& out);

  const GenerateSettings& settings_;
  const SafetensorsFile file_;
  RunState state_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  int32_t end_;  // of a text; −1: none
  int64_t written_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::vector<int32_t> Writer::tokens_of(const std::string& prompt, const std::string& origin) const {
  tokenizer_->check(prompt, origin);
  return prompt_tokens(*tokenizer_, prompt, *model_, settings_.special);
}

void Writer::write(Generator& generator, CharacterWriter& out) {
  for (int i = 0; i < settings_.length && !interrupted(); ++i, ++written_) {
    const int32_t token = generator.next();
    if (token == end_) break;
    out.write(tokenizer_->bytes(token));
  }
  out.finish();
  std::printf("\n");
  std::fflush(stdout);
}

void Writer::continue_prompt() {
  const bool from_file = !settings_.prompt_file.empty();
  std::string prompt = from_file ? read_prompt(settings_.prompt_file) : settings_.prompt;
  if (prompt.empty()) prompt = "\n";
  const std::vector<int32_t> tokens = tokens_of(prompt, from_file ? settings_.prompt_file : "--prompt");
  const int longest = model_->longest();
  if (!settings_.quiet && static_cast<int64_t>(tokens.size()) > longest)
    std::fprintf(
        stderr,
        "note: the prompt has %s tokens and the model reads %d at most: it goes on from the last %d, and then %s\n",
        with_commas(static_cast<int64_t>(tokens.size())).c_str(), longest, longest,
        settings_.window == "slide" ? "from as many again and again"
                                    : "from the later half of what it had (--window slide: from as many)");
  start_ = std::chrono::steady_clock::now();
  for (int sample = 0; sample < settings_.samples && !interrupted(); ++sample) {
    if (settings_.samples > 1 && !settings_.quiet) std::printf("%s--- %d\n", sample > 0 ? "\n" : "", sample + 1);
    Generator generator = this->generator(sample, static_cast<int64_t>(tokens.size()) + settings_.length);
    CharacterWriter out;
    out.write(prompt);
    generator.read(tokens);
    write(generator, out);
  }
}

// Each line goes on from the text so far, as long as the model can see it.
void Writer::converse() {
  constexpr int64_t CAPACITY = 4096;  // of a model without a longest sequence
  Generator generator = this->generator(0, CAPACITY);
  std::string line;
  for (bool first = true;; first = false) {
    if (isatty(STDIN_FILENO)) std::printf("> "), std::fflush(stdout);
    if (!std::getline(std::cin, line)) break;
    const InterruptGuard guard;  // Ctrl-C ends an answer; between two it ends the program
    generator.read(tokens_of(first ? (line.empty() ? "\n" : line) : "\n" + line, "the prompt"));
    CharacterWriter out;
    write(generator, out);
  }
}

void Writer::report() const {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (!settings_.quiet)
    std::fprintf(stderr, "%s tokens in %.1f s, %.0f tokens/s; %s at step %s, %s\n", with_commas(written_).c_str(),
                 seconds, static_cast<double>(written_) / seconds, state_.model.c_str(),
                 with_commas(state_.step).c_str(), ops_->description().c_str());
}

int generate(int argc, char** argv) {
  GenerateSettings settings;
  Options options("generate", "Lets a model of text go on writing: one that train_text trained, or convert brought.");
  settings.declare(options);
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  for (std::string& word : words)
    if (word == "-i") word = "--interactive";
  options.parse(words);
  if (!settings.prompt.empty() + !settings.prompt_file.empty() + settings.interactive > 1)
    throw UsageError("--prompt, --prompt-file and --interactive: expected one of them");
  Writer writer(settings);
  if (settings.interactive) {
    writer.converse();
    writer.report();
    return 0;
  }
  const InterruptGuard guard;
  writer.continue_prompt();
  writer.report();
  return interrupted() ? INTERRUPTED_STATUS : 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("generate", [&] { return petroglyph::generate(argc, argv); });
}
