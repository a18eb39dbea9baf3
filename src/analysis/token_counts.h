// The loss of n-gram models: they predict the next token from how often it follows the last k tokens. It is a
// baseline for text models.
//
// h is the sequence of tokens before c, and h' is h without its first token. n counts occurrences in the training
// text, and t(h) is the number of different tokens that follow h there. Witten and Bell's estimate moves probability
// from seen tokens to unseen ones:
//
//   P(c | h) = (n(hc) + t(h) P(c | h')) / (n(h) + t(h));   for an h that was never seen, P(c | h')
//   below the empty h, all V tokens have equal probability
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "tasks/corpus.h"

namespace petroglyph {

// For each k = 0 … longest: the cross-entropy in nats a token on the validation text, and the number of different h
// of k tokens in the training text. A token near the beginning of the text has fewer than k tokens before it; then
// all of them are used.
struct CountedTokens {
  std::vector<double> loss;
  std::vector<int64_t> contexts;
};

// The loss of the k-token table under the condition of a model that sees windows of T tokens and predicts every next
// token. The prediction after the t-th token can use t tokens only. So the loss is the mean over t = 1 … T of the
// losses of min(k, t). k < loss.size(), T > 0.
double loss_in_windows(const CountedTokens& counted, size_t k, int64_t T);

// The largest k for which the V^(k+1) possible sequences have distinct 64-bit keys.
int most_counted(int vocab);

// longest: 0 … most_counted(vocab). `progress` counts the tokens of both texts. places: the ascending positions in
// the validation text of the tokens to evaluate; empty: all tokens.
CountedTokens count_tokens(const Corpus& training, const Corpus& validation, int vocab, int longest,
                           Progress* progress = nullptr, const std::vector<int64_t>& places = {});

}  // namespace petroglyph
