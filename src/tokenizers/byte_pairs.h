// Byte-level byte pair encoding (Sennrich, Haddow and Birch 2016; on bytes: Radford et al. 2019).
//
// Added tokens are found in the text first: the first position where one begins, and the longest there. The remaining
// text is split into pieces (gpt2_split.h). Initially, the tokens of a piece are its bytes. Then the adjacent pair that
// is earliest in the list of merges is replaced by one token, everywhere in the piece, from left to right. This is
// repeated until no adjacent pair is in the list. As every byte has a token, every text can be encoded.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace petroglyph {

struct Merge {
  int32_t left, right, result;
};

// Two adjacent tokens as the key of a table.
inline uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// Special tokens, such as <|endoftext|>, and others that were added to a vocabulary, such as GPT-NeoX's runs of spaces.
struct AddedToken {
  int32_t token;
  bool special = false;     // matched only if special tokens are enabled
  bool lstrip = false;      // includes the white space before it
  bool rstrip = false;      // includes the white space after it
  bool normalized = false;  // matched after all tokens that are not normalized, in the remaining text
};

// The names of the flags in Hugging Face's and in Petroglyph's files.
constexpr std::pair<const char*, bool AddedToken::*> ADDED_TOKEN_FLAGS[] = {{"special", &AddedToken::special},
                                                                            {"lstrip", &AddedToken::lstrip},
                                                                            {"rstrip", &AddedToken::rstrip},
                                                                            {"normalized", &AddedToken::normalized}};

// Optional parts of a byte pair tokenizer, besides tokens and merges.
struct BytePairExtras {
  std::vector<AddedToken> added;
  std::vector<int32_t> prefix, suffix;  // tokens before and after each text
  bool space_before = false;            // adds a space before each text and after each added token, unless there is one
  std::optional<std::vector<int32_t>>
      begin;  // the bos token in transformers' configurations, or an empty list; not given: the first of `end`
  std::optional<std::vector<int32_t>> end;  // the tokens that end a text; not given: <|endoftext|>, or a special </s>
};

class BytePairTokenizer final : public Tokenizer {
 public:
  // `tokens`, sorted by number, and `merges`, each "left right", are in the byte spelling of GPT-2's files
  // (byte_spelling.h). An Error names the wrong entry, after the origin of its list. Added tokens may have the same
  // spelling as other tokens.
  BytePairTokenizer(const std::vector<std::string>& tokens, const std::string& tokens_origin,
                    const std::vector<std::string>& merges, const std::string& merges_origin,
                    BytePairExtras extras = {});

  std::string name() const override;
  int vocab() const override { return static_cast<int>(tokens_.size()); }
  int64_t encode_parts(std::string_view text, Reading reading, const TakeTokens& take) const override;
  std::string special_in(std::string_view text) const override;
  std::string_view bytes(int32_t token) const override { return tokens_[static_cast<size_t>(token)]; }
  Json to_json() const override;
  std::vector<int32_t> end_of_text() const override { return *extras_.end; }

  const BytePairExtras& extras() const { return extras_; }
  const std::vector<Merge>& merges() const { return merges_; }  // in the order in which they were learned
  bool is_added(int32_t token) const { return added_[static_cast<size_t>(token)]; }
  // Calls `piece` and `token` for the parts of a text, in order.
  void cut_out(std::string_view text, bool with_special, const std::function<void(std::string_view)>& piece,
               const std::function<void(int32_t)>& token, size_t pass = 0) const;
  // Appends the tokens of one piece.
  void merge(std::string_view piece, std::vector<int32_t>& out) const;

 private:
  using Numbers = std::unordered_map<std::string, int32_t>;  // token spelling → number
  void add_token(const std::string& spelling, const std::string& origin);
  void number(const std::vector<std::string>& tokens, const std::string& origin, bool added, Numbers& numbers);
  const char* add_merge(const std::string& merge, const Numbers& numbers);
  std::vector<int32_t> ends_by_name() const;
  uint32_t rank(int32_t left, int32_t right) const;
  const AddedToken* added_at(std::string_view text, size_t at, bool with_special, size_t pass) const;

  BytePairExtras extras_;
  std::vector<std::string> tokens_;  // the bytes of each token
  std::vector<bool> special_, added_;
  std::array<int32_t, 256> byte_tokens_{};
  std::vector<Merge> merges_;
  std::unordered_map<uint64_t, uint32_t> ranks_;  // two adjacent tokens → the index of their merge
  // The added tokens that are not normalized, and those that are: by their bytes, and their lengths by the first byte.
  std::array<std::unordered_map<std::string, std::vector<AddedToken>>, 2> by_spelling_;
  std::array<std::array<std::set<size_t, std::greater<>>, 256>, 2> lengths_;
};

}  // namespace petroglyph
