#include "tokenizers/byte_pair_training.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/byte_spelling.h"
#include "tokenizers/gpt2_split.h"

namespace petroglyph {

namespace {

constexpr uint32_t NONE = UINT32_MAX;

// A merge scans every word that contains its pair from end to end. A longer piece is split into several words, so
// that the scan stays short.
constexpr size_t LONGEST_WORD = 1024;

// The distinct words of the text with their counts, and their tokens, whose number decreases with every merge.
class Trainer {
 public:
  explicit Trainer(const std::vector<std::string_view>& texts) {
    for (int byte = 0; byte < 256; ++byte) add_token(std::string(1, static_cast<char>(byte)));
    for (const std::string_view text : texts) count_documents(text);
    for (size_t w = 0; w < words_.size(); ++w) count_pairs(w);
    for (uint32_t p = 0; p < pairs_.size(); ++p) propose(p);
  }

  void train(size_t vocab) {
    while (tokens_.size() < vocab) {
      const uint32_t best = most_frequent();
      if (best == NONE) break;
      const std::string left = tokens_[static_cast<size_t>(pairs_[best].left)];
      const std::string right = tokens_[static_cast<size_t>(pairs_[best].right)];
      if (known_.count(left + right) > 0) continue;
      merges_.push_back(spell(left) + " " + spell(right));
      add_token(left + right);
      merge(best);
    }
  }

  std::unique_ptr<BytePairTokenizer> result(bool end_of_text) const {
    std::vector<std::string> spellings;
    for (const std::string& token : tokens_) spellings.push_back(spell(token));
    BytePairExtras extras;
    if (end_of_text) {
      extras.added.push_back({static_cast<int32_t>(spellings.size()), true});
      spellings.emplace_back(END_OF_TEXT);
    }
    return std::make_unique<BytePairTokenizer>(spellings, "the trained tokens", merges_, "the trained merges", extras);
  }

 private:
  struct Word {
    size_t begin, size;  // its tokens in symbols_
    int64_t count;
  };
  struct Pair {
    int32_t left, right;
    int64_t count = 0;
    std::vector<uint32_t> words;  // words that contained it at some time; some may no longer contain it
  };
  // The count, the negative numbers of the left and the right token (at equal counts the older tokens are chosen), and
  // the pair.
  using Proposal = std::tuple<int64_t, int32_t, int32_t, uint32_t>;

  void add_token(std::string bytes) {
    known_.insert(bytes);
    tokens_.push_back(std::move(bytes));
  }

  // An end-of-text token in a text belongs to no word.
  void count_documents(std::string_view text) {
    for (size_t end; (end = text.find(END_OF_TEXT)) != std::string_view::npos;
         text.remove_prefix(end + END_OF_TEXT.size()))
      count_words(text.substr(0, end));
    count_words(text);
  }

  void count_words(std::string_view text) {
    for (size_t at = 0, end; at < text.size(); at = end) {
      end = gpt2_piece_end(text, at);
      for (; at < end; at += LONGEST_WORD) count_word(text.substr(at, std::min(LONGEST_WORD, end - at)));
    }
  }

  void count_word(std::string_view bytes) {
    const auto [found, is_new] = numbers_of_words_.try_emplace(bytes, words_.size());
    const size_t word = found->second;
    if (is_new) {
      words_.push_back({symbols_.size(), bytes.size(), 0});
      for (const char byte : bytes) symbols_.push_back(static_cast<unsigned char>(byte));
    }
    ++words_[word].count;
  }

  void count_pairs(size_t word) {
    const Word& w = words_[word];
    for (size_t i = w.begin; i + 1 < w.begin + w.size; ++i) add(symbols_[i], symbols_[i + 1], word);
  }

  void add(int32_t left, int32_t right, size_t word) {
    const auto [found, is_new] = numbers_.try_emplace(pair_key(left, right), static_cast<uint32_t>(pairs_.size()));
    if (is_new) pairs_.push_back({left, right, 0, {}});
    Pair& pair = pairs_[found->second];
    pair.count += words_[word].count;
    if (pair.words.empty() || pair.words.back() != word) pair.words.push_back(static_cast<uint32_t>(word));
  }

  void remove(int32_t left, int32_t right, size_t word) {
    pairs_[numbers_.at(pair_key(left, right))].count -= words_[word].count;
  }

  void propose(uint32_t pair) {
    const Pair& p = pairs_[pair];
    if (p.count >= 2) proposals_.push({p.count, -p.left, -p.right, pair});
  }

  // The queue is not updated when a count decreases; an outdated proposal is replaced when it reaches the top. Counts
  // increase only for pairs with a new token.
  uint32_t most_frequent() {
    while (!proposals_.empty()) {
      const auto [count, left, right, pair] = proposals_.top();
      proposals_.pop();
      if (count == pairs_[pair].count) return pair;
      propose(pair);
    }
    return NONE;
  }

  // Replaces the pair by the newest token.
  void merge(uint32_t pair) {
    const auto first_new = static_cast<uint32_t>(pairs_.size());
    const std::vector<uint32_t> words = std::move(pairs_[pair].words);
    for (const uint32_t word : words) merge_in(word, pairs_[pair].left, pairs_[pair].right);
    for (uint32_t p = first_new; p < pairs_.size(); ++p) propose(p);
  }

  // Every replacement updates the counts: it subtracts the pairs of the word before the replacement and adds the
  // pairs after it.
  void merge_in(size_t word, int32_t left, int32_t right) {
    Word& w = words_[word];
    const auto token = static_cast<int32_t>(tokens_.size()) - 1;
    int32_t* symbols = &symbols_[w.begin];
    size_t out = 0;
    for (size_t i = 0; i < w.size; ++i) {
      if (i + 1 == w.size || symbols[i] != left || symbols[i + 1] != right) {
        symbols[out++] = symbols[i];
        continue;
      }
      if (out > 0) {
        remove(symbols[out - 1], left, word);
        add(symbols[out - 1], token, word);
      }
      remove(left, right, word);
      if (i + 2 < w.size) {
        remove(right, symbols[i + 2], word);
        add(token, symbols[i + 2], word);
      }
      symbols[out++] = token;
      ++i;
    }
    w.size = out;
  }

  std::unordered_map<std::string_view, size_t> numbers_of_words_;
  std::vector<Word> words_;
  std::vector<int32_t> symbols_;
  std::vector<std::string> tokens_, merges_;
  std::unordered_set<std::string> known_;
  std::unordered_map<uint64_t, uint32_t> numbers_;  // of the pairs
  std::vector<Pair> pairs_;
  std::priority_queue<Proposal> proposals_;
};

}  // namespace

std::unique_ptr<BytePairTokenizer> train_byte_pairs(const std::vector<std::string_view>& texts, int vocab,
                                                    bool end_of_text) {
  const int least = end_of_text ? 257 : 256;
  if (vocab < least) throw Error(text("a byte pair encoding has at least %d tokens, not ", least) + with_commas(vocab));
  Trainer trainer(texts);
  trainer.train(static_cast<size_t>(end_of_text ? vocab - 1 : vocab));
  return trainer.result(end_of_text);
}

}  // namespace petroglyph
