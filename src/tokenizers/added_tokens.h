// Tokens that are found in a text before the rest is cut into pieces: special ones, such as <|endoftext|>, and others
// that were added to a vocabulary, such as GPT-NeoX's runs of spaces.
//
// Of all places where one begins the first counts, and of those that begin there the longest; the search goes on
// behind it. For that the longest token that begins at each place is looked up by one automaton (Aho and Corasick
// 1975) over the tokens read backwards, which reads the text from its end: its state is the longest beginning of a
// reversed token that ends here, and each state has the longest whole token within it. The time is linear in the
// text, however many tokens there are and whatever they have in common.
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
  bool special = false;      // found only where special tokens are read
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool single_word = false;  // only where no letter, number or '_' touches it
  bool normalized = false;   // looked for in what is left when those that are not have been found
};

// Their names in Hugging Face's files, and in ours.
constexpr std::pair<const char*, bool AddedToken::*> ADDED_TOKEN_FLAGS[] = {{"special", &AddedToken::special},
                                                                            {"lstrip", &AddedToken::lstrip},
                                                                            {"rstrip", &AddedToken::rstrip},
                                                                            {"single_word", &AddedToken::single_word},
                                                                            {"normalized", &AddedToken::normalized}};

class AddedTokenFinder {
 public:
  AddedTokenFinder();
  // number: what `found` is called with. Of two words that are alike the first one counts.
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

  std::vector<State> states_;         // the first is the root: nothing of any word
  PairTable edges_;                   // state, byte → the state that has one byte more
  std::array<int32_t, 256> first_{};  // the same for the root, where most of a text is spent
  size_t longest_ = 0;
  std::vector<uint32_t> lengths_;  // of the words by their numbers
};

}  // namespace petroglyph
