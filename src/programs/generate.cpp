// Continues a text, token by token, with a model from train_text or convert.

#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/options.h"
#include "base/program.h"
#include "base/text.h"
#include "generation/text_writer.h"
#include "tokenizers/tokenizer.h"
#include "train/device.h"
#include "train/text_checkpoint.h"

namespace petroglyph {
namespace {

struct GenerateSettings {
  std::vector<std::string> checkpoint;
  std::string prompt;
  TextWriting how;
  std::string device = "auto", window = "half";
  int threads = 0;
  bool interactive = false;

  void declare(Options& options) {
    options.positional("CHECKPOINT", &checkpoint,
                       "a .safetensors file of train_text or convert, or a run's folder: its last one; "
                       "best.safetensors there has the lowest evaluated loss",
                       1);
    options.section("Text");
    options.add("prompt", &prompt, "TEXT", "text that the model continues; default: a new line");
    options.add("special", &how.special, "special tokens in a prompt, such as <|endoftext|>, are one token each");
    options.add("interactive", &interactive, "reads prompts, one a line; the model continues all text so far");
    options.add("length", &how.length, 0, 1 << 30, "tokens to write; fewer where the text ends first");
    options.add("window", &window, {"half", "slide"},
                "when the model's positions are used up: continues from the later half, or reads all but one again for "
                "each token");
    options.add("samples", &how.samples, 1, 1 << 20, "continuations, one after another");
    options.section("Sampling");
    options.add("temperature", &how.sampling.temperature, 0, 100, "divides the logits; 0 takes the likeliest token");
    options.add("top-k", &how.sampling.top_k, 0, 1 << 30, "only the k likeliest tokens; 0: all");
    options.add("top-p", &how.sampling.top_p, 0, 1, "only the likeliest tokens that together reach this probability");
    options.add("seed", &how.seed, 0, LARGEST_SEED, "the same seed writes the same text");
    options.section("Run");
    options.add_device(&device, &threads);
    options.add("quiet", &how.quiet, "prints the text only");
    for (const char* name : {"prompt", "samples"}) options.only_with(name, "interactive", {"false"});
  }
};

int generate(const std::vector<std::string>& words) {
  GenerateSettings settings;
  Options options("generate", "Continues a text with a model that train_text trained or convert made.");
  settings.declare(options);
  options.parse(words);
  options.refuse_without_effect();
  for (const char* const drawn : {"top-k", "top-p", "seed", "samples"})
    if (settings.how.sampling.temperature == 0 && options.given(drawn))
      throw UsageError(std::string("--") + drawn + " " + options.value(drawn) +
                       ": does nothing with --temperature 0, which draws nothing");
  if (settings.window == "slide") settings.how.window = Window::SLIDE;

  std::optional<SafetensorsFile> file(checkpoint_path(settings.checkpoint[0]));
  RunState state = read_run_state(*file);
  const auto tokenizer = load_tokenizer(*file, state);
  settings.how.context = learned_context(state);
  state.data = Json();  // a large vocabulary takes more memory here than the rest of the state
  const auto ops = make_device(settings.device, settings.threads);
  const auto model = load_model(*file, state, *ops);
  file.reset();

  TextWriter writer(*model, *ops, *tokenizer, settings.how);
  std::optional<InterruptGuard> guard;
  if (settings.interactive) {
    ops->run([&] { writer.converse(); });
  } else {
    guard.emplace();
    ops->run([&] { writer.continue_prompt(settings.prompt.empty() ? "\n" : settings.prompt, "--prompt"); });
  }
  if (!settings.how.quiet)
    std::fprintf(stderr, "%s in %.1f s, %.0f tokens/s; %s at step %s, %s\n", counted(writer.written(), "token").c_str(),
                 writer.seconds(), static_cast<double>(writer.written()) / std::max(writer.seconds(), 1e-9),
                 state.model.c_str(), with_commas(state.step).c_str(), ops->description().c_str());
  return guard && interrupted() ? INTERRUPTED_STATUS : 0;
}

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) { return petroglyph::run_program("generate", argc, argv, petroglyph::generate); }
