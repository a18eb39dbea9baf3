#include "tokenizers/byte_pairs.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/byte_spelling.h"
#include "tokenizers/gpt2_split.h"

namespace petroglyph {

namespace {

constexpr uint32_t NONE = UINT32_MAX;

// Passes on the tokens of a text in parts, with those before and after each text. With Reading::DOCUMENTS, one
// end-of-text token separates documents. If the tokens after a text, or those before the next one, are already this
// token, it is not repeated.
class TextEncoder {
 public:
  TextEncoder(const BytePairTokenizer& tokenizer, Reading reading, const Tokenizer::TakeTokens& take)
      : tokenizer_(tokenizer), extras_(tokenizer.extras()), reading_(reading), take_(take) {
    if (reading == Reading::PROMPT || reading == Reading::SPECIAL_PROMPT) begin();
  }

  void add_text(std::string_view text) {
    begin();
    size_t at = 0;
    if (extras_.space_before && text[0] != ' ') {
      const std::string longer = " " + std::string(text);
      at = gpt2_piece_end(longer, 0) - 1;
      tokenizer_.merge(std::string_view(longer).substr(0, at + 1), tokens_);
    }
    for (size_t end; at < text.size(); at = end) {
      end = gpt2_piece_end(text, at);
      add_piece(text.substr(at, end - at));
      if (tokens_.size() >= PART) give();
    }
  }

  void add_token(int32_t token) {
    const std::vector<int32_t>& ends = *extras_.end;
    if (reading_ == Reading::DOCUMENTS && std::find(ends.begin(), ends.end(), token) != ends.end()) return end(token);
    begin();
    tokens_.push_back(token);
  }

  void finish() {
    if (inside_) end(NO_TOKEN);
    give();
  }

 private:
  static constexpr int32_t NO_TOKEN = -1;
  static constexpr size_t PART = size_t(1) << 22, WORDS = size_t(1) << 15;
  struct Word {
    std::string_view text;
    size_t begin, count;  // in tokens_
  };

  void begin() {
    if (inside_) return;
    inside_ = true;
    if (extras_.prefix != std::vector<int32_t>{last_end_}) add_all(extras_.prefix);
  }

  void end(int32_t token) {
    if (inside_) add_all(extras_.suffix);
    const bool there = inside_ && !extras_.suffix.empty() && extras_.suffix.back() == token;
    if (token != NO_TOKEN && !there) tokens_.push_back(token);
    last_end_ = token;
    inside_ = false;
  }

  void add_all(const std::vector<int32_t>& tokens) {
    if (reading_ != Reading::PLAIN && reading_ != Reading::SPECIAL)
      tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }

  // A text has few distinct words, so each is merged once. After that, its tokens are copied from its first occurrence
  // in the part. Each word has one slot, which holds the last word with the same hash.
  void add_piece(std::string_view piece) {
    Word& word = words_[std::hash<std::string_view>()(piece) % WORDS];
    if (word.text != piece) {
      word = {piece, tokens_.size(), 0};
      tokenizer_.merge(piece, tokens_);
      word.count = tokens_.size() - word.begin;
      return;
    }
    for (size_t i = 0; i < word.count; ++i) tokens_.push_back(tokens_[word.begin + i]);
  }

  void give() {
    if (!tokens_.empty()) take_(tokens_);
    tokens_.clear();
    words_.assign(WORDS, {});
  }

