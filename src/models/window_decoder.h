// A decoder for a model that reads a window of fixed length and has logits for its end only: the window slides.
#pragma once

#include <memory>
#include <string>

#include "models/model.h"

namespace petroglyph {

// Every position's logits are forward() of the `window` tokens up to it, so the decoder stores the last window − 1
// tokens and nothing else. The logits of positions before the first whole window are NaN.
// Decoding runs forward passes of the model, which overwrite the activations that backward() needs.
// name: the model's, for error messages.
std::unique_ptr<Decoder> make_window_decoder(Model& model, Ops& ops, const std::string& name, int window, int batch,
                                             int capacity);

}  // namespace petroglyph
