// Lets a model that train_text trained go on writing, token by token.

#include <chrono>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
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
  bool quiet = false;

  void declare(Options& options) {
    options.positional("CHECKPOINT", &checkpoint, "a .safetensors file of train_text, or a run's folder: its best one");
    options.section("Text");
    options.add("prompt", &prompt, "what the model goes on from; default a new line");
    options.add("prompt-file", &prompt_file, "the same from a file").placeholder("FILE");
    options.add("length", &length, 0, 1 << 30, "tokens to write");
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

// Shows whole characters only: what a token cut in two waits for its other half.
class CharacterWriter {
 public:
  void write(std::string_view bytes) {
    held_ += bytes;
    const size_t whole = held_.size() - incomplete();
    std::fwrite(held_.data(), 1, whole, stdout);
    std::fflush(stdout);
    held_.erase(0, whole);
  }
  void finish() {
    std::fwrite(held_.data(), 1, held_.size(), stdout);
    held_.clear();
  }

 private:
  // Bytes at the end that may yet become a character of UTF-8.
  size_t incomplete() const {
    for (size_t back = 1; back <= 3 && back <= held_.size(); ++back) {
      const auto byte = static_cast<unsigned char>(held_[held_.size() - back]);
      if ((byte & 0xC0) == 0x80) continue;
      const size_t wants = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
      return wants > back ? back : 0;
    }
    return 0;
  }

  std::string held_;
};

std::string find_checkpoint(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return path;
  const std::string best = path + "/best.safetensors";
  return std::filesystem::exists(best) ? best : path + "/model.safetensors";
}

int generate(int argc, char** argv) {
  GenerateSettings settings;
  Options options("generate", "Lets a model that train_text trained go on writing.");
  settings.declare(options);
  options.parse(argc, argv);
  if (!settings.prompt.empty() && !settings.prompt_file.empty())
    throw UsageError("--prompt and --prompt-file: expected one of the two");

  const SafetensorsFile file(find_checkpoint(settings.checkpoint));
  const RunState state = read_run_state(file);
  const auto tokenizer = load_tokenizer(file, state);
  const auto ops = make_device(settings.device, settings.threads);
  const auto model = load_model(file, state, *ops);

  std::string prompt = settings.prompt_file.empty() ? settings.prompt : read_file(settings.prompt_file);
  if (prompt.empty()) prompt = "\n";
  tokenizer->check(prompt, settings.prompt_file.empty() ? "--prompt" : settings.prompt_file);
  const std::vector<int32_t> tokens = prompt_tokens(*tokenizer, prompt, *model);
  if (!settings.quiet && static_cast<int64_t>(tokens.size()) > model->longest())
    std::fprintf(stderr,
                 "note: the prompt has %s tokens and the model reads %d at most: it goes on from the last of them\n",
                 with_commas(static_cast<int64_t>(tokens.size())).c_str(), model->longest());

  const InterruptGuard guard;
  const auto start = std::chrono::steady_clock::now();
  int64_t written = 0;
  const int64_t capacity = static_cast<int64_t>(tokens.size()) + settings.length;
  for (int sample = 0; sample < settings.samples && !interrupted(); ++sample) {
    if (settings.samples > 1 && !settings.quiet) std::printf("%s--- %d\n", sample > 0 ? "\n" : "", sample + 1);
    Generator generator(*model, *ops, *tokenizer, settings.sampling, settings.seed, static_cast<uint32_t>(sample), capacity);
    CharacterWriter out;
    out.write(prompt);
    generator.read(tokens);
    for (int i = 0; i < settings.length && !interrupted(); ++i, ++written)
      out.write(tokenizer->bytes(generator.next()));
    out.finish();
    std::printf("\n");
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!settings.quiet)
    std::fprintf(stderr, "%s tokens in %.1f s, %.0f tokens/s; %s at step %s, %s\n", with_commas(written).c_str(),
                 seconds, static_cast<double>(written) / seconds, state.model.c_str(), with_commas(state.step).c_str(),
                 ops->description().c_str());
  return interrupted() ? INTERRUPTED_STATUS : 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  return petroglyph::run_program("generate", [&] { return petroglyph::generate(argc, argv); });
}
