// Images without a file: one of ten shapes, drawn in any colour, at any place, size and slant, on a background that changes
// from one colour to another, among small spots and noise. Colours do not depend on the class.
#pragma once

#include "tasks/images.h"

namespace petroglyph {

class Shapes final : public Images {
 public:
  Shapes();
  Picture picture(uint64_t seed, uint32_t stream, uint32_t step, int index) const override;
};

}  // namespace petroglyph
