// inspect counts: the perplexity of n-gram models, the baseline for the score of any text model.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "analysis/inspection.h"
#include "analysis/token_counts.h"
#include "base/error.h"
#include "base/options.h"
#include "base/text.h"
#include "tasks/last_token.h"
#include "train/text_source.h"

namespace petroglyph {

namespace {

struct CountSettings {
  TextSource source;
  int last = DEEP, after = 0, windows = 256;
  int64_t most = 0, context = 0;

  void declare(Options& options) {
    source.declare(options);
    options.add("last", &last, 0, 62,
                "tokens that the largest table knows; by default fewer where a vocabulary is large, and 4 where more "
                "than 30 million are counted");
    options.add("most", &most, 0, Json::MAX_INTEGER,
                "counts only this many tokens at the start of the training text, 0 for all: tables of a large "
                "vocabulary or of a long text take much memory");
    options.add("context", &context, 0, 1 << 30,
                "also prints the perplexity in windows of this many tokens, as of a model in training: at a window's "
                "second position only one token is known; 0: not printed");
    options.add("evaluate-length", &after, 0, 1 << 24,
                "evaluates only the target tokens of train_text --evaluate-lengths, of which this is the longest, so "
                "that tables and models are compared on the same tokens; 0: all tokens");
    options.add("length-windows", &windows, 1, 1 << 24, "and how many those are, as of train_text");
    options.only_with("length-windows", "evaluate-length", {});
  }

  void check(const Options& options) const {
    options.refuse_without_effect();
    if (after > 0 && context > 0)
      throw UsageError("--context " + options.value("context") +
                       ": does nothing with --evaluate-length, whose tokens have every context of the tables");
  }

  // tokens: the size of the training text.
  int largest_table(int vocab, int64_t tokens, bool given) const {
    const int at_most = most_counted(vocab);
    if (given && last > at_most)
      throw UsageError(text("--last %d: expected at most %d with %d tokens", last, at_most, vocab));
    if (given) return last;
    return std::min((most > 0 ? std::min(most, tokens) : tokens) > LARGE_TEXT ? SHALLOW : DEEP, at_most);
  }

 private:
  // For a text of more than LARGE_TEXT tokens, the table of k = 7 would take gigabytes.
  static constexpr int DEEP = 7, SHALLOW = 4;
  static constexpr int64_t LARGE_TEXT = 30'000'000;
};

std::string last_tokens(size_t k) { return text("the last %zu token%s", k, k == 1 ? "" : "s"); }

void print_best(const std::string& name, const std::vector<double>& loss) {
  const auto best = std::min_element(loss.begin(), loss.end());
  print("%s: %s, perplexity %.2f\n", name.c_str(), last_tokens(static_cast<size_t>(best - loss.begin())).c_str(),
        std::exp(*best));
}

// One line for each table, and the best table. If `context` is not 0, also the perplexity in windows of `context`
// tokens.
void print_tables(const CountedTokens& counted, int64_t context) {
  const std::string windows = context > 0 ? "in windows of " + with_commas(context) : "";
  std::vector<double> in_windows;
  for (size_t k = 0; k < counted.loss.size(); ++k) {
    print("%s: perplexity %.2f, ", last_tokens(k).c_str(), std::exp(counted.loss[k]));
    if (context > 0) {
      in_windows.push_back(loss_in_windows(counted, k, context));
      print("%s %.2f, ", windows.c_str(), std::exp(in_windows[k]));
    }
    print("%.3f bits a token, %s row%s of %zu\n", counted.loss[k] / std::log(2.0),
          with_commas(counted.contexts[k]).c_str(), counted.contexts[k] == 1 ? "" : "s", k);
  }
  print_best("the best of them", counted.loss);
  if (context > 0) print_best("the best " + windows, in_windows);
}

// The positions that --evaluate-length selects; empty if all tokens are evaluated.
std::vector<int64_t> places_asked(const Corpus& text, const std::string& name, int after, int windows) {
  std::vector<int64_t> places;
  if (after == 0) return places;
  const LastToken last(text, name, after, after, windows);
  for (int window = 0; window < last.windows(); ++window) places.push_back(last.place(window));
  return places;
}

}  // namespace

int inspect_counts(const std::vector<std::string>& words) {
  CountSettings settings;
  Options options("inspect counts",
                  "Says what a model would get on a text that knows only how often which token follows the last few: "
                  "tables that are counted in the training text (Witten and Bell), and asked of the validation text. A "
                  "model of text that is no better than the table of two letters uses no more than two.");
  settings.declare(options);
  options.parse(words);
  settings.check(options);
  const TextSource& source = settings.source;
  OpenText text = open_text_source(source, STORY_BYTES);
  if (source.replace) check_replaces(*text.tokenizer);
  const int vocab = text.tokenizer->vocab();
  const int last = settings.largest_table(vocab, text.training->size(), options.given("last"));
  if (text.validation->size() == 0) throw Error(source.validation_name() + ": empty, expected tokens");
  if (settings.most > 0 && settings.most < text.training->size())
    text.training = std::make_unique<CorpusPart>(std::move(text.training), 0, settings.most);
  // The table is printed to the standard output.
  Progress progress(0, text.training->size() + text.validation->size(), {false, "token", MOSTLY_SHORT, false, stderr});
  const std::vector<int64_t> places =
      places_asked(*text.validation, source.validation_name(), settings.after, settings.windows);
  const CountedTokens counted = count_tokens(*text.training, *text.validation, vocab, last, &progress, places);
  const int64_t asked = places.empty() ? text.validation->size() : static_cast<int64_t>(places.size());
  print("%s of %s counted, %s of %s asked\n", petroglyph::counted(text.training->size(), "token").c_str(),
        source.name().c_str(), with_commas(asked).c_str(), source.validation_name().c_str());
  print_tables(counted, settings.context);
  return 0;
}

}  // namespace petroglyph
