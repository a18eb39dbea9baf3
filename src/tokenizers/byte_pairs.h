// Byte-level byte pair encoding (Sennrich, Haddow and Birch 2016; on bytes: Radford et al. 2019).
//
// The text is cut into pieces (gpt2_split.h). A piece begins as its bytes; then, of all pairs of neighbours that the
// list of merges has, the one that stands first in it is replaced by one token, wherever in the piece it occurs, from
// left to right; and so on until no pair of neighbours is in the list. As every byte has a token, every text can be
// encoded. Beside these a vocabulary may have special tokens, such as <|endoftext|>, which no text is made of, and added ones, such
// as GPT-NeoX's runs of spaces: wherever a text has one, the first and of these the longest, it is cut out before all else.
#pragma once

#include <array>
#include <string>
#include <unordered_map>
#include <vector>

#include "tokenizers/pair_table.h"
#include "tokenizers/tokenizer.h"

namespace petroglyph {

class BytePairTokenizer final : public Tokenizer {
 public:
  struct Merge {
    int32_t left, right, result;
  };

  // `tokens`, in the order of their numbers, and `merges`, "left right" each, are spelled as GPT-2's files do it
  // (byte_spelling.h). An Error says which of them is wrong, after the origin of its list. `special`: the numbers of those that no
  // merge makes or takes; two of them may be alike, or like another. `added`: of those that are cut out of a text.
  BytePairTokenizer(const std::vector<std::string>& tokens, const std::string& tokens_origin,
                    const std::vector<std::string>& merges, const std::string& merges_origin,
                    const std::vector<int32_t>& special = {}, const std::vector<int32_t>& added = {});

  std::string name() const override;
  int vocab() const override { return static_cast<int>(tokens_.size()); }
  int64_t encode(std::string_view text, std::vector<int32_t>& tokens) const override;
  size_t cut(std::string_view text, size_t wanted) const override;
  std::string_view bytes(int32_t token) const override { return tokens_[static_cast<size_t>(token)]; }
  Json to_json() const override;
  int32_t end_of_text() const override;

  bool is_special(int32_t token) const;
  const std::vector<int32_t>& added() const { return added_; }
  const std::vector<Merge>& merges() const { return merges_; }
  int32_t token_of(char byte) const { return byte_tokens_[static_cast<unsigned char>(byte)]; }
  // The place in merges() of the merge of two neighbours; PairTable::NONE where there is none.
  uint32_t rank(int32_t left, int32_t right) const { return ranks_.find(left, right); }

 private:
  using Numbers = std::unordered_map<std::string, int32_t>;  // of the tokens, by their spelling
  void add_token(const std::string& spelling, const std::string& origin, Numbers& numbers);
  int32_t added_at(std::string_view text, size_t at) const;
  const char* add_merge(const std::string& merge, const Numbers& numbers);

  std::vector<std::string> tokens_;  // bytes
  std::vector<int32_t> special_;     // ascending
  std::vector<int32_t> added_;       // the longest first
  std::array<bool, 256> begins_added_{};
  std::array<int32_t, 256> byte_tokens_{};
  std::vector<Merge> merges_;
  PairTable ranks_;
};

}  // namespace petroglyph