  const BytePairTokenizer& tokenizer_;
  const BytePairExtras& extras_;
  const Reading reading_;
  const Tokenizer::TakeTokens& take_;
  std::vector<int32_t> tokens_;
  std::vector<Word> words_ = std::vector<Word>(WORDS);
  bool inside_ = false;  // whether a text has begun
  int32_t last_end_ = NO_TOKEN;
};

// The position of the character that ends at `end`, an index after the first byte.
size_t character_before(std::string_view text, size_t end) {
  size_t at = end - 1;
  while (at > 0 && end - at < 4 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at + character_at(text, at).length == end ? at : end - 1;
}

size_t white_space_begin(std::string_view text, size_t least, size_t end) {
  while (end > least) {
    const size_t at = character_before(text, end);
    if (at < least || character_at(text, at).kind != CharacterClass::Space) break;
    end = at;
  }
  return end;
}

size_t white_space_end(std::string_view text, size_t at) {
  while (at < text.size() && character_at(text, at).kind == CharacterClass::Space) at += character_at(text, at).length;
  return at;
}

std::string quoted(const std::string& spelling) { return "\"" + spelling.substr(0, 60) + "\""; }

}  // namespace

BytePairTokenizer::BytePairTokenizer(const std::vector<std::string>& tokens, const std::string& tokens_origin,
                                     const std::vector<std::string>& merges, const std::string& merges_origin,
                                     BytePairExtras extras)
    : extras_(std::move(extras)), special_(tokens.size()), added_(tokens.size()) {
  std::sort(extras_.added.begin(), extras_.added.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.token < b.token; });
  for (const AddedToken& added : extras_.added) {
    special_[static_cast<size_t>(added.token)] = added.special;
    added_[static_cast<size_t>(added.token)] = true;
  }
  for (const std::string& token : tokens) add_token(token, tokens_origin);
  byte_tokens_.fill(-1);
  Numbers numbers;
  number(tokens, tokens_origin, false, numbers);
  number(tokens, tokens_origin, true, numbers);
  for (int byte = 0; byte < 256; ++byte)
    if (byte_tokens_[static_cast<size_t>(byte)] < 0)
      throw Error(tokens_origin + text(": has no token for the byte 0x%02X, ", byte) +
                  quoted(spell(std::string(1, static_cast<char>(byte)))));
  for (const std::string& merge : merges)
    if (const char* problem = add_merge(merge, numbers))
      throw Error(merges_origin + ": merge " + with_commas(static_cast<int64_t>(merges_.size()) + 1) + ", " +
                  quoted(merge) + ", " + problem);
  for (const AddedToken& added : extras_.added) {
    const std::string spelling(bytes(added.token));
    by_spelling_[added.normalized][spelling].push_back(added);
    lengths_[added.normalized][static_cast<unsigned char>(spelling[0])].insert(spelling.size());
  }
  if (!extras_.end) extras_.end = ends_by_name();
  if (!extras_.begin)
    extras_.begin.emplace(extras_.end->begin(), extras_.end->begin() + (extras_.end->empty() ? 0 : 1));
}

void BytePairTokenizer::add_token(const std::string& spelling, const std::string& origin) {
  const std::optional<std::string> bytes = unspell(spelling);
  if (!bytes || bytes->empty())
    throw Error(origin + ": token " + with_commas(vocab()) + ", " + quoted(spelling) + ", " +
                (bytes ? "is empty" : "has a character that stands for no byte"));
  tokens_.push_back(*bytes);
}

// Assigns numbers to the spellings that merges use: the only token of a spelling that is not an added one, or else
// its first token.
void BytePairTokenizer::number(const std::vector<std::string>& tokens, const std::string& origin, bool added,
                               Numbers& numbers) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (added_[i] != added) continue;
    const bool is_new = numbers.emplace(tokens[i], static_cast<int32_t>(i)).second;
    if (!is_new && !added)
      throw Error(origin + ": token " + with_commas(static_cast<int64_t>(i)) + ", " + quoted(tokens[i]) +
                  ", is listed twice");
    if (is_new && tokens_[i].size() == 1)
      byte_tokens_[static_cast<unsigned char>(tokens_[i][0])] = static_cast<int32_t>(i);
  }
}

// The error in the merge, or nullptr.
const char* BytePairTokenizer::add_merge(const std::string& merge, const Numbers& numbers) {
  const size_t space = merge.find(' ');
  const bool two = space != std::string::npos && space > 0 && space + 1 < merge.size() && space == merge.rfind(' ');
  if (!two) return "is not two tokens with a space between them";
  const std::string left = merge.substr(0, space), right = merge.substr(space + 1);
  const auto first = numbers.find(left), second = numbers.find(right), result = numbers.find(left + right);
  if (first == numbers.end() || second == numbers.end()) return "names a token that the vocabulary has not";
  if (result == numbers.end()) return "makes a token that the vocabulary has not";
  if (!ranks_.emplace(pair_key(first->second, second->second), merges_.size()).second) return "is listed twice";
  merges_.push_back({first->second, second->second, result->second});
  return nullptr;
}

// The default end-of-text tokens: <|endoftext|>, or </s> if there is none.
std::vector<int32_t> BytePairTokenizer::ends_by_name() const {
  for (const std::string_view name : {END_OF_TEXT, std::string_view("</s>")})
    for (int32_t token = 0; token < vocab(); ++token)
      if (bytes(token) == name && (name == END_OF_TEXT || special_[static_cast<size_t>(token)])) return {token};
  return {};
}

std::string BytePairTokenizer::name() const { return "bpe, " + with_commas(vocab()) + " tokens"; }

int64_t BytePairTokenizer::encode_parts(std::string_view text, Reading reading, const TakeTokens& take) const {
  TextEncoder encoder(*this, reading, take);
  cut_out(
      text, reading != Reading::PLAIN && reading != Reading::PROMPT,
      [&](std::string_view piece) { encoder.add_text(piece); }, [&](int32_t token) { encoder.add_token(token); });
  encoder.finish();
  return 0;
}

