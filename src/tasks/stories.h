// Small stories in English-like sentences, from a probabilistic grammar: a text to learn that needs no download.
//
//   Clara was a young baker who lived near the mill. One morning she found the judge's silver key beside the well. …
//
// What is far apart has to agree, so that a model's memory shows: a verb with its subject across relative clauses ("the
// letters that the girl near the rivers hides are old"), pronouns with the person of the first sentence, the tense
// with the whole story, a quotation mark with the one before, and the last sentence with what was found and whose it
// was.
#pragma once

#include <cstdint>
#include <string>

namespace petroglyph {

// Whole stories, a line each, of at least `bytes` bytes together; a function of its arguments (random.h), in ASCII.
std::string tell_stories(uint64_t seed, uint32_t stream, size_t bytes);

}  // namespace petroglyph
