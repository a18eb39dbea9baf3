// Trains a sequence model on text: characters, bytes or byte pairs. It covers appendix B of "An All-MLP Sequence
// Modeling Architecture That Excels at Copying", section 4.3 of "Linear-Time Sequence Modeling with MLPs", and "MLPs
// for NLP".

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "base/text.h"
#include "generation/generator.h"
#include "tasks/language_modeling.h"
#include "tasks/last_token.h"
#include "train/compare.h"
#include "train/text_evaluation.h"
#include "train/text_settings.h"

namespace petroglyph {
namespace {

// One run and all its settings, which come from the words of a command line.
struct Session : TextRunSettings {
  OpenText opened;
  std::optional<LanguageModeling> task;
  std::optional<Run> run;
  double characters_a_token = 1;

  explicit Session(const std::vector<std::string>& words) : TextRunSettings(words) {}

  // The options of a resumed run, including its text, come from its checkpoint.
  void prepare() {
    if (!settings.resume) open_text();
    run.emplace(settings, options, "text");
    if (settings.resume) open_text();
    if (longest_length() > 0) last_token(longest_length());  // throws before the training if the text is too short
    RunExtras extras;
    extras.describe = [this](const Measures& measures) { return text_measures(measures, characters_a_token); };
    if (sample_length > 0) extras.after_evaluation = [this] { return sample(); };
    extras.keep_best = keep_best;
    extras.data = Json::object().set("tokenizer", opened.tokenizer->to_json());
    const bool as_begun = settings.resume && !settings.init.empty();  // the model is that of --init's file
    run->prepare(model.model, as_begun ? run->config() : config(opened.tokenizer->vocab()), *task, extras);
    characters_a_token = characters_a_target(*task, *opened.tokenizer, settings.seed, run->eval_samples());
    if (settings.quiet) return;
    std::printf("%s to learn from, %s to evaluate; %s; %s of %d an epoch\n",
                counted(opened.training->size(), "token").c_str(), with_commas(opened.validation->size()).c_str(),
                opened.tokenizer->name().c_str(), counted(task->training_windows(), "window").c_str(), context);
    if (opened.training->replaced() > 0)
      std::printf("replaced %s by '?'\n", counted(opened.training->replaced(), "character").c_str());
  }

  LengthTable length_table() {
    const std::vector<double> perplexity = at_lengths(lengths, settings.quiet, [&](int length) {
      const LastToken last = last_token(length);
      return std::exp(run->evaluate(last, last.windows(), double(length) / context).loss);
    });
    return {title(), "perplexity of the last token", "tokens", false, lengths, {model.model}, {perplexity}};
  }

  void show() {
    if (lengths.empty()) return;
    const LengthTable table = length_table();
    run->check_folder();
    if (settings.ranks->first()) write_lengths(run->folder(), table);
  }

  std::string title() const { return "Text: " + (source.data.empty() ? "stories" : source.data); }

 private:
  LastToken last_token(int length) const {
    return LastToken(*opened.validation, "the text for evaluations", length, longest_length(), length_windows);
  }

  // The tokenizer in the checkpoint of a resumed run; only the first rank reads the file.
  std::unique_ptr<Tokenizer> saved_tokenizer() {
    const std::string path = run->file("model.safetensors");
    const bool replace = source.replace;
    const std::string json =
        settings.ranks->from_first([&] { return open_tokenizer(path, replace)->to_json().text(); });
    return tokenizer_from_json(Json::parse(json, path), path);
  }

  void open_text() {
    opened = open_text_source(source, STORY_BYTES, settings.resume ? saved_tokenizer() : nullptr);
    const int64_t a_step = static_cast<int64_t>(settings.batch) * settings.accumulate;  // windows
    task.emplace(opened.training, source.name(), opened.validation, source.validation_name(), context, a_step,
                 model.answers_once() ? Targets::LAST : Targets::ALL);
    if (settings.resume) return;
    if (source.replace && settings.group.empty()) check_replaces(*opened.tokenizer);
    if (epochs > 0) settings.steps = (epochs * task->training_windows() + a_step - 1) / a_step;
    if (settings.steps > MOST_STEPS)
      throw UsageError("--epochs " + options.value("epochs") + ": are " + with_commas(settings.steps) +
                       " steps, expected " + with_commas(MOST_STEPS) + " at most");
    if (mlps_for_nlp() && !options.given("warmup")) settings.rate.warmup = settings.steps / 10;
  }

  std::vector<std::string> sample() {
    const std::vector<int32_t> tokens = prompt_tokens(*opened.tokenizer, "\n", run->model().window());
    std::vector<int32_t> shown;  // without the prompt
    Generator generator(run->model(), run->ops(), *opened.tokenizer, {}, settings.seed, 0,
                        decoder_capacity(run->model(), static_cast<int64_t>(tokens.size()) + sample_length, context));
    generator.read(tokens);
    for (int i = 0; i < sample_length && !interrupted(); ++i) shown.push_back(generator.next());
    std::vector<std::string> lines = split(opened.tokenizer->decode(shown), '\n');
    for (std::string& line : lines) line = "  | " + in_one_line(line);
    return lines;
  }
};

}  // namespace
}  // namespace petroglyph

int main(int argc, char** argv) {
  using namespace petroglyph;
  return run_ranks("train_text", argc, argv, [](const auto& words, const auto& ranks) {
    Session session(words);
    if (session.evaluate.empty()) return train_or_compare(words, session, ranks);
    if (ranks->first()) evaluate_checkpoint(session);
    return 0;
  });
}