// The order of Hugging Face's tokenizers: first all tokens that are not normalized, then, in the remaining text,
// those that are. If a token includes the white space after it, the next token may begin within that space.
void BytePairTokenizer::cut_out(std::string_view text, bool with_special,
                                const std::function<void(std::string_view)>& piece,
                                const std::function<void(int32_t)>& token, size_t pass) const {
  if (pass == by_spelling_.size()) return piece(text);
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* const added = added_at(text, at, with_special, pass);
    size_t begin = at, end = at += added ? bytes(added->token).size() : 1;
    if (!added) continue;
    if (added->lstrip) begin = std::max(done, white_space_begin(text, std::min(done, begin), begin));
    if (added->rstrip) end = white_space_end(text, std::max(done, end));
    if (done < begin) cut_out(text.substr(done, begin - done), with_special, piece, token, pass + 1);
    if (begin < end) token(added->token);
    done = end;
  }
  if (done < text.size()) cut_out(text.substr(done), with_special, piece, token, pass + 1);
}

// The longest added token that begins at this position; null if there is none. The time does not grow with the number
// of added tokens, only with the number of their lengths.
const AddedToken* BytePairTokenizer::added_at(std::string_view text, size_t at, bool with_special, size_t pass) const {
  for (const size_t length : lengths_[pass][static_cast<unsigned char>(text[at])]) {
    const auto found = by_spelling_[pass].find(std::string(text.substr(at, length)));
    if (found == by_spelling_[pass].end()) continue;
    for (const AddedToken& added : found->second)
      if (with_special || !added.special) return &added;
  }
  return nullptr;
}

// The index of the merge of two tokens.
uint32_t BytePairTokenizer::rank(int32_t left, int32_t right) const {
  const auto found = ranks_.find(pair_key(left, right));
  return found == ranks_.end() ? NONE : found->second;
}

// The places where a pair can be merged wait under the index of its merge, so that the time is nearly linear also in the
// bytes of a piece without an end of a word. A place whose pair has changed is passed over: tokens only become longer.
void BytePairTokenizer::merge(std::string_view piece, std::vector<int32_t>& out) const {
  const size_t count = piece.size();
  std::vector<int32_t> tokens(count);
  std::vector<size_t> before(count), next(count);
  std::map<uint32_t, std::vector<size_t>> places;
  const auto wait = [&](size_t at) {
    if (next[at] == count) return;
    if (const uint32_t index = rank(tokens[at], tokens[next[at]]); index != NONE) places[index].push_back(at);
  };
  for (size_t i = 0; i < count; ++i) tokens[i] = byte_tokens_[static_cast<unsigned char>(piece[i])];
  for (size_t i = 0; i < count; ++i) {
    before[i] = i - 1;
    next[i] = i + 1;
    wait(i);
  }
  while (!places.empty()) {
    auto first = places.extract(places.begin());
    const Merge& merge = merges_[first.key()];
    std::sort(first.mapped().begin(), first.mapped().end());
    for (const size_t at : first.mapped()) {
      const size_t other = next[at];
      if (tokens[at] != merge.left || other == count || tokens[other] != merge.right) continue;
      tokens[at] = merge.result;
      tokens[other] = -1;  // no token of any merge
      next[at] = next[other];
      if (next[at] < count) before[next[at]] = at;
      wait(at);
      if (at > 0) wait(before[at]);
    }
  }
  for (size_t i = 0; i < count; i = next[i]) out.push_back(tokens[i]);
}

std::string BytePairTokenizer::special_in(std::string_view text) const {
  std::string first;
  cut_out(
      text, true, [](std::string_view) {},
      [&](int32_t token) {
        if (first.empty() && special_[static_cast<size_t>(token)]) first = bytes(token);
      });
  return first;
}

Json BytePairTokenizer::to_json() const {
  Json json = Json::object(), tokens = Json::array(), merges = Json::array();
  json.set("format", "petroglyph tokenizer").set("version", 1).set("kind", "bpe").set("split", "gpt2");
  const auto list = [&](const char* key, const std::vector<int32_t>& numbers) {
    Json all = Json::array();
    for (const int32_t number : numbers) all.push(number);
    json.set(key, std::move(all));
  };
  std::vector<int32_t> plain;
  for (const AddedToken& added : extras_.added)
    if (!added.special) plain.push_back(added.token);
  for (const auto& [key, flag] : ADDED_TOKEN_FLAGS) {
    std::vector<int32_t> flagged;
    for (const AddedToken& added : extras_.added)
      if (added.*flag) flagged.push_back(added.token);
    if (!flagged.empty()) list(key, flagged);
  }
  if (!plain.empty()) list("added", plain);
  if (!extras_.prefix.empty()) list("prefix", extras_.prefix);
  if (!extras_.suffix.empty()) list("suffix", extras_.suffix);
  list("begin", *extras_.begin);
  list("end", *extras_.end);
  if (extras_.space_before) json.set("space_before", true);
  for (const std::string& token : tokens_) tokens.push(spell(token));
  for (const Merge& merge : merges_) merges.push(spell(bytes(merge.left)) + " " + spell(bytes(merge.right)));
  return json.set("tokens", std::move(tokens)).set("merges", std::move(merges));
}

}  // namespace petroglyph
