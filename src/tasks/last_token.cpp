#include "tasks/last_token.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace petroglyph {

LastToken::LastToken(const Corpus& text, const std::string& name, int length, int longest, int windows)
    : text_(text), length_(length), longest_(longest), windows_(windows) {
  if (text.size() <= longest)
    throw Error(petroglyph::text("%s: %s %s less than a window of %d and its next token", name.c_str(),
                                 counted(text.size(), "token").c_str(), text.size() == 1 ? "is" : "are", longest));
}

int LastToken::windows() const { return static_cast<int>(std::min<int64_t>(windows_, text_.size() - longest_)); }

int64_t LastToken::place(int window) const { return longest_ + window * (text_.size() - longest_) / windows(); }

Batch LastToken::batch(uint64_t, uint32_t, uint32_t, int first, int count) const {
  Batch batch;
  batch.size = batch.counted = count;
  batch.length = length_;
  std::vector<int32_t> window(static_cast<size_t>(length_) + 1);
  for (int sample = first; sample < first + count; ++sample) {
    text_.read(place(sample) - length_, length_ + 1, window.data());
    batch.tokens.insert(batch.tokens.end(), window.begin(), window.end() - 1);
    batch.targets.insert(batch.targets.end(), static_cast<size_t>(length_) - 1, -1);
    batch.targets.push_back(window.back());
  }
  return batch;
}

}  // namespace petroglyph
