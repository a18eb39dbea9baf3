// Byte-level byte pair encoding (Sennrich, Haddow and Birch 2016; on bytes: Radford et al. 2019).
//
// Added tokens are found in the text first (added_tokens.h). The remaining text is split into pieces (gpt2_split.h).
// Initially, the tokens of a piece are its bytes. Then the adjacent pair that is earliest in the list of merges is
// replaced by one token, everywhere in the piece, from left to right. This is repeated until no adjacent pair is in
// the list. As every byte has a token, every text can be encoded.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizers/added_tokens.h"
#include "tokenizers/merges.h"
#include "tokenizers/tokenizer.h"

namespace petroglyph {

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
  const Merges& merges() const { return merges_; }
  bool is_added(int32_t token) const { return added_[static_cast<size_t>(token)]; }
  // Calls `piece` and `token` for the parts of a text, in order.
  void cut_out(std::string_view text, bool with_special, const std::function<void(std::string_view)>& piece,
               const std::function<void(int32_t)>& token, size_t pass = 0) const;

 private:
  using Numbers = std::unordered_map<std::string, int32_t>;  // token spelling → number
  void add_token(const std::string& spelling, const std::string& origin);
  void number(const std::vector<std::string>& tokens, const std::string& origin, bool added, Numbers& numbers);
  const char* add_merge(const std::string& merge, const Numbers& numbers);
  std::vector<int32_t> ends_by_name() const;

  BytePairExtras extras_;
  std::vector<std::string> tokens_;  // the bytes of each token
  std::vector<bool> special_, added_;
  Merges merges_;
  std::array<AddedTokenFinder, 2> finders_;  // for added tokens that are not normalized, and for those that are
};

}  // namespace petroglyph
