// Windows of which only the last target counts: the same targets, evenly over a text, with more or less of what comes before them,
// so that one length is compared with another on the same tokens.
#pragma once

#include <string>

#include "tasks/corpus.h"
#include "tasks/task.h"

namespace petroglyph {

class LastToken final : public Task {
 public:
  // Before the first target stand `longest` tokens. Throws Error, which opens with `name`, where the text has fewer. The text must
  // outlive the task.
  LastToken(const Corpus& text, const std::string& name, int length, int longest, int windows);

  // As many as are wanted, if the text has as many different ones.
  int windows() const;
  // Where in the text the target of a window stands.
  int64_t place(int window) const;
  Batch batch(uint64_t seed, uint32_t stream, uint32_t step, int first, int count) const override;

 private:
  const Corpus& text_;
  int length_, longest_, windows_;
};

}  // namespace petroglyph
