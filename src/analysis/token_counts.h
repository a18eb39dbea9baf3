// What a model would get that knows nothing but how often which token follows the last k: a yardstick for models of text.
//
// Of the tokens h before c, h' is h without its first one, n counts the training text, and t(h) is how many different tokens follow
// h there. Witten and Bell's estimate takes from what was seen once for what was never seen:
//
//   P(c | h) = (n(hc) + t(h) P(c | h')) / (n(h) + t(h)),   and of an h that was never seen P(c | h');
//   below no token all V are alike
#pragma once

#include <cstdint>
#include <vector>

#include "base/progress.h"
#include "tasks/corpus.h"

namespace petroglyph {

// Of k = 0 … longest: the cross-entropy a token in nats on the validation text, each token after as many as stand before it there,
// up to k, and how many different h of k tokens the training text has.
struct CountedTokens {
  std::vector<double> loss;
  std::vector<int64_t> contexts;
};

// The loss of the table of the last k, asked as a model is that sees windows of T tokens and predicts what follows each: what
// follows the t-th knows t tokens only, so that it is the mean over t = 1 … T of the losses of min(k, t). k < loss.size(), T > 0.
double loss_in_windows(const CountedTokens& counted, size_t k, int64_t T);

// The largest k for which V^(k+1) rows of tokens can be told apart.
int most_counted(int vocab);

// longest: 0 … most_counted(vocab). `progress` counts the tokens of both texts. places: in the validation text, those of the tokens
// that are asked for, rising; none: all are.
CountedTokens count_tokens(const Corpus& training, const Corpus& validation, int vocab, int longest,
                           Progress* progress = nullptr, const std::vector<int64_t>& places = {});

}  // namespace petroglyph
