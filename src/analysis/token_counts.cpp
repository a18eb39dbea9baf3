#include "analysis/token_counts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

namespace {

constexpr int64_t PIECE = 1 << 16;  // the chunk size for reading tokens

// Counts of all sequences of k tokens and the next token.
struct Counts {
  struct Follower {
    int64_t all = 0, different = 0;
  };
  std::unordered_map<uint64_t, int64_t> rows;        // n(hc); the key has the digits of h and c in base V
  std::unordered_map<uint64_t, Follower> followers;  // n(h) and t(h)

  void add(uint64_t context, uint64_t row) {
    Follower& follower = followers[context];
    ++follower.all;
    if (++rows[row] == 1) ++follower.different;
  }
  double probability(uint64_t context, uint64_t row, double shorter) const {
    const auto follower = followers.find(context);
    if (follower == followers.end()) return shorter;
    const auto seen = rows.find(row);
    const double n = seen == rows.end() ? 0 : static_cast<double>(seen->second);
    const double different = static_cast<double>(follower->second.different);
    return (n + different * shorter) / (static_cast<double>(follower->second.all) + different);
  }
};

using Use = std::function<void(const std::vector<int32_t>& before, int32_t token)>;

// Calls `use` for each token of a text, with up to `longest` tokens before it, oldest first.
void each_token(const Corpus& text, int vocab, int longest, const Use& use, const std::function<void(int64_t)>& done) {
  std::vector<int32_t> before, piece(PIECE);
  for (int64_t begin = 0; begin < text.size(); begin += PIECE) {
    const int64_t count = std::min(PIECE, text.size() - begin);
    text.read(begin, count, piece.data());
    for (int64_t i = 0; i < count; ++i) {
      const int32_t token = piece[static_cast<size_t>(i)];
      if (token < 0 || token >= vocab)
        throw Error(petroglyph::text("token %d: expected 0 to %d, those of the tokenizer", token, vocab - 1));
      use(before, token);
      before.push_back(token);
      if (static_cast<int>(before.size()) > longest) before.erase(before.begin());
    }
    done(begin + count);
  }
}

// The last k tokens as one number.
uint64_t number_of(const std::vector<int32_t>& tokens, size_t k, uint64_t vocab) {
  uint64_t number = 0;
  for (size_t i = tokens.size() - k; i < tokens.size(); ++i) number = number * vocab + static_cast<uint64_t>(tokens[i]);
  return number;
}

}  // namespace

double loss_in_windows(const CountedTokens& counted, size_t k, int64_t T) {
  double sum = 0;
  const int64_t below = std::min(static_cast<int64_t>(k), T);
  for (int64_t t = 1; t <= below; ++t) sum += counted.loss[static_cast<size_t>(t)];
  sum += counted.loss[k] * static_cast<double>(T - below);
  return sum / static_cast<double>(T);
}

int most_counted(int vocab) {
  int k = 0;
  for (double rows = double(vocab) * vocab; rows < 0x1p63; rows *= std::max(2, vocab)) ++k;
  return k;
}

CountedTokens count_tokens(const Corpus& training, const Corpus& validation, int vocab, int longest, Progress* progress,
                           const std::vector<int64_t>& places) {
  const auto V = static_cast<uint64_t>(vocab);
  std::vector<Counts> counts(static_cast<size_t>(longest) + 1);
  const auto count = [&](const std::vector<int32_t>& before, int32_t token) {
    for (size_t k = 0; k <= before.size(); ++k) {
      const uint64_t context = number_of(before, k, V);
      counts[k].add(context, context * V + static_cast<uint64_t>(token));
    }
  };
  CountedTokens found{std::vector<double>(counts.size()), {}};
  const int64_t asked = places.empty() ? validation.size() : static_cast<int64_t>(places.size());
  int64_t place = -1;
  const auto ask = [&](const std::vector<int32_t>& before, int32_t token) {
    ++place;
    if (!places.empty() && !std::binary_search(places.begin(), places.end(), place)) return;
    double probability = 1.0 / vocab;
    for (size_t k = 0; k < counts.size(); ++k) {
      if (k <= before.size()) {
        const uint64_t context = number_of(before, k, V);
        probability = counts[k].probability(context, context * V + static_cast<uint64_t>(token), probability);
      }
      found.loss[k] -= std::log(probability) / static_cast<double>(asked);
    }
  };
  const auto show = [&](int64_t tokens) {
    if (progress) progress->show(tokens, "");
  };
  each_token(training, vocab, longest, count, show);
  each_token(validation, vocab, longest, ask, [&](int64_t tokens) { show(training.size() + tokens); });
  for (const Counts& one : counts) found.contexts.push_back(static_cast<int64_t>(one.followers.size()));
  return found;
}

}  // namespace petroglyph
