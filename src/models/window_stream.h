// A stream for a model that reads a window of a fixed length and answers once, at its end: it slides.
#pragma once

#include <memory>
#include <string>

#include "models/model.h"

namespace petroglyph {

// Every position's answer is forward() of the `window` tokens up to it, so the stream keeps the last window − 1 tokens and nothing
// else. Positions before the first whole window have no answer: their logits are NaN.
// An answer is a forward pass of the model: what backward() would need of an earlier one is lost.
// name: of the model, for the Error beyond the capacity.
std::unique_ptr<Stream> slide_window(Model& model, Ops& ops, const std::string& name, int window, int batch,
                                     int capacity);

}  // namespace petroglyph
