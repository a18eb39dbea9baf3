#include "tokenizers/byte_pairs.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/byte_spelling.h"
#include "tokenizers/gpt2_split.h"
#include "tokenizers/word_numbers.h"

namespace petroglyph {

namespace {

constexpr size_t MOST_TOKENS = size_t(1) << 24;

// Merges the bytes of one piece after another. The tokens of a piece are a list, linked through their places, so that a
// merge costs the same wherever it happens; a heap has the pairs that may be merged, the first of the list on top.
class PieceMerger {
 public:
  explicit PieceMerger(const BytePairTokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void append(std::string_view piece, std::vector<int32_t>& out) {
    if (piece.size() >= END) throw Error("a piece of text without an end of a word is longer than 4 GB");
    start(piece);
    while (!heap_.empty()) merge_all_of_one_rank();
    for (uint32_t at = 0; at != END; at = nodes_[at].next) out.push_back(nodes_[at].token);
  }

 private:
  static constexpr uint32_t END = UINT32_MAX, GONE = UINT32_MAX - 1;
  struct Node {
    int32_t token;
    uint32_t before, next;  // END beyond the first and the last
    uint32_t rank;          // of this token with the next one; GONE where it has become part of the one before
  };

  void start(std::string_view piece) {
    const auto count = static_cast<uint32_t>(piece.size());
    nodes_.resize(count);
    for (uint32_t i = 0; i < count; ++i)
      nodes_[i] = {tokenizer_.token_of(piece[i]), i == 0 ? END : i - 1, i + 1 == count ? END : i + 1, PairTable::NONE};
    for (uint32_t i = 0; i + 1 < count; ++i) rank(i);
  }

  // Looks up what the token at `at` forms with the next one.
  void rank(uint32_t at) {
    Node& node = nodes_[at];
    node.rank = node.next == END ? PairTable::NONE : tokenizer_.rank(node.token, nodes_[node.next].token);
    if (node.rank == PairTable::NONE) return;
    heap_.push_back(static_cast<uint64_t>(node.rank) << 32 | at);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  // The places are taken out before any is merged: a merge may form a pair that comes earlier in the list, and its turn
  // is after all of this one.
  void merge_all_of_one_rank() {
    const auto best = static_cast<uint32_t>(heap_.front() >> 32);
    places_.clear();
    while (!heap_.empty() && heap_.front() >> 32 == best) {
      places_.push_back(static_cast<uint32_t>(heap_.front()));
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      heap_.pop_back();
    }
    for (const uint32_t at : places_) {
      if (nodes_[at].rank == best) merge(at);  // else one of the two is part of another token by now
    }
  }

  void merge(uint32_t at) {
    Node& left = nodes_[at];
    Node& right = nodes_[left.next];
    left.token = tokenizer_.merges()[left.rank].result;
    right.rank = GONE;
    left.next = right.next;
    if (left.next != END) nodes_[left.next].before = at;
    rank(at);
    if (left.before != END) rank(left.before);
  }

  const BytePairTokenizer& tokenizer_;
  std::vector<Node> nodes_;
  std::vector<uint64_t> heap_;  // rank, place
  std::vector<uint32_t> places_;
};

// A text consists of few different words: each is merged once, and after that its tokens are copied from where they
// came first.
class TextEncoder {
 public:
  TextEncoder(const BytePairTokenizer& tokenizer, std::vector<int32_t>& tokens) : merger_(tokenizer), tokens_(tokens) {}

  void append(std::string_view text) {
    for (size_t at = 0, end; at < text.size(); at = end) {
      end = gpt2_piece_end(text, at);
      append_piece(text.substr(at, end - at));
    }
  }

 private:
  static constexpr size_t MOST_WORDS = size_t(1) << 18;  // 12 MB; a new text has mostly new words
  struct Found {
    size_t begin, count;  // in `tokens_`
  };

  void append_piece(std::string_view piece) {
    const size_t word = words_.insert(piece), begin = tokens_.size();
    if (word < found_.size()) {
      const Found& first = found_[word];
      for (size_t i = 0; i < first.count; ++i) tokens_.push_back(tokens_[first.begin + i]);
      return;
    }
    merger_.append(piece, tokens_);
    found_.push_back({begin, tokens_.size() - begin});
    if (found_.size() < MOST_WORDS) return;
    words_.clear();
    found_.clear();
  }

  PieceMerger merger_;
  std::vector<int32_t>& tokens_;
  WordNumbers words_;
  std::vector<Found> found_;
};

std::string quoted(const std::string& spelling) { return "\"" + spelling.substr(0, 60) + "\""; }

}  // namespace

BytePairTokenizer::BytePairTokenizer(const std::vector<std::string>& tokens, const std::string& tokens_origin,
                                     const std::vector<std::string>& merges, const std::string& merges_origin,
                                     const std::vector<int32_t>& special, const std::vector<int32_t>& added)
    : special_(special), added_(added) {
  if (tokens.size() > MOST_TOKENS) throw Error(tokens_origin + ": more than 16,777,216 tokens");
  std::sort(special_.begin(), special_.end());
  Numbers numbers;
  byte_tokens_.fill(-1);
  for (const std::string& token : tokens) add_token(token, tokens_origin, numbers);
  for (int byte = 0; byte < 256; ++byte) {
    if (byte_tokens_[static_cast<size_t>(byte)] >= 0) continue;
    throw Error(tokens_origin + text(": has no token for the byte 0x%02X, ", byte) +
                quoted(spell(std::string(1, static_cast<char>(byte)))));
  }
  for (const int32_t token : added_) begins_added_[static_cast<unsigned char>(bytes(token)[0])] = true;
  std::sort(added_.begin(), added_.end(), [&](int32_t a, int32_t b) {
    return bytes(a).size() != bytes(b).size() ? bytes(a).size() > bytes(b).size() : a < b;
  });
  for (const std::string& merge : merges) {
    const char* problem = add_merge(merge, numbers);
    if (problem == nullptr) continue;
    throw Error(merges_origin + ": merge " + with_commas(static_cast<int64_t>(merges_.size()) + 1) + ", " +
                quoted(merge) + ", " + problem);
  }
}

void BytePairTokenizer::add_token(const std::string& spelling, const std::string& origin, Numbers& numbers) {
  const auto number = static_cast<int32_t>(tokens_.size());
  const std::optional<std::string> bytes = unspell(spelling);
  const char* problem = !bytes           ? "has a character that stands for no byte"
                        : bytes->empty() ? "is empty"
                        : !is_special(number) && !numbers.emplace(spelling, number).second ? "is there twice"
                                                                                           : nullptr;
  if (problem != nullptr)
    throw Error(origin + ": token " + with_commas(number) + ", " + quoted(spelling) + ", " + problem);
  if (bytes->size() == 1 && !is_special(number)) byte_tokens_[static_cast<unsigned char>((*bytes)[0])] = number;
  tokens_.push_back(*bytes);
}

bool BytePairTokenizer::is_special(int32_t token) const {
  return std::binary_search(special_.begin(), special_.end(), token);
}

// GPT-2's, or </s> where there is none.
int32_t BytePairTokenizer::end_of_text() const {
  for (const char* name : {"<|endoftext|>", "</s>"})
    for (int32_t token = 0; token < vocab(); ++token)
      if (tokens_[static_cast<size_t>(token)] == name && (name[1] == '|' || is_special(token))) return token;
  return -1;
}

// What is wrong with the merge, or nullptr.
const char* BytePairTokenizer::add_merge(const std::string& merge, const Numbers& numbers) {
  const size_t space = merge.find(' ');
  const bool two = space != std::string::npos && space > 0 && space + 1 < merge.size() && space == merge.rfind(' ');
  if (!two) return "is not two tokens with a space between them";
  const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
  const auto first = numbers.find(left), second = numbers.find(right), result = numbers.find(left + right);
  if (first == numbers.end() || second == numbers.end()) return "names a token that the vocabulary has not";
  if (result == numbers.end()) return "makes a token that the vocabulary has not";
  uint32_t& rank = ranks_.at(first->second, second->second);
  if (rank != PairTable::NONE) return "is there twice";
  rank = static_cast<uint32_t>(merges_.size());
  merges_.push_back({first->second, second->second, result->second});
  return nullptr;
}

std::string BytePairTokenizer::name() const { return "bpe, " + with_commas(vocab()) + " tokens"; }

int64_t BytePairTokenizer::encode(std::string_view text, std::vector<int32_t>& tokens) const {
  TextEncoder encoder(*this, tokens);
  size_t begin = 0;  // of what comes before the next added token
  for (size_t at = 0; !added_.empty() && at < text.size();) {
    const int32_t token = added_at(text, at);
    if (token < 0) {
      ++at;
      continue;
    }
    encoder.append(text.substr(begin, at - begin));
    tokens.push_back(token);
    begin = at += bytes(token).size();
  }
  encoder.append(text.substr(begin));
  return 0;
}

// The longest added token that begins there; -1 where none does.
int32_t BytePairTokenizer::added_at(std::string_view text, size_t at) const {
  if (!begins_added_[static_cast<unsigned char>(text[at])]) return -1;
  for (const int32_t token : added_)
    if (text.compare(at, bytes(token).size(), bytes(token)) == 0) return token;
  return -1;
}

// Where pieces are apart and no added token, taken or not, reaches over.
size_t BytePairTokenizer::cut(std::string_view text, size_t wanted) const {
  const auto crossed = [&](size_t at) {
    return std::any_of(added_.begin(), added_.end(), [&](int32_t token) {
      const std::string_view word = bytes(token);
      const size_t first = at - std::min(at, word.size() - 1);
      return text.substr(0, at + word.size() - 1).find(word, first) != std::string_view::npos;
    });
  };
  size_t at = gpt2_cut(text, wanted);
  while (at < text.size() && crossed(at)) at = gpt2_cut(text, at + 1);
  return at;
}

Json BytePairTokenizer::to_json() const {
  Json tokens = Json::array(), merges = Json::array();
  for (const std::string& token : tokens_) tokens.push(spell(token));
  for (const Merge& merge : merges_) {
    merges.push(spell(tokens_[static_cast<size_t>(merge.left)]) + " " +
                spell(tokens_[static_cast<size_t>(merge.right)]));
  }
  Json json = Json::object();
  json.set("format", "petroglyph tokenizer").set("version", 1).set("kind", "bpe").set("split", "gpt2");
  for (const auto& [key, numbers] : {std::pair("special", &special_), std::pair("added", &added_)}) {
    if (numbers->empty()) continue;
    Json list = Json::array();
    for (const int32_t token : *numbers) list.push(token);
    json.set(key, std::move(list));
  }
  return json.set("tokens", std::move(tokens)).set("merges", std::move(merges));
}

}  // namespace petroglyph
