#include "generation/text_writer.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include <unistd.h>

#include "base/cadence.h"
#include "base/interrupt.h"
#include "base/program.h"
#include "base/text.h"

namespace petroglyph {

// Only the beginning of a text has tokens before it.
std::vector<int32_t> TextWriter::tokens_of(const std::string& prompt, const std::string& origin, bool first) {
  tokenizer_.check_prompt(prompt, origin);
  const std::string special = how_.special || how_.quiet || noted_special_ ? "" : tokenizer_.special_in(prompt);
  if (!special.empty())
    std::fprintf(stderr, "note: %s in the prompt is read as its letters; --special: as one token\n",
                 in_one_line(special).c_str());
  noted_special_ |= !special.empty();
  const Reading whole = how_.special ? Reading::SPECIAL_PROMPT : Reading::PROMPT;
  const Reading part = how_.special ? Reading::SPECIAL : Reading::PLAIN;
  return prompt_tokens(tokenizer_, prompt, first ? model_.window() : 0, first ? whole : part);
}

Generator TextWriter::generator(int sample, int64_t capacity) {
  return Generator(model_, ops_, tokenizer_, how_.sampling, how_.seed, static_cast<uint32_t>(sample),
                   decoder_capacity(model_, capacity, how_.context), how_.window);
}

void TextWriter::write(Generator& generator, CharacterWriter& out) {
  const std::vector<int32_t> ends = tokenizer_.end_of_text();
  for (int i = 0; i < how_.length && !interrupted(); ++i, ++written_) {
    const int32_t token = generator.next();
    if (std::find(ends.begin(), ends.end(), token) != ends.end()) break;
    out.write(tokenizer_.bytes(token));
  }
  out.finish();
  std::printf("\n");
  std::fflush(stdout);
}

void TextWriter::note_long_prompt(int64_t tokens, int64_t longest) const {
  if (how_.quiet || tokens <= longest) return;
  std::fprintf(stderr,
               "note: the prompt has %s and the model reads %s at most: it continues the last %s, and then %s\n",
               counted(tokens, "token").c_str(), with_commas(longest).c_str(), with_commas(longest).c_str(),
               how_.window == Window::SLIDE ? "from that many tokens at each step"
                                            : "from the later half of what it had (--window slide: from as many)");
}

void TextWriter::continue_prompt(const std::string& prompt, const std::string& origin) {
  const std::vector<int32_t> tokens = tokens_of(prompt, origin, true);
  const int64_t wanted = static_cast<int64_t>(tokens.size()) + how_.length;
  note_long_prompt(static_cast<int64_t>(tokens.size()), decoder_capacity(model_, model_.longest(), how_.context));
  const double start = steady_seconds();
  for (int sample = 0; sample < how_.samples && !interrupted(); ++sample) {
    if (how_.samples > 1 && !how_.quiet) std::printf("%s--- %d\n", sample > 0 ? "\n" : "", sample + 1);
    Generator generator = this->generator(sample, wanted);
    CharacterWriter out;
    out.write(prompt);
    generator.read(tokens);
    write(generator, out);
  }
  seconds_ += steady_seconds() - start;
}

void TextWriter::converse() {
  constexpr int64_t CAPACITY = 4096;  // if the decoder's memory grows with the length
  const int64_t capacity = model_.has_fixed_state() ? model_.longest() : CAPACITY;
  const int64_t longest = decoder_capacity(model_, capacity, how_.context);
  Generator generator = this->generator(0, capacity);
  std::string line;
  for (bool first = true;;) {
    if (isatty(STDIN_FILENO)) std::printf("> "), std::fflush(stdout);
    if (!std::getline(std::cin, line)) break;
    if (const std::string wrong = tokenizer_.complaint(line); !wrong.empty()) {
      std::fprintf(stderr, "note: the prompt: %s; nothing of this line was read\n", in_one_line(wrong).c_str());
      continue;
    }
    // During an answer, Ctrl-C ends the answer; at other times it ends the program. Other signals always end the
    // program.
    const InterruptGuard guard(InterruptGuard::Signals::CTRL_C);
    const double start = steady_seconds();
    const std::vector<int32_t> tokens =
        tokens_of(first ? (line.empty() ? "\n" : line) : "\n" + line, "the prompt", first);
    note_long_prompt(static_cast<int64_t>(tokens.size()), longest);
    generator.read(tokens);
    first = false;
    CharacterWriter out;
    write(generator, out);
    seconds_ += steady_seconds() - start;
  }
  if (std::ferror(stdin)) throw Error("the standard input cannot be read to its end");
}

}  // namespace petroglyph
