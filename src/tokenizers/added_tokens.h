// Finds added tokens in a text before the rest is split into pieces. Added tokens are special tokens, such as
// <|endoftext|>, and others that were added to a vocabulary, such as GPT-NeoX's runs of spaces.
//
// The match is leftmost-longest: the first position where a token begins, and the longest token there. The search
// continues after the match. An automaton (Aho and Corasick 1975) over the reversed tokens finds the longest token
// that begins at each position. It reads the text from its end. Its state is the longest prefix of a reversed token
// that ends at the current byte, and each state stores the longest complete token within it. The time is linear in
// the length of the text, for any number of tokens and any overlap between them.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/pair_table.h"

namespace petroglyph {

struct AddedToken {
  int32_t token;
  bool special = false;      // matched only if special tokens are enabled
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool single_word = false;  // matched only without an adjacent letter, number or '_'
  bool normalized = false;   // matched after all tokens that are not normalized, in the remaining text
};

// The names of the flags in Hugging Face's and in Petroglyph's files.
constexpr std::pair<const char*, bool AddedToken::*> ADDED_TOKEN_FLAGS[] = {{"special", &AddedToken::special},
                                                                            {"lstrip", &AddedToken::lstrip},
                                                                            {"rstrip", &AddedToken::rstrip},
                                                                            {"single_word", &AddedToken::single_word},
                                                                            {"normalized", &AddedToken::normalized}};

class AddedTokenFinder {
 public:
  AddedTokenFinder();
  // number: the argument of `found`. If a word is added twice, the first number is used.
  void add(std::string_view word, int32_t number, bool special);
  void finish();  // after the last add()
  bool empty() const { return states_.size() == 1; }

  using Found = std::function<void(size_t at, int32_t number)>;
  void find(std::string_view text, bool with_special, const Found& found) const;

 private:
  struct State {
    int32_t parent, fail = 0;
    uint32_t length = 0;
    unsigned char byte = 0;
    std::array<int32_t, 2> whole = {-1,
                                    -1};  // number of the longest word that it ends in: of those not special, of all
  };
  int32_t next(int32_t state, unsigned char byte) const;

  std::vector<State> states_;         // the first is the root: the empty prefix
  PairTable edges_;                   // (state, byte) → the state of the prefix with this byte appended
  std::array<int32_t, 256> first_{};  // the same for the root, the most frequent state
  size_t longest_ = 0;
  std::vector<uint32_t> lengths_;  // of the words, by number
};

}  // namespace petroglyph
