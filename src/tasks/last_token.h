// Windows of which only the last target counts. The targets are the same for every window length, evenly spaced over
// a text; only the length of the context before them differs. So window lengths are compared on the same target
// tokens.
#pragma once

#include <string>

#include "tasks/corpus.h"
#include "tasks/task.h"

namespace petroglyph {

class LastToken final : public Task {
 public:
  // The first target has `longest` tokens before it. Throws Error, which begins with `name`, if the text is too
  // short. The text must outlive the task.
  LastToken(const Corpus& text, const std::string& name, int length, int longest, int windows);

  // The requested number of windows, or fewer if the text has fewer distinct ones.
  int windows() const;
  // The position in the text of a window's target.
  int64_t place(int window) const;
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override;

 private:
  const Corpus& text_;
  int length_, longest_, windows_;
};

}  // namespace petroglyph
